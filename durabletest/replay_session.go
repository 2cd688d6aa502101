package durabletest

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/history"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// replaySession is a run that is replayed against its history.
type replaySession struct {
	run     store.UUID
	history map[string]*store.Step

	mu              sync.Mutex
	calledNames     map[string]bool
	newCalls        []engine.HookedCall // calls that the history does not hold, without the refused ones
	refusedCalls    []engine.HookedCall // calls of ended branches that the history does not hold: they return ErrCancelled, as in the run itself
	kindMismatch    *engine.HookedCall  // the first call whose kind differs from the recorded one
	lastCallTime    time.Time           // when the last call was made
	quietChecks     int                 // how often hasFinished was called since then
	blockedAttempts int                 // attempts that block until the replay ends
}

func (p *replaySession) onCall(c engine.HookedCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastCallTime, p.quietChecks = time.Now(), 0
	if c.Run != p.run {
		return
	}
	row := p.history[c.Name]
	switch {
	case c.Kind == store.KindPatch: // the code may ask this of any run
		p.calledNames[c.Name] = true
		return
	case row == nil && c.IsInEndedBranch:
		p.refusedCalls = append(p.refusedCalls, c)
		return
	case row == nil:
		p.newCalls = append(p.newCalls, c)
		return
	case row.Kind != c.Kind && p.kindMismatch == nil:
		p.kindMismatch = &c
	}
	p.calledNames[c.Name] = true
}

// blockAttempt stands for every attempt of a step that has no recorded outcome. It blocks until the replay ends.
func (p *replaySession) blockAttempt(ctx context.Context) (engine.AttemptOutput, *record.Failure) {
	p.mu.Lock()
	p.blockedAttempts++
	p.mu.Unlock()
	<-ctx.Done()
	return engine.AttemptOutput{}, &record.Failure{Message: "durabletest: the replay has ended"}
}

// minQuietChecks is how often finished must find the run quiet where the scheduler is never idle. If the process stood
// still, the time has passed although no goroutine of the run was executed; they are executed between two calls.
const minQuietChecks = 20

// hasFinished reports whether the run will make no more calls: every goroutine of the run waits, or is blocked in an
// attempt.
func (p *replaySession) hasFinished(n *engineHooks) bool {
	rest := n.describeRunsInMemory()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calledNames)+len(p.newCalls)+len(p.refusedCalls) == 0 || p.blockedAttempts != rest.ActiveCalls || p.blockedAttempts == 0 && rest.BusyRun != "" || n.activeCalls.Load() > 0 {
		p.lastCallTime, p.quietChecks = time.Now(), 0
		return false
	}
	p.quietChecks++
	since := time.Since(p.lastCallTime)
	return since > 5*time.Millisecond && isGoSchedulerIdle() || since > 200*time.Millisecond && p.quietChecks > minQuietChecks
}

// replayExport imports the export into a temporary database, executes the run, and compares.
func replayExport(t testing.TB, w durable.Definition, x *durable.Exported, opts []Option) (v ReplayResult, err error) {
	t.Helper()
	set := newSettings(t, "Replay", opts)
	s, remove, err := new(databaseTemplate).openCopy()
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := &replaySession{history: make(map[string]*store.Step), calledNames: make(map[string]bool), lastCallTime: time.Now()}
	rows, at, err := p.buildImportBatches(x)
	if err != nil {
		return v, err
	}
	pace := newClockDriver(t, newClock(at))
	defer pace.close()
	pace.setFrozen(true)
	e := startEngine(t, s, pace, &testRecorder{replay: p}, nil, set, []durable.Definition{w})
	defer e.Stop()
	for _, b := range rows {
		if err := s.Commit(t.Context(), b); err != nil { // written without a journal, because no engine owns the run
			return v, err
		}
	}
	e.hooks.engine.Load().WakeAllLoops()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	var info *durable.RunInfo
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return v, fmt.Errorf("the run neither ended nor waited within %v", runTimeout)
		}
		came := p.hasFinished(e.hooks) // read before Get, so that a run that ends in between is seen as ended
		if info, err = e.Get(ctx, p.run.String()); err != nil {
			tick.Stop()
			return v, err
		}
		ended := info.Status == durable.StatusCompleted || info.Status == durable.StatusFailed || info.Status == durable.StatusExpired || info.Diverged
		if ended || came {
			tick.Stop()
			var held []durable.Divergence
			if info.Diverged {
				if held, err = e.Divergences(ctx, p.run.String()); err != nil {
					return v, err
				}
			}
			return p.compareResult(x, info, held), nil
		}
	}
}

// importEpoch is the epoch at which the imported rows are written. The run is released from it when all rows are there.
var importEpoch = store.Epoch{Count: 1}

// buildImportBatches returns the batches that write the export into a database: the run, owned by a worker that does not exist;
// its history; and the release of the run. It also returns the latest time in the history.
func (p *replaySession) buildImportBatches(x *durable.Exported) (rows []*store.Batch, at time.Time, err error) {
	var ok bool
	if p.run, ok = store.ParseCanonicalUUID(x.Run.RunID); !ok {
		return nil, at, fmt.Errorf("its run_id %q is not a UUID in canonical form", x.Run.RunID)
	}
	at = x.Run.CreatedAt
	later := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	start := &store.StartWrite{Run: store.Run{
		UUID: p.run, Name: x.Run.ID, Workflow: x.Run.Workflow, Version: x.Run.Version,
		Status: store.Running, Epoch: importEpoch, Owner: store.ValidNullUUID(store.NewUUID(0)), Input: compactJSON(x.Run.Input),
		CreatedAt: x.Run.CreatedAt, StartedAt: x.Run.CreatedAt, WakeAt: x.Run.CreatedAt.Add(leaseDuration),
	}}
	written := &store.Batch{}
	for _, h := range x.History {
		if h.Kind == store.KindRunEnd.String() || h.Kind == store.KindKeyRenewal.String() {
			continue // today's code must fail by itself; and a replay executes no step, so it needs no keys
		}
		name := naming.ParseDisplay(h.Name)
		kind, status, ended, known := history.ParseExportedStep(h.Kind, h.Status, len(h.Error) > 0, h.StartedAt, h.EndedAt)
		if !known {
			return nil, at, fmt.Errorf("checkpoint %q is a %s that is %s, which this code does not know: export the run again", h.Name, h.Kind, h.Status)
		}
		row := store.Step{
			Run: p.run, Name: name, Kind: kind, Status: status, Attempt: int32(h.Attempts), Epoch: importEpoch,
			Seq: store.EncodeSeq(int32(h.Seq), h.InOrder), Output: compactJSON(h.Output), Error: compactJSON(h.Error), StartedAt: h.StartedAt, EndedAt: ended, NextAt: h.NextAt,
		}
		if h.Workflow != "" {
			if row.Failures, err = json.Marshal(&record.Failures{Workflow: h.Workflow}); err != nil {
				return nil, at, err
			}
		}
		later(h.StartedAt)
		later(ended)
		if status.IsTerminal() {
			later(h.NextAt)
		} else if kind == store.KindChild {
			if child := p.newPlaceholderChild(&row); child != nil {
				written.Starts = append(written.Starts, child)
			}
		}
		p.history[name] = &row
		written.Steps = append(written.Steps, &store.StepWrite{Step: row})
	}
	rows = []*store.Batch{{Starts: []*store.StartWrite{start}}}
	if written.Len() > 0 {
		rows = append(rows, written)
	}
	return append(rows, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: p.run, Epoch: importEpoch, Status: store.Pending, WakeAt: at, Now: at}}}), at, nil
}

// newPlaceholderChild returns a start of a child whose result the run had not received. The export does not hold the
// child's run, so its workflow is one that no engine executes, and the run waits for it as before.
func (p *replaySession) newPlaceholderChild(row *store.Step) *store.StartWrite {
	var text string
	if json.Unmarshal(row.Output, &text) != nil {
		return nil
	}
	id, ok := store.ParseCanonicalUUID(text)
	if !ok {
		return nil
	}
	return &store.StartWrite{ParentEpoch: importEpoch, Run: store.Run{
		UUID: id, Name: row.Name, Parent: store.ValidNullUUID(p.run), Workflow: "durabletest.child", Queue: "durabletest.child",
		Status: store.Pending, Input: []byte("null"), CreatedAt: row.StartedAt, WakeAt: row.StartedAt.Add(leaseDuration),
	}}
}

// compareResult compares the calls and the result of the replay with the export. held has the divergence of a run that is held.
func (p *replaySession) compareResult(x *durable.Exported, info *durable.RunInfo, held []durable.Divergence) ReplayResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := ReplayResult{ID: x.Run.ID}
	for _, h := range x.History {
		name := naming.ParseDisplay(h.Name)
		if row := p.history[name]; row != nil && !p.calledNames[name] && row.Status.IsTerminal() && row.Kind != store.KindCompensation {
			v.NotCalled = append(v.NotCalled, h.Name)
		}
	}
	for _, c := range p.newCalls {
		v.NewCalls = append(v.NewCalls, naming.Display(c.Name))
	}
	renamed := p.findRenamedRefusedCall(v.NotCalled)
	diverges := func(where, format string, args ...any) ReplayResult {
		v.Diverged, v.Step, v.Reason = true, naming.Display(where), fmt.Sprintf(format, args...)
		return v
	}
	over := x.Run.Status == durable.StatusCompleted || x.Run.Status == durable.StatusFailed
	switch {
	case p.kindMismatch != nil:
		return diverges(p.kindMismatch.Name, "the history holds a %s of this name, and the code calls a %s: give the new call another name", p.history[p.kindMismatch.Name].Kind, p.kindMismatch.Kind)
	case len(held) > 0:
		v.Diverged, v.Step, v.Reason = true, held[0].Call, held[0].Reason
		return v
	case info.Err != nil && errors.Is(info.Err, durable.ErrDiverged):
		return diverges(info.Err.Step, "%s", info.Err.Message)
	case len(p.newCalls) > 0 && len(v.NotCalled) > 0:
		return diverges(p.newCalls[0].Name, "the history does not hold this call, and holds %q, which the code does not make: if the call was renamed, it would be executed again: restore the old name", strings.Join(v.NotCalled, ", "))
	case renamed != "":
		return diverges(renamed, "the history does not hold this call, and its branch, which a choice ended, no longer makes a recorded call: if the call was renamed, restore the old name")
	case len(p.newCalls) > 0 && over:
		return diverges(p.newCalls[0].Name, "the run has ended, and its history does not hold this call: remove the call")
	case over && x.Run.Status != info.Status:
		return diverges("", "the run is %s, and would be %s now%s", x.Run.Status, info.Status, runErrorSuffix(info))
	case x.Run.Status == durable.StatusCompleted && string(compactJSON(x.Run.Output)) != string(info.Output):
		return diverges("", "the run's output is %s, and would be %s now", formatPayload(x.Run.Output), formatPayload(info.Output))
	case over && x.Run.Status == durable.StatusFailed && record.DecodeFailure(x.Run.Error).Message != info.Err.Message:
		return diverges("", "the run failed with %q, and would fail with %q now", record.DecodeFailure(x.Run.Error).Message, info.Err.Message)
	}
	return v
}

// findRenamedRefusedCall returns the name of a refused call in whose scope a recorded call was not made, or "" if there is none. In code that
// did not change, an ended branch makes all its recorded calls before its first refused call.
func (p *replaySession) findRenamedRefusedCall(notCalled []string) string {
	scope := func(full string) string { return full[:strings.LastIndex(full, naming.Separator)+1] }
	for _, c := range p.refusedCalls {
		if slices.ContainsFunc(notCalled, func(shown string) bool { return scope(naming.ParseDisplay(shown)) == scope(c.Name) }) {
			return c.Name
		}
	}
	return ""
}

// compactJSON returns a value without the indentation of the export, as it was recorded.
func compactJSON(v jsontext.Value) jsontext.Value {
	if v != nil {
		v = v.Clone()
		_ = v.Compact() // cannot fail: the value was read as JSON
	}
	return v
}

func runErrorSuffix(info *durable.RunInfo) string {
	if info.Err == nil {
		return ""
	}
	return " (" + info.Err.Message + ")"
}
