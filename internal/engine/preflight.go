package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A preflight replays the history of a run against the code of this process, without a database: recorded calls return their
// records, and any other call returns ErrSuspended instead of being made. So nothing is written, claimed or executed.

// maxPreflightTime bounds how long a function may take to replay its history.
const maxPreflightTime = 10 * time.Second

// Preflight replays the histories of runs with the code of this process. Preflight is safe for concurrent use.
type Preflight struct {
	w     *worker
	rules *store.VersionClaimRules // those of a worker of this process
}

// PreflightResult is the result of one replay.
type PreflightResult struct {
	Divergence       *store.Divergence // nil: the code fits
	NextCalls        []NextCall        // the calls that the run would make next
	NeededChanges    []NextCall        // of the changes that the code declares, those that the run needs: Kind is KindPatch, or that of the recorded call
	TimedOut         bool              // the function did not return within maxPreflightTime, so nothing is known
	FunctionReturned bool              // the function returned without a further call, with Output or Failure
	WouldFail        bool              // it returned Failure, and the run would fail: it need not end for another reason
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
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider(), 0)
	if err != nil {
		return nil, err
	}
	cfg := e.cfg
	cfg.Telemetry, cfg.Patience = tel, time.Millisecond
	own := New(refusingStore{}, cfg)
	own.clock = e.clock
	known, err := e.store.WorkflowVersions(ctx, slices.Sorted(maps.Keys(e.pinnedWorkflows)))
	if err != nil {
		return nil, err
	}
	return &Preflight{newWorker(own), store.NewVersionClaimRules(e.programVersion(), known, e.pinnedWorkflows, e.clock.Now())}, nil
}

// PinnedTo returns the other version whose workers execute the run, if the workflow is pinned and such a worker lives or has lived within the grace
// period; or else an empty string.
func (p *Preflight) PinnedTo(row *store.Run) string {
	if _, pinned := p.w.e.pinnedWorkflows[row.Workflow]; !pinned {
		return ""
	}
	if _, kept := p.rules.ReservedUntil(row.Queue, row.Workflow, row.Version); !kept {
		return ""
	}
	return row.Version
}

// replayFindings collects what a replay finds.
type replayFindings struct {
	mu     sync.Mutex
	result PreflightResult
}

func (p *replayFindings) noteNextCall(full string, kind store.StepKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.NextCalls = append(p.result.NextCalls, NextCall{naming.Display(full), kind})
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
	err := s.checkMissingCallsAtOpenCallLocked(full, kind, s.r.history[full])
	s.r.mu.Unlock()
	if err != nil {
		return s.reportDivergence(full, err)
	}
	s.r.preflightFindings.noteNextCall(full, kind)
	return ErrSuspended
}

// Replay replays a run of a workflow that this process executes.
func (p *Preflight) Replay(row *store.Run, history []store.Step) PreflightResult {
	own := *row
	own.Deadline, own.Trace = time.Time{}, ""
	r := newRun(p.w, &store.ClaimedRun{Run: own, History: history})
	r.preflightFindings = new(replayFindings)
	r.endWriteBegan.Store(true) // nothing is written
	r.noteNeededNameChanges()
	returned := make(chan struct{})
	go func() {
		defer close(returned) // also after a Goexit
		if !r.holdUnlessPayloadsReadable() {
			return
		}
		output, failure := r.callWorkflow()
		r.mu.Lock()
		r.goroutines.functionReturned = true
		r.mu.Unlock()
		r.endCtx(errFunctionReturned)
		r.awaitGoroutines()
		if r.preflightFindings.hasNoFinding() && !r.isSuspended() && !r.isForcedToEnd() {
			verb := "complete"
			switch {
			case failure != nil:
				verb = "fail"
			case r.continueAsNewInput() != nil:
				verb = "continue as new"
			}
			r.checkMissingCallsAtEnd(verb, failure)
		}
		r.preflightFindings.noteEnd(output, failure)
	}()
	timer := time.NewTimer(maxPreflightTime)
	defer timer.Stop()
	stuck := false
	select {
	case <-returned:
	case <-timer.C:
		stuck = true
	}
	r.suspend(suspensionSpec{cause: ErrShutdown, status: store.Pending})
	r.endOwnedCtx(ErrShutdown)
	r.idleTracker.stop()
	r.deadline.stop()
	r.preflightFindings.mu.Lock()
	defer r.preflightFindings.mu.Unlock()
	out := r.preflightFindings.result
	out.TimedOut = stuck && out.Divergence == nil
	out.FunctionReturned = !stuck && out.Divergence == nil && len(out.NextCalls) == 0
	out.WouldFail = out.FunctionReturned && out.Failure != nil && !r.isForcedToEnd()
	return out
}

func (p *replayFindings) hasNoFinding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result.Divergence == nil && len(p.result.NextCalls) == 0
}

// noteNeededNameChanges notes which declared changes of names the history needs, or the idempotency keys of calls that a repair has dropped.
func (r *run) noteNeededNameChanges() {
	def := r.workflowDefinition()
	noteRenamed := func(last string, kind store.StepKind) {
		for _, old := range def.PreviousCallNames {
			if old == last {
				r.preflightFindings.noteNeededNameChange(last, kind)
			}
		}
	}
	for name, row := range r.history {
		last := name[len(scopePrefix(name)):]
		if def.RetiredCalls[last] {
			r.preflightFindings.noteNeededNameChange(last, row.Kind)
		}
		noteRenamed(last, row.Kind)
	}
	for name := range r.keyRenewals.keyNames {
		if r.history[name] == nil {
			noteRenamed(name[len(scopePrefix(name)):], store.KindStep)
		}
	}
}
