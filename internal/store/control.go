package store

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Order is one pause, resume, cancel or termination, of one or more runs and their descendants.
type Order struct {
	Verb   Verb
	Scope  Scope // of a cancel
	Runs   []uuid.UUID
	Now    time.Time
	Reason string
	Actor  string
	Error  []byte // of runs that the order ends at once
	Freeze bool   // a resume moves timers and deadlines by the time that the run was paused

	// Answers, one for each of Runs, are filled in by Plan.
	Answers []OrderAnswer
	// Done and Requested are the runs that the answers count in Changed and Requested, ancestors
	// first, up to MaxOrderIDs of each. Plan fills them in.
	Done, Requested []uuid.UUID
}

// MaxOrderIDs bounds Order.Done and Order.Requested.
const MaxOrderIDs = 1000

// Verb is what is ordered.
type Verb uint8

// The verbs.
const (
	VerbPause  Verb = 1
	VerbResume Verb = 2
	VerbCancel Verb = 3
	// VerbTerminate ends the tree at once, whatever its runs are doing. Their owners' writes are fenced.
	VerbTerminate Verb = 4
)

// Scope is how far a cancel reaches.
type Scope uint8

// The scopes. The zero value is the whole tree.
const (
	WholeTree    Scope = 0
	NotStarted   Scope = 1 // the run, and of its descendants those that were never executed
	RunItself    Scope = 2
	ChildrenOnly Scope = 3 // what is beneath, but for detached children, at each level: their parent ends
	Attached     Scope = 4 // the tree, but for detached runs, at each level, the run itself too: its parent's branch ends
)

// OrderAnswer says what an order did for one of its runs.
type OrderAnswer struct {
	Found   bool
	Status  Status // of the run itself, before the order
	Control Bits   // before the order
	Changed int    // runs, itself included, that are now as ordered
	// Requested counts runs that are executed somewhere, or will be, to end or leave as ordered.
	Requested int
}

// Node is one run of a tree, as Plan sees it.
type Node struct {
	ID       uuid.UUID
	Parent   uuid.NullUUID
	Status   Status
	Epoch    Epoch
	Control  Bits
	Owner    uuid.NullUUID
	Detached bool
}

// WakeMode is what becomes of wake_at.
type WakeMode int16

// The modes.
const (
	WakeKeep  WakeMode = 0
	WakeNever WakeMode = 1
	WakeNow   WakeMode = 2
)

// Note is which of a run's columns for people change. The numbers are used in SQL.
type Note int16

// The notes.
const (
	NoteNone   Note = 0
	NotePause  Note = 1 // reason, paused_by, paused_at are set
	NoteResume Note = 2 // those become NULL, and crashes 0
	NoteCancel Note = 3 // cancel_reason, cancelled_by, cancelled_at are set, and those of a pause become NULL
)

// Change is one guarded update that an order leads to: of the run with Was's ID, Status,
// Epoch and Control, which is locked.
type Change struct {
	Was     Node
	Status  Status
	Control Bits
	Wake    WakeMode
	Note    Note
	// Detached is the new value of the column: a cancel that leaves a child alone detaches
	// it, so that its parent's end does not cancel it either.
	Detached bool
}

// Ends reports whether the run is ended by this change: it gets EndedAt and the order's
// Error, and loses its owner.
func (c *Change) Ends() bool { return c.Status.Terminal() }

// Plan says what the order changes. The nodes are all that is at and beneath Order.Runs,
// and all that is above those runs, each once, as they are now and stay until the
// changes are made. It answers the changes in the order of (shard, id), and whose waits for a child may
// be over: parents to wake, as the end of a child does.
//
// It is pure, and both stores use it, so that a cascade means the same in both.
func (o *Order) Plan(nodes []Node) (changes []Change, wake []uuid.UUID) {
	p := planner{order: o, was: make(map[uuid.UUID]*Node, len(nodes)), now: make(map[uuid.UUID]*planned, len(nodes)), below: make(map[uuid.UUID][]*planned)}
	for i := range nodes {
		n := &nodes[i]
		p.was[n.ID] = n
		p.now[n.ID] = &planned{Node: *n}
	}
	for i := range nodes {
		if n := &nodes[i]; n.Parent.Valid {
			p.below[n.Parent.UUID] = append(p.below[n.Parent.UUID], p.now[n.ID])
		}
	}
	o.Answers = make([]OrderAnswer, len(o.Runs))
	o.Done, o.Requested = nil, nil
	for i, id := range o.Runs {
		n := p.now[id]
		if n == nil {
			continue
		}
		a := &o.Answers[i]
		a.Found, a.Status, a.Control = true, p.was[id].Status, p.was[id].Control
		p.answer = a
		switch o.Verb {
		case VerbPause:
			p.pause(n, PausedItself)
		case VerbResume:
			p.resume(n, PausedItself)
		case VerbCancel:
			p.cancel(n)
		case VerbTerminate:
			p.terminate(n)
		}
	}
	return p.result()
}

type planned struct {
	Node
	wake WakeMode
	note Note
}

type planner struct {
	order  *Order
	answer *OrderAnswer
	was    map[uuid.UUID]*Node
	now    map[uuid.UUID]*planned
	below  map[uuid.UUID][]*planned
}

// done counts a run that is as ordered by this order.
func (p *planner) done(n *planned) {
	p.answer.Changed++
	if len(p.order.Done) < MaxOrderIDs {
		p.order.Done = append(p.order.Done, n.ID)
	}
}

// requested counts a run that will be as ordered.
func (p *planner) requested(n *planned) {
	p.answer.Requested++
	if len(p.order.Requested) < MaxOrderIDs {
		p.order.Requested = append(p.order.Requested, n.ID)
	}
}

// pause sets the bit on n, and the inherited one on everything beneath. A run that is to
// be cancelled is left to it; what its cancel has spared beneath it is paused.
func (p *planner) pause(n *planned, bit Bits) {
	switch {
	case bit == PausedItself && (n.Status.Terminal() || n.Control&CancelAsked != 0):
		return // the caller is told, nothing is done
	case n.Status.Terminal() || n.Control&CancelAsked != 0:
	default:
		if n.Control&bit == 0 {
			if bit == PausedItself || n.Control&PausedItself == 0 {
				n.note = NotePause // its own reason goes before an ancestor's
			}
			if n.Status == Running {
				p.requested(n)
			} else {
				n.Status, n.wake = Paused, WakeNever
				p.done(n)
			}
			n.Control |= bit
		}
	}
	for _, child := range p.below[n.ID] {
		p.pause(child, PausedAbove)
	}
}

// resume clears the bit on n, and, where n is then not paused any more, the inherited one
// beneath it. An ended run, or one that is to be cancelled, is no obstacle on the way down: what
// was paused with a run goes on with its resume, also if the run has come to its end meanwhile.
// A run that inherited its pause from one that is gone since is resumed by itself.
func (p *planner) resume(n *planned, bit Bits) {
	if bit == PausedItself && !p.pausedAbove(n) {
		bit |= PausedAbove
	}
	switch {
	case n.Status.Terminal():
		if bit == PausedItself { // a run above keeps what is beneath it paused
			return
		}
	case n.Control&CancelAsked != 0 && bit == PausedAbove:
	default:
		if n.Control&bit == 0 {
			return
		}
		n.Control &^= bit
		if n.Control&PausedAnyhow != 0 {
			return
		}
		n.note = NoteResume
		if n.Status == Paused {
			n.Status, n.wake = Pending, WakeNow
		}
		p.done(n)
	}
	for _, child := range p.below[n.ID] {
		p.resume(child, PausedAbove)
	}
}

// pausedAbove reports whether some run above keeps it paused.
func (p *planner) pausedAbove(n *planned) bool {
	for n.Parent.Valid {
		if n = p.now[n.Parent.UUID]; n == nil {
			return false
		}
		if !n.Status.Terminal() && n.Control&PausedItself != 0 {
			return true
		}
	}
	return false
}

func (p *planner) cancel(n *planned) {
	switch p.order.Scope {
	case RunItself, NotStarted:
		alone := !n.Status.Terminal() && n.Control&PausedAnyhow == PausedItself
		p.cancelOne(n)
		if p.order.Scope == NotStarted {
			p.beneath(n, func(child *planned) bool { return true })
		}
		for _, child := range p.below[n.ID] {
			if !child.Status.Terminal() && child.Control&CancelAsked == 0 {
				child.Detached = true
			}
			if alone { // what is beneath was paused with it, and with nothing else
				p.resume(child, PausedAbove)
			}
		}
	case ChildrenOnly:
		p.beneath(n, func(child *planned) bool { return !child.Detached })
	case Attached:
		if !n.Detached {
			p.cancelOne(n)
			p.beneath(n, func(child *planned) bool { return !child.Detached })
		}
	default:
		p.cancelOne(n)
		p.beneath(n, func(child *planned) bool { return true })
	}
}

// beneath cancels what is chosen beneath n; beneath what is not chosen, nothing.
func (p *planner) beneath(n *planned, chosen func(*planned) bool) {
	for _, child := range p.below[n.ID] {
		if !chosen(child) {
			continue
		}
		if p.order.Scope != NotStarted || child.Epoch.Count == 0 {
			p.cancelOne(child)
		}
		p.beneath(child, chosen)
	}
}

// cancelOne ends a run that was never executed, and asks any other to end: its worker, or
// the next one, undoes what it did. A run without a checkpoint may have done something too: a
// step can take effect and leave no row. The first reason is kept.
func (p *planner) cancelOne(n *planned) {
	if n.Status.Terminal() {
		return
	}
	if n.Control&CancelAsked != 0 {
		p.requested(n)
		return
	}
	n.Control = CancelAsked
	n.note = NoteCancel
	switch {
	case n.Status == Running:
		p.requested(n)
	case n.Epoch.Count > 0:
		n.Status, n.wake = Pending, WakeNow
		p.requested(n)
	default:
		n.Status, n.wake = Cancelled, WakeNever
		p.done(n)
	}
}

// terminate ends n and all its descendants at once, also those that are executed and those
// whose cancel was requested before, whose first reason is kept.
func (p *planner) terminate(n *planned) {
	if !n.Status.Terminal() {
		if n.Control&CancelAsked == 0 {
			n.note = NoteCancel
		}
		n.Status, n.Control, n.wake = Cancelled, CancelAsked, WakeNever
		p.done(n)
	}
	for _, child := range p.below[n.ID] {
		p.terminate(child)
	}
}

func (p *planner) result() (changes []Change, wake []uuid.UUID) {
	woken := make(map[uuid.UUID]bool)
	for id, n := range p.now {
		was := p.was[id]
		if was.Status == n.Status && was.Control == n.Control && was.Detached == n.Detached {
			continue
		}
		changes = append(changes, Change{Was: *was, Status: n.Status, Control: n.Control, Wake: n.wake, Note: n.note, Detached: n.Detached})
		if n.Status.Terminal() && n.Parent.Valid {
			if parent := p.now[n.Parent.UUID]; parent == nil || !parent.Status.Terminal() {
				woken[n.Parent.UUID] = true
			}
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return compareIDs(a.Was.ID, b.Was.ID) })
	for id := range woken {
		wake = append(wake, id)
	}
	slices.SortFunc(wake, compareIDs)
	return changes, wake
}

func compareIDs(a, b uuid.UUID) int {
	return cmp.Or(cmp.Compare(ShardOf(a), ShardOf(b)), bytes.Compare(a[:], b[:]))
}
