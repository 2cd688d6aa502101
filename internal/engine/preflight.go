package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A preflight replays the history of a run against the code of this process, without a database: recorded calls return their records,
// and any other call returns ErrSuspended and is not made. So nothing is written, claimed or executed.

// A function that waits for something outside of durable calls does not return. maxPreflightTime bounds how long a function may take to replay its
// history. If many runs have such functions, the replays would take hours: once they have taken maxBlockedTime together, a function that makes no
// call for blockedPause is given up.
const (
	maxPreflightTime = 10 * time.Second
	maxBlockedTime   = time.Minute
	blockedPause     = 100 * time.Millisecond
)

// maxPauseOfBranches is how long the replay waits for branches that make no call, after the function has come to a call for which it
// would wait.
const maxPauseOfBranches = time.Second

// Preflight replays the histories of runs with the code of this process. Preflight is safe for concurrent use.
type Preflight struct {
	w       *worker
	rules   *store.VersionClaimRules // the rules of a worker of this process; nil: the Preflight does not use the database, and PinnedTo must not be called
	blocked atomic.Int64             // how long functions that did not return have taken together, in nanoseconds
}

// PreflightResult is the result of one replay.
type PreflightResult struct {
	Divergence       *store.Divergence // nil: the code fits
	NextCalls        []NextCall        // the calls that the run would make next
	NotCalled        []string          // the recorded calls with an outcome that the replay did not make, as users see them, in the order in which they began
	NeededChanges    []NextCall        // those changes declared by the code that the run needs; Kind is KindPatch, or the kind of the recorded call
	TimedOut         bool              // the function did not return in time, so nothing is known
	Took             time.Duration     // if TimedOut, how long the function was given
	FunctionReturned bool              // the function returned without a further call, with Output or Failure; in an ended run, branches that the function did not await may have made further calls
	WouldFail        bool              // the function returned Failure, and the run would fail, because it need not end for another reason
	Output           []byte
	Failure          *record.Failure
}

// NextCall is a call that a replayed run would make next, with the name that users see.
type NextCall struct {
	Name string
	Kind store.StepKind
}

// refusingStore refuses every use. A call of a method that it does not define panics, and the replay of that run fails.
type refusingStore struct{ store.Store }

var errPreflight = errors.New("durable: a preflight has no database")

func (refusingStore) Commit(context.Context, *store.Batch) error { return errPreflight }
func (refusingStore) Name() string                               { return "preflight" }

// NewPreflight returns a Preflight for the workflows of this engine.
func (e *Engine) NewPreflight(ctx context.Context) (*Preflight, error) {
	if err := e.clock.EnsureReading(ctx, e.store); err != nil {
		return nil, err
	}
	known, err := e.store.WorkflowVersions(ctx, slices.Sorted(maps.Keys(e.pinnedWorkflows)))
	if err != nil {
		return nil, err
	}
	p, err := e.newPreflightReplayer(e.clock)
	if err != nil {
		return nil, err
	}
	p.rules = store.NewVersionClaimRules(e.programVersion(), known, e.pinnedWorkflows, e.clock.Now())
	return p, nil
}

// NewPreflightAt returns a Preflight that replays as at the given time, and does not use the database.
func (e *Engine) NewPreflightAt(at time.Time) (*Preflight, error) {
	return e.newPreflightReplayer(clock.Fixed(at))
}

func (e *Engine) newPreflightReplayer(c clock.Clock) (*Preflight, error) {
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider(), 0)
	if err != nil {
		return nil, err
	}
	cfg := e.cfg
	cfg.Telemetry, cfg.Patience = tel, time.Millisecond
	own := New(refusingStore{}, cfg)
	own.clock = c
	own.tokenKey.Store(new([]byte)) // not the key of a database, so nobody can complete a callback with a token of a replay
	return &Preflight{w: newWorker(own)}, nil
}

// PinnedTo returns the other version whose workers execute the run, if the workflow is pinned and such a worker lives or has lived within the grace
// period; or else an empty string.
func (p *Preflight) PinnedTo(row *store.Run) string {
	if _, pinned := p.w.e.pinnedWorkflows[row.Workflow]; !pinned {
		return ""
	}
	if _, kept := p.rules.ReservedUntil(row.Queue, row.Workflow, row.Version, ""); !kept {
		return ""
	}
	return row.Version
}

// replayFindings collects what a replay finds.
type replayFindings struct {
	runHasEnded bool // the replayed run has ended

	mu                   sync.Mutex
	result               PreflightResult
	functionMadeNextCall bool // a next call was not made in a branch, or the function received ErrSuspended from a branch
}

func (p *replayFindings) noteNextCall(full string, kind store.StepKind, isInBranch bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.NextCalls = append(p.result.NextCalls, NextCall{naming.Display(full), kind})
	p.functionMadeNextCall = p.functionMadeNextCall || !isInBranch
}

// noteBranchAwaited notes that the function has received ErrSuspended from a branch, so that it depends on the next calls of the branch.
func (p *replayFindings) noteBranchAwaited() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.functionMadeNextCall = true
}

// functionNeedsNextCallLocked reports whether the function depends on a call that the run would make next. In a run that has ended, next
// calls of branches for which the function did not wait do not count, because open branches make no more calls once the function has
// returned. p.mu is held.
func (p *replayFindings) functionNeedsNextCallLocked() bool {
	return len(p.result.NextCalls) > 0 && (!p.runHasEnded || p.functionMadeNextCall)
}

func (p *replayFindings) noteNeededNameChange(name string, kind store.StepKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if need := (NextCall{name, kind}); !slices.Contains(p.result.NeededChanges, need) {
		p.result.NeededChanges = append(p.result.NeededChanges, need)
	}
}

func (p *replayFindings) noteDivergence(d *store.Divergence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.result.Divergence == nil {
		p.result.Divergence = d
	}
}

func (p *replayFindings) noteEnd(output []byte, failure *record.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Output, p.result.Failure = output, failure
}

// refuseInPreflight notes a call that has no outcome in the history, and returns ErrSuspended for it, or ErrDiverged if recorded calls are
// missing before it. It returns nil if the run is no replay of a preflight.
func (s *Scope) refuseInPreflight(full string, kind store.StepKind) error {
	if s.r.preflightFindings == nil {
		return nil
	}
	s.r.mu.Lock()
	if s.r.suspensionNotices.sawSuspendedBranch.hasCaller(s.r) {
		s.r.mu.Unlock()
		return ErrSuspended // the code makes this call because it treats ErrSuspended like another error; a worker would not make it
	}
	err := s.checkMissingCallsAtOpenCallLocked(full, kind, s.r.history[full])
	s.r.mu.Unlock()
	if err != nil {
		return s.reportDivergence(full, err)
	}
	s.noteGoroutineSawSuspendedBranch()
	for b := s.branch; b != nil; b = b.parent {
		b.hasNextCall.Store(true)
	}
	s.r.preflightFindings.noteNextCall(full, kind, s.branch != nil)
	return ErrSuspended
}

// IsPreflight reports whether the run is replayed by a preflight.
func (s *Scope) IsPreflight() bool { return s.r.preflightFindings != nil }

// Replay replays a run of a workflow that this process executes. A run that has ended has passed every place of Patched. If ctx ends, Replay
// returns at once, and its result says nothing.
func (p *Preflight) Replay(ctx context.Context, row *store.Run, history []store.Step, hasEnded bool) PreflightResult {
	own := *row
	own.Deadline, own.Trace = time.Time{}, ""
	r := newRun(p.w, &store.ClaimedRun{Run: own, History: history})
	r.preflightFindings = &replayFindings{runHasEnded: hasEnded}
	r.endWriteBegan.Store(true) // nothing is written
	r.noteNeededNameChanges()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		if !r.holdUnlessPayloadsReadable() {
			return
		}
		output, failure := []byte(nil), workflowGoexitFailure()
		defer func() { r.endReplay(output, failure) }() // also after a Goexit
		output, failure = r.callWorkflow()
	}()
	began := time.Now()
	stuck := !p.awaitFunction(ctx, r, returned)
	took := time.Since(began)
	if stuck {
		p.blocked.Add(int64(took))
	}
	r.suspend(suspensionSpec{cause: ErrShutdown, status: store.Pending})
	r.endOwnedCtx(ErrShutdown)
	r.idleTracker.stop()
	r.deadline.stop()
	r.preflightFindings.mu.Lock()
	defer r.preflightFindings.mu.Unlock()
	out := r.preflightFindings.result
	if out.TimedOut = stuck && out.Divergence == nil; out.TimedOut {
		out.Took = took
	}
	out.FunctionReturned = !stuck && out.Divergence == nil && !r.preflightFindings.functionNeedsNextCallLocked()
	out.NotCalled = r.notCalledNames()
	out.WouldFail = out.FunctionReturned && out.Failure != nil && !r.isForcedToEnd()
	return out
}

// awaitFunction waits until the function has returned. It reports false if it gives the function up.
func (p *Preflight) awaitFunction(ctx context.Context, r *run, returned <-chan struct{}) bool {
	pause := maxPreflightTime
	if p.blocked.Load() >= int64(maxBlockedTime) {
		pause = blockedPause
	}
	began, made := time.Now(), 0
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-returned:
			return true
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		r.mu.Lock()
		now := len(r.usedNames)
		r.mu.Unlock()
		if now == made || time.Since(began) >= maxPreflightTime {
			return false
		}
		made = now
		timer.Reset(pause)
	}
}

// endReplay notes what the function has returned, after the branches have repeated their recorded calls.
func (r *run) endReplay(output []byte, failure *record.Failure) {
	r.mu.Lock()
	awaitedBranch := r.suspensionNotices.sawSuspendedBranch.hasCaller(r)
	r.mu.Unlock()
	if awaitedBranch {
		r.preflightFindings.noteBranchAwaited()
	}
	if r.preflightFindings.isFunctionWaiting() {
		r.awaitReplayOfBranches()
	}
	r.mu.Lock()
	r.goroutines.functionReturned = true
	r.mu.Unlock()
	if r.isForcedToEnd() {
		r.awaitBranchesRepeatCalls(failure)
	}
	r.endCtx(errFunctionReturned)
	r.awaitGoroutines()
	if verb := r.verbOfEndInPreflight(failure); verb != "" && r.preflightFindings.hasFunctionReturned() && !r.isSuspended() {
		r.checkMissingCallsAtEnd(verb, failure)
	}
	if r.compensations.recordedEnd != nil && r.currentSuspension() == nil {
		r.dropUnrecordedCompensations() // it notes those that the code does not register
	}
	r.preflightFindings.noteEnd(output, failure)
}

// verbOfEndInPreflight returns the verb for how the run would end after its function has returned the failure, or nil. It returns an empty
// string if the end of the run is recorded, because a worker then does not check whether recorded calls are missing.
func (r *run) verbOfEndInPreflight(failure *record.Failure) string {
	switch {
	case r.isRepeatingBeforeEnd():
		return verbsOfEnds[store.Cancelled] // the replay does not know the deadline of the run
	case r.isForcedToEnd():
		return ""
	case failure != nil:
		return verbsOfEnds[store.Failed]
	case r.continueAsNewInput() != nil:
		return "continue as new"
	}
	return verbsOfEnds[store.Completed]
}

// isFunctionWaiting reports whether the function, if a worker executed the run, would now wait for a call that it would make next.
func (p *replayFindings) isFunctionWaiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result.Divergence == nil && p.functionMadeNextCall
}

// awaitReplayOfBranches waits until the branches have returned. In a worker, the function would wait for its next call meanwhile, so the
// branches would repeat their recorded calls, and divergences in them would be found. A branch may wait for something that the function does
// after its next call, or for the end of its context. So awaitReplayOfBranches also returns if no call was made for maxPauseOfBranches.
func (r *run) awaitReplayOfBranches() {
	made := -1
	for {
		r.mu.Lock()
		returned, now := r.goroutines.returnedChan(), len(r.usedNames)
		r.mu.Unlock()
		if returned == nil || now == made {
			return
		}
		made = now
		select {
		case <-returned:
			return
		case <-time.After(maxPauseOfBranches):
		}
	}
}

// hasFunctionReturned reports whether the function has returned without a divergence and without a call that it would make next.
func (p *replayFindings) hasFunctionReturned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result.Divergence == nil && !p.functionNeedsNextCallLocked()
}

// notCalledNames returns PreflightResult.NotCalled.
func (r *run) notCalledNames() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var missing []*store.Step
	for name, row := range r.history {
		if _, isMade := r.usedNames[name]; !isMade && row.Status.IsTerminal() && isCallOfUser(row.Kind) {
			missing = append(missing, row)
		}
	}
	slices.SortFunc(missing, func(a, b *store.Step) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
	for _, row := range missing {
		names = append(names, naming.Display(row.Name))
	}
	return names
}
