package store

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// ControlRequest pauses, resumes, cancels or terminates one or more runs and their descendants.
type ControlRequest struct {
	Verb        ControlVerb
	Scope       CancelScope // of a cancel
	Runs        []uuid.UUID
	Now         time.Time
	Reason      string
	Actor       string
	Error       []byte // becomes the error of the runs that end at once
	ShiftTimers bool   // a resume adds the length of the pause to timers and deadlines
	DryRun      bool   // Plan sets the results and returns no changes
	ForRepair   bool   // a pause is made by a repair; a resume ends neither a run's own pause by a person nor a hold
	// Fence is the execution that makes the request, or zero if no execution makes it. If another execution has claimed the run
	// Fence.Run since, or the run was released, Plan returns no changes and sets Fenced. Fence.Run is one of Runs, or an ancestor of
	// all of them.
	Fence RunExecution

	// Results, which Plan sets, has one result for each run in Runs, unless Fenced is true.
	Results []ControlResult
	Fenced  bool // Plan sets it; see Fence
	// ChangedRuns and RequestedRuns list the runs that the results count in ChangedCount and in RequestedCount, ancestors first, at most
	// MaxControlIDs runs each. Plan sets ChangedRuns and RequestedRuns.
	ChangedRuns, RequestedRuns []uuid.UUID
}

// MaxControlIDs is the maximal length of ControlRequest.ChangedRuns and of ControlRequest.RequestedRuns.
const MaxControlIDs = 1000

// ControlVerb is what a ControlRequest does to its runs.
type ControlVerb uint8

// The verbs.
const (
	VerbPause  ControlVerb = 1
	VerbResume ControlVerb = 2
	VerbCancel ControlVerb = 3
	// VerbTerminate ends the run and its descendants at once, even runs that workers are executing. The store fences (rejects) the writes
	// that workers still send for terminated runs.
	VerbTerminate ControlVerb = 4
)

// CancelScope selects the runs of a tree that a cancel request cancels.
type CancelScope uint8

// The scopes. The zero value is the whole tree.
const (
	CancelWholeTree       CancelScope = 0
	CancelNotStarted      CancelScope = 1 // the run, and those of its descendants that were never executed
	CancelRunItself       CancelScope = 2
	CancelDescendants     CancelScope = 3 // the descendants, except detached children and the trees below them; used when the parent ends
	CancelWithoutDetached CancelScope = 4 // the run and its descendants, except detached runs and the trees below them; used when a branch of the parent ends
)

// ControlResult is the result of a ControlRequest for one of its runs.
type ControlResult struct {
	Found         bool
	Status        Status      // of the run itself, before the change
	ControlBefore ControlBits // of the run itself, before the change
	ChangedCount  int         // how many runs, itself included, have reached the wanted state
	// RequestedCount counts the runs that have not reached the state that the request wants yet. A run becomes Paused when its current steps
	// have ended, and Cancelled when its compensations have been executed.
	RequestedCount int
}

// RunToControl is one run of a tree that a [ControlRequest] may change, with the columns that [ControlRequest.Plan] needs.
type RunToControl struct {
	UUID     uuid.UUID
	Parent   uuid.NullUUID
	Status   Status
	Epoch    Epoch
	Control  ControlBits
	Owner    uuid.NullUUID
	Detached bool
}

// WakeAtUpdate tells how a ControlChange sets the column wake_at. SQL statements use the numbers of the WakeAtUpdate constants.
type WakeAtUpdate int16

// The values of WakeAtUpdate.
const (
	WakeAtKeep WakeAtUpdate = 0 // unchanged
	WakeAtNull WakeAtUpdate = 1 // NULL
	WakeAtNow  WakeAtUpdate = 2 // the operation's Now
)

// AuditColumnsUpdate tells which columns about a pause or a cancel (who, when, why) a ControlChange sets. SQL statements use the numbers of
// the AuditColumnsUpdate constants.
type AuditColumnsUpdate int16

// The values of AuditColumnsUpdate.
const (
	AuditColumnsKeep       AuditColumnsUpdate = 0 // none
	AuditColumnsSetPause   AuditColumnsUpdate = 1 // reason, paused_by and paused_at are set
	AuditColumnsClearPause AuditColumnsUpdate = 2 // reason, paused_by and paused_at become NULL, and crashes becomes 0
	AuditColumnsSetCancel  AuditColumnsUpdate = 3 // cancel_reason, cancelled_by and cancelled_at are set; the columns of a pause become NULL
)

// ControlChange is a guarded update of a locked run. The update is applied only if the run still has the UUID, Status, Epoch and Control of
// Before.
type ControlChange struct {
	Before       RunToControl
	Status       Status
	Control      ControlBits
	WakeAt       WakeAtUpdate
	AuditColumns AuditColumnsUpdate
	// Detached is the new value of the column detached of the run. If the scope of a cancel excludes a child, the cancel detaches the
	// child, so that the end of the parent does not cancel the child either.
	Detached bool
}

// EndsRun reports whether the change ends the run. A change that ends the run sets the run's EndedAt, copies the request's Error into the
// run, and sets the owner to NULL.
func (c *ControlChange) EndsRun() bool { return c.Status.IsTerminal() }

// Plan returns the changes that the request makes to runs, in the order of (shard, id), and the parents to wake because a child has ended.
// The argument nodes has the runs in ControlRequest.Runs with all their ancestors and descendants, each once. The store keeps the rows of
// the nodes locked until it has applied the changes. Plan also sets the fields Results, ChangedRuns and RequestedRuns of the ControlRequest.
// Plan returns no changes for a dry run.
//
// Plan does not access the database. The PostgreSQL and the SQLite store both call Plan, so that a ControlRequest has the same effect in
// both databases.
func (o *ControlRequest) Plan(nodes []RunToControl) (changes []ControlChange, wake []uuid.UUID) {
	p := controlPlanner{request: o, runsBefore: make(map[uuid.UUID]*RunToControl, len(nodes)), runsAfter: make(map[uuid.UUID]*plannedRun, len(nodes)), children: make(map[uuid.UUID][]*plannedRun)}
	for i := range nodes {
		n := &nodes[i]
		p.runsBefore[n.UUID] = n
		p.runsAfter[n.UUID] = &plannedRun{RunToControl: *n}
	}
	for i := range nodes {
		if n := &nodes[i]; n.Parent.Valid {
			p.children[n.Parent.UUID] = append(p.children[n.Parent.UUID], p.runsAfter[n.UUID])
		}
	}
	o.Results = make([]ControlResult, len(o.Runs))
	o.ChangedRuns, o.RequestedRuns = nil, nil
	executed := p.runsBefore[o.Fence.Run]
	if o.Fenced = executed != nil && (executed.Status != Running || executed.Epoch != o.Fence.Epoch); o.Fenced {
		return nil, nil
	}
	for i, id := range o.Runs {
		n := p.runsAfter[id]
		if n == nil {
			continue
		}
		a := &o.Results[i]
		a.Found, a.Status, a.ControlBefore = true, p.runsBefore[id].Status, p.runsBefore[id].Control
		p.result = a
		switch o.Verb {
		case VerbPause:
			p.pause(n, PausedItself)
		case VerbResume:
			if !o.ForRepair || n.Control&(PausedItself|PausedForRepair) != PausedItself { // a repair does not end the pause of a person
				p.resume(n, PausedItself)
			}
		case VerbCancel:
			p.cancel(n)
		case VerbTerminate:
			p.terminate(n)
		}
	}
	if o.DryRun {
		return nil, nil
	}
	return p.plannedChanges()
}

type plannedRun struct {
	RunToControl
	wakeAtUpdate WakeAtUpdate
	auditUpdate  AuditColumnsUpdate
}

type controlPlanner struct {
	request    *ControlRequest
	result     *ControlResult
	runsBefore map[uuid.UUID]*RunToControl
	runsAfter  map[uuid.UUID]*plannedRun
	children   map[uuid.UUID][]*plannedRun
}

// countAsChanged counts a run that this request brings into the wanted state at once.
func (p *controlPlanner) countAsChanged(n *plannedRun) {
	p.result.ChangedCount++
	if len(p.request.ChangedRuns) < MaxControlIDs {
		p.request.ChangedRuns = append(p.request.ChangedRuns, n.UUID)
	}
}

// countAsRequested counts a run that reaches the wanted state later.
func (p *controlPlanner) countAsRequested(n *plannedRun) {
	p.result.RequestedCount++
	if len(p.request.RequestedRuns) < MaxControlIDs {
		p.request.RequestedRuns = append(p.request.RequestedRuns, n.UUID)
	}
}

// pause sets the bit on n, and PausedByAncestor on all its descendants. It does not change a run whose cancel was requested, but
// pauses those of its descendants to which that cancel did not apply. If a repair has paused n, the pause becomes the caller's own,
// so that the repair does not end it.
func (p *controlPlanner) pause(n *plannedRun, bit ControlBits) {
	switch {
	case bit == PausedItself && (n.Status.IsTerminal() || n.Control&CancelRequested != 0):
		return // nothing changes; the caller sees the reason in the result's Status and Control
	case n.Status.IsTerminal() || n.Control&CancelRequested != 0:
	case n.Control&bit == 0 || bit == PausedItself && n.Control&PausedForRepair != 0 && !p.request.ForRepair:
		if bit == PausedItself || n.Control&PausedItself == 0 {
			n.auditUpdate = AuditColumnsSetPause // the reason of the run's own pause takes precedence over an ancestor's
		}
		if n.Status == Running {
			p.countAsRequested(n)
		} else {
			n.Status, n.wakeAtUpdate = Paused, WakeAtNull
			p.countAsChanged(n)
		}
		n.Control |= bit
		if bit == PausedItself {
			n.Control &^= PausedForRepair
			if p.request.ForRepair {
				n.Control |= PausedForRepair
			}
		}
	}
	for _, child := range p.children[n.UUID] {
		p.pause(child, PausedByAncestor)
	}
}

// resume clears the bit on n. If n is then no longer paused, resume clears PausedByAncestor on its descendants. Runs that were paused together
// with n are resumed together with n, so resume also continues with the children of a run that has ended or whose cancel was requested, unless
// a live ancestor of n is still paused itself. A resume of n itself also clears HeldForDrift, unless a repair makes the request, and clears
// PausedByAncestor if no live ancestor is paused any more.
func (p *controlPlanner) resume(n *plannedRun, bit ControlBits) {
	if bit == PausedItself {
		bit |= PausedForRepair
		if !p.request.ForRepair {
			bit |= HeldForDrift
		}
		if !p.hasPausedAncestor(n) {
			bit |= PausedByAncestor
		}
	}
	switch {
	case n.Status.IsTerminal():
		if bit&PausedMask == PausedItself { // a paused ancestor keeps the descendants paused
			return
		}
	case n.Control&CancelRequested != 0 && n.Control&bit == 0 && bit&PausedByAncestor != 0:
	default:
		if n.Control&bit == 0 {
			return
		}
		n.Control &^= bit
		if n.Control&PausedMask != 0 {
			return
		}
		if n.Control&HeldForDrift == 0 { // otherwise it stays paused, and only its descendants continue
			n.auditUpdate = AuditColumnsClearPause
			if n.Status == Paused {
				n.Status, n.wakeAtUpdate = Pending, WakeAtNow
			}
			p.countAsChanged(n)
		}
	}
	for _, child := range p.children[n.UUID] {
		p.resume(child, PausedByAncestor)
	}
}

// hasPausedAncestor reports whether a live ancestor of n is paused itself.
func (p *controlPlanner) hasPausedAncestor(n *plannedRun) bool {
	for n.Parent.Valid {
		if n = p.runsAfter[n.Parent.UUID]; n == nil {
			return false
		}
		if !n.Status.IsTerminal() && n.Control&PausedItself != 0 {
			return true
		}
	}
	return false
}

func (p *controlPlanner) cancel(n *plannedRun) {
	switch p.request.Scope {
	case CancelRunItself, CancelNotStarted:
		onlyItself := !n.Status.IsTerminal() && n.Control&PausedMask == PausedItself
		p.cancelRun(n)
		if p.request.Scope == CancelNotStarted {
			p.cancelDescendants(n, func(child *plannedRun) bool { return true })
		}
		for _, child := range p.children[n.UUID] {
			if !child.Status.IsTerminal() && child.Control&CancelRequested == 0 {
				child.Detached = true
			}
			if onlyItself { // the descendants were paused with n only
				p.resume(child, PausedByAncestor)
			}
		}
	case CancelDescendants:
		p.cancelDescendants(n, func(child *plannedRun) bool { return !child.Detached })
	case CancelWithoutDetached:
		if !n.Detached {
			p.cancelRun(n)
			p.cancelDescendants(n, func(child *plannedRun) bool { return !child.Detached })
		}
	default:
		p.cancelRun(n)
		p.cancelDescendants(n, func(child *plannedRun) bool { return true })
	}
}

// cancelDescendants cancels the children that chosen selects, and, recursively, their children. It
// skips the descendants of a child that is not selected.
func (p *controlPlanner) cancelDescendants(n *plannedRun, chosen func(*plannedRun) bool) {
	for _, child := range p.children[n.UUID] {
		if !chosen(child) {
			continue
		}
		if p.request.Scope != CancelNotStarted || child.Epoch.Count == 0 {
			p.cancelRun(child)
		}
		p.cancelDescendants(child, chosen)
	}
}

// cancelRun ends a run that was never executed. For any other run it requests the cancel: the worker
// that executes the run, or the next one, executes its compensations. A run without a checkpoint may
// have effects too, because a step can take effect and be interrupted before it is recorded. The first
// reason is kept.
func (p *controlPlanner) cancelRun(n *plannedRun) {
	if n.Status.IsTerminal() {
		return
	}
	if n.Control&CancelRequested != 0 {
		p.countAsRequested(n)
		return
	}
	n.Control = CancelRequested
	n.auditUpdate = AuditColumnsSetCancel
	switch {
	case n.Status == Running:
		p.countAsRequested(n)
	case n.Epoch.Count > 0:
		n.Status, n.wakeAtUpdate = Pending, WakeAtNow
		p.countAsRequested(n)
	default:
		n.Status, n.wakeAtUpdate = Cancelled, WakeAtNull
		p.countAsChanged(n)
	}
}

// terminate ends n and all its descendants at once, even if they are being executed. A run whose
// cancel was requested before keeps that reason.
func (p *controlPlanner) terminate(n *plannedRun) {
	if !n.Status.IsTerminal() {
		if n.Control&CancelRequested == 0 {
			n.auditUpdate = AuditColumnsSetCancel
		}
		n.Status, n.Control, n.wakeAtUpdate = Cancelled, CancelRequested, WakeAtNull
		p.countAsChanged(n)
	}
	for _, child := range p.children[n.UUID] {
		p.terminate(child)
	}
}

func (p *controlPlanner) plannedChanges() (changes []ControlChange, wake []uuid.UUID) {
	woken := make(map[uuid.UUID]bool)
	for id, n := range p.runsAfter {
		was := p.runsBefore[id]
		if was.Status == n.Status && was.Control == n.Control && was.Detached == n.Detached {
			continue
		}
		changes = append(changes, ControlChange{Before: *was, Status: n.Status, Control: n.Control, WakeAt: n.wakeAtUpdate, AuditColumns: n.auditUpdate, Detached: n.Detached})
		if n.Status.IsTerminal() && n.Parent.Valid {
			if parent := p.runsAfter[n.Parent.UUID]; parent == nil || !parent.Status.IsTerminal() {
				woken[n.Parent.UUID] = true
			}
		}
	}
	slices.SortFunc(changes, func(a, b ControlChange) int { return CompareUUIDsByShard(a.Before.UUID, b.Before.UUID) })
	for id := range woken {
		wake = append(wake, id)
	}
	slices.SortFunc(wake, CompareUUIDsByShard)
	return changes, wake
}
