package durable

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

const (
	preflightPageSize = 200 // how many runs a preflight lists at once

	// firstPreflightPart is how many of them it reads at first with their inputs and histories, which it holds in memory together, for each
	// processor. It then reads more or fewer at once, so that they have about preflightPartBytes bytes of payloads.
	firstPreflightPart = 8
	maxPreflightPart   = 25 // small enough that several processors have work with one page
	preflightPartBytes = 4 << 20
)

// PreflightReport is the result of [Engine.Preflight].
type PreflightReport struct {
	Runs     []PreflightRun // the examined runs, the newest first
	Fit      int            // the number of runs that the code fits
	Failing  int            // the number of runs that would fail without a further call
	Diverged int            // the number of runs that would be held
	Pinned   int            // the number of runs that workers of another version execute; see PreflightRun.PinnedTo. They count nowhere else
	Unknown  int            // the number of runs of workflows that Config.Workflows does not list, and of runs whose function did not return in time; see PreflightRun.Reason
	Needed   []NeededChange // the declared changes that live runs still need; see NeededChange
}

// PreflightRun is what [Engine.Preflight] found for one run.
type PreflightRun struct {
	ID       string
	Workflow string
	Status   Status
	// PinnedTo is the version to which the run is [Pinned], if this is not the version of this process, and a worker of that
	// version lives or has lived within the grace period. Workers of that version then execute the run, and the next fields
	// describe what would happen to the run if no such worker lived. PinnedTo is empty for all other runs.
	PinnedTo string
	Unknown  bool     // the preflight could not examine the run: see PreflightReport.Unknown
	Next     []string // the calls that the run would make next, with their scopes; empty if the function returns
	Err      string   // the failure with which the function returns without a further call; empty if there is none
	// NotCalled holds the recorded calls that the replay did not make, such as calls declared with [Retired] and the calls of branches
	// that the code no longer starts. Such a call alone is no divergence. After a repair, it can be a call that the run makes later.
	NotCalled []string
	Diverged  bool
	Call      string         // the call that does not fit; empty if the input of the run does not decode, or if the replay of Engine.ReplayExport ends in another way than the run did
	Reason    string         // a text that names the recorded call, and the call that the code made instead; if Unknown is true, why the run was not examined
	Output    jsontext.Value // what the function returns now, if Engine.ReplayExport finds that the output differs from the run's; otherwise empty
}

// NeededChange counts the live runs that need one change that the code declares. Name is the old name of a [Renamed] call, the
// name of a [Retired] call, or the ID for which [Ctx.Patched] returns false. A declaration for which [Engine.Preflight] has no
// NeededChange can be removed, unless you may retry, repair or fork ended runs that need the declaration: without it, these runs
// are held.
type NeededChange struct {
	Workflow string
	Name     string
	Kind     Kind // KindPatch, or the kind of the recorded call; empty for a branch
	Runs     int
}

// Preflight replays the histories of all live runs that match the filter against the code of this engine's Config.Workflows. Preflight
// reports which runs the code fits, and which calls each of these runs would make next. Preflight also reports which runs would fail
// without a further call, and which runs would be held, at which call and why. A run that Preflight reports as failing does not prove that
// the new code is wrong: if the last recorded step of the run has failed, the run may fail with the old code, too. If new code fails or
// panics, its runs are also reported as failing. Call Preflight before a deploy, from the new program; Preflight does not need an active
// [Engine.Run]. Preflight writes nothing, claims nothing and executes no step: a call that is not recorded returns [ErrSuspended], as in a
// run that leaves the process. Preflight executes the workflow functions, so their code outside of steps takes effect. A run whose function
// does not return within 10 seconds is reported as unknown. Once such functions have taken a minute together, a run whose function makes no
// call for 100 milliseconds is reported as unknown, too. A run that is [Pinned] to another version is counted separately; see
// [PreflightRun].PinnedTo. If ctx ends, Preflight returns at once, with an error that wraps ctx.Err() and the cause of the end of ctx.
func (e *Engine) Preflight(ctx context.Context, f Filter) (*PreflightReport, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("preflight: %w", err)
	}
	if len(f.Status) == 0 {
		f.Status = liveStatuses
	}
	filter, err := e.convertFilter(ctx, f)
	if err != nil {
		return nil, err
	}
	replays, err := e.inner.NewPreflight(ctx)
	if err != nil {
		return nil, fmt.Errorf("preflight: %w", err)
	}
	p := preflightCall{e: e, replays: replays, neededCounts: make(map[NeededChange]int), partSize: firstPreflightPart}
	var before uuid.UUID
	for {
		rows, err := e.inner.Store().ListRuns(ctx, filter, before, preflightPageSize)
		if err == nil && len(rows) > 0 {
			before = rows[len(rows)-1].UUID
			err = p.replayPage(ctx, rows)
		}
		if err != nil {
			return nil, fmt.Errorf("preflight: %w", err)
		}
		if len(rows) < preflightPageSize {
			return p.makeReport(), nil
		}
	}
}

// preflightCall is one preflight under way.
type preflightCall struct {
	e       *Engine
	replays *engine.Preflight
	out     PreflightReport

	mu           sync.Mutex
	partSize     int // how many runs to read next
	neededCounts map[NeededChange]int
}

// replayPage replays runs that ListRuns has returned. One part of them is read while others are replayed.
func (p *preflightCall) replayPage(callCtx context.Context, rows []*store.Run) error {
	ctx, cancel := context.WithCancelCause(callCtx)
	defer cancel(nil)
	found := make([]*PreflightRun, len(rows))
	next := 0
	takePart := func() (from, to int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		from, next = next, min(next+p.partSize, len(rows))
		return from, next
	}
	var replaying sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		replaying.Go(func() {
			for from, to := takePart(); from < to && ctx.Err() == nil; from, to = takePart() {
				if err := p.replayPart(ctx, rows[from:to], found[from:to]); err != nil {
					cancel(err)
				}
			}
		})
	}
	replaying.Wait()
	switch {
	case callCtx.Err() != nil:
		return store.ContextError(callCtx)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	for _, r := range found {
		if r != nil {
			p.addToReport(r)
		}
	}
	return nil
}

// replayPart replays some runs. It returns nothing for a run that has ended or was deleted meanwhile.
func (p *preflightCall) replayPart(ctx context.Context, listed []*store.Run, found []*PreflightRun) error {
	refs, ids := make([]store.RunRef, len(listed)), make([]uuid.UUID, len(listed))
	for i, r := range listed {
		refs[i], ids[i] = store.RunRef{UUIDOrName: r.UUID.String()}, r.UUID
	}
	steps, err := p.e.inner.Store().Histories(ctx, ids)
	if err != nil {
		return err
	}
	rows, err := p.e.inner.Store().GetRunsSelectingPayloads(ctx, refs, store.WithInput)
	if err != nil {
		return err
	}
	p.choosePartSize(rows, steps)
	histories := make(map[uuid.UUID][]store.Step, len(rows))
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n].Run == steps[0].Run {
			n++
		}
		histories[steps[0].Run], steps = steps[:n], steps[n:]
	}
	for i, row := range rows {
		if row == nil {
			continue
		}
		history := histories[row.UUID]
		if row.Epoch != listed[i].Epoch {
			// The run was claimed, repaired or continued as new since it was listed: its history can belong to another generation than its input.
			row, history, err = p.e.inner.ReadWithHistory(ctx, refs[i].UUIDOrName, store.WithInput)
			switch {
			case errors.Is(err, ErrNotFound):
				continue
			case err != nil:
				return err
			}
		}
		if row.Status.IsTerminal() {
			continue
		}
		r, _ := p.replayRun(ctx, row, history, false)
		if ctx.Err() != nil {
			break
		}
		r.PinnedTo = p.replays.PinnedTo(row)
		found[i] = &r
	}
	return ctx.Err()
}

func (p *preflightCall) addToReport(r *PreflightRun) {
	switch {
	case r.PinnedTo != "":
		p.out.Pinned++
	case r.Unknown:
		p.out.Unknown++
	case r.Diverged:
		p.out.Diverged++
	case r.Err != "":
		p.out.Failing++
	default:
		p.out.Fit++
	}
	p.out.Runs = append(p.out.Runs, *r)
}

// choosePartSize decides how many runs are read next, by the payloads of those that were read.
func (p *preflightCall) choosePartSize(rows []*store.Run, steps []store.Step) {
	size := 0
	for _, r := range rows {
		if r != nil {
			size += len(r.Input)
		}
	}
	for i := range steps {
		size += len(steps[i].Output) + len(steps[i].Error) + len(steps[i].Failures)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case size > preflightPartBytes:
		p.partSize = max(1, len(rows)*preflightPartBytes/size)
	case len(rows) == p.partSize:
		p.partSize = min(2*p.partSize, maxPreflightPart)
	}
}

// replayRun replays one run. The result of the engine is empty if the run's workflow is not known here.
func (p *preflightCall) replayRun(ctx context.Context, row *store.Run, history []store.Step, hasEnded bool) (PreflightRun, engine.PreflightResult) {
	r := PreflightRun{ID: row.NameOrUUID(), Workflow: row.Workflow, Status: Status(row.Status.String())}
	if !p.e.inner.HasWorkflow(row.Workflow) {
		r.Unknown, r.Reason = true, fmt.Sprintf("Config.Workflows does not list the workflow %q", row.Workflow)
		return r, engine.PreflightResult{}
	}
	got := p.replays.Replay(ctx, row, history, hasEnded)
	r.Unknown, r.NotCalled = got.TimedOut, got.NotCalled
	if got.TimedOut {
		r.Reason = fmt.Sprintf("the workflow function has not returned within %v: it waits for something else than durable calls, or computes for long", got.Took.Round(time.Millisecond))
	}
	if got.WouldFail {
		r.Err = got.Failure.Message
	}
	for _, c := range got.NextCalls {
		r.Next = append(r.Next, c.Name)
	}
	if d := got.Divergence; d != nil {
		r.Diverged, r.Call, r.Reason, r.Next, r.Err = true, d.Call, d.Detail, nil, ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range got.NeededChanges {
		need := NeededChange{Workflow: row.Workflow, Name: c.Name}
		if c.Kind != 0 {
			need.Kind = Kind(c.Kind.String())
		}
		p.neededCounts[need]++
	}
	return r, got
}

func (p *preflightCall) makeReport() *PreflightReport {
	for change, runs := range p.neededCounts {
		change.Runs = runs
		p.out.Needed = append(p.out.Needed, change)
	}
	slices.SortFunc(p.out.Needed, func(l, r NeededChange) int {
		return cmp.Or(cmp.Compare(l.Workflow, r.Workflow), cmp.Compare(l.Name, r.Name), cmp.Compare(l.Kind, r.Kind))
	})
	return &p.out
}
