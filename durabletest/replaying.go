package durabletest

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// replay is a run that is executed on its history only.
type replay struct {
	run     store.ID
	history map[string]*store.Step

	mu    sync.Mutex
	asked map[string]bool
	fresh []engine.Call // not in history
	wrong *engine.Call  // of another kind than is recorded
	last  time.Time     // of a call
	held  int           // attempts that last until the end
}

func (p *replay) called(c engine.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	if c.Run != p.run {
		return
	}
	row := p.history[c.Name]
	switch {
	case row == nil:
		p.fresh = append(p.fresh, c)
		return
	case row.Kind != c.Kind && p.wrong == nil:
		p.wrong = &c
	}
	p.asked[c.Name] = true
}

// attempt is every attempt of a step that has no outcome: it lasts until the end.
func (p *replay) attempt(ctx context.Context) (engine.Output, *engine.Failure) {
	p.mu.Lock()
	p.held++
	p.mu.Unlock()
	<-ctx.Done()
	return engine.Output{}, &engine.Failure{Message: "durabletest: the replay has ended"}
}

// came reports whether nothing more will be called: all that executes are attempts that
// last until the end, or everything waits.
func (p *replay) came(n *node) bool {
	rest := n.rest()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked)+len(p.fresh) == 0 || p.held != rest.Active || p.held == 0 && rest.Busy != "" || n.flying.Load() > 0 {
		p.last = time.Now()
		return false
	}
	since := time.Since(p.last)
	return since > 5*time.Millisecond && idle() || since > 200*time.Millisecond
}

func replayed(t testing.TB, w durable.Definition, x *durable.Exported, opts []Option) (v Verdict, err error) {
	t.Helper()
	set := newSettings(t, "Replay", opts)
	s, remove, err := new(template).open()
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := &replay{history: make(map[string]*store.Step), asked: make(map[string]bool), last: time.Now()}
	rows, at, err := p.rows(x)
	if err != nil {
		return v, err
	}
	pace := newPace(t, newClock(at))
	defer pace.close()
	pace.freeze(true)
	e := open(t, s, pace, &record{replay: p}, nil, set, []durable.Definition{w})
	defer e.Stop()
	// The run waits where today's code looks for it: the workflow may have moved to another queue.
	rows[0].Starts[0].Run.Queue = e.node.inner.Load().Queue(w.Name())
	for _, b := range rows {
		if err := s.Commit(t.Context(), b); err != nil { // no engine has the run, so no journal
			return v, err
		}
	}
	e.node.inner.Load().Stir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var info *durable.RunInfo
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return v, fmt.Errorf("the code neither ended nor waited within %v", patience)
		}
		came := p.came(e.node) // before the look: a run that ends in between is seen to have
		if info, err = e.Get(ctx, p.run.String()); err != nil {
			tick.Stop()
			return v, err
		}
		ended := info.Status == durable.StatusCompleted || info.Status == durable.StatusFailed || info.Status == durable.StatusExpired
		if ended || came {
			tick.Stop()
			return p.verdict(x, info), nil
		}
	}
}

// theirs is the epoch of the worker that holds the run until it is written whole.
var theirs = store.Epoch{Count: 1}

// rows makes what is written into the database: the run, held by a worker that is none; its history;
// and that it is claimable. It also returns when the run was there last.
func (p *replay) rows(x *durable.Exported) (rows []*store.Batch, at time.Time, err error) {
	var ok bool
	if p.run, ok = store.ParseID(x.Run.RunID); !ok {
		return nil, at, fmt.Errorf("its run_id %q is no UUID in canonical form", x.Run.RunID)
	}
	at = x.Run.CreatedAt
	later := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	start := &store.Start{Run: store.Run{
		ID: p.run, Name: x.Run.ID, Workflow: x.Run.Workflow, Version: x.Run.Version,
		Status: store.Running, Epoch: theirs, Owner: store.OwnedBy(store.NewID(0)), Input: compact(x.Run.Input),
		CreatedAt: x.Run.CreatedAt, StartedAt: x.Run.CreatedAt, WakeAt: x.Run.CreatedAt.Add(lease),
	}}
	history := &store.Batch{}
	for _, h := range x.History {
		if h.Kind == store.KindFailure.String() {
			continue // today's code has to come to it by itself
		}
		name := engine.Unshown(h.Name)
		kind, ok := worded(store.KindStep, h.Kind)
		status, ended, known := rowOf(kind, &h)
		if !ok || !known {
			return nil, at, fmt.Errorf("checkpoint %q is a %s that is %s, which this code does not know: export the run again", h.Name, h.Kind, h.Status)
		}
		row := store.Step{
			RunID: p.run, Name: name, Kind: kind, Status: status, Attempt: int32(h.Attempts), Epoch: theirs,
			Seq: int32(h.Seq), Output: compact(h.Output), Error: compact(h.Error), StartedAt: h.StartedAt, EndedAt: ended, NextAt: h.NextAt,
		}
		if h.Workflow != "" {
			if row.Failures, err = json.Marshal(&engine.Failures{Workflow: h.Workflow}); err != nil {
				return nil, at, err
			}
		}
		later(h.StartedAt)
		later(ended)
		if status.Terminal() {
			later(h.NextAt)
		} else if kind == store.KindChild {
			if child := p.child(&row); child != nil {
				history.Starts = append(history.Starts, child)
			}
		}
		p.history[name] = &row
		history.Steps = append(history.Steps, &store.StepWrite{Step: row})
	}
	rows = []*store.Batch{{Starts: []*store.Start{start}}}
	if history.Len() > 0 {
		rows = append(rows, history)
	}
	return append(rows, &store.Batch{Runs: []*store.RunWrite{{ID: p.run, Epoch: theirs, Status: store.Pending, WakeAt: at, Now: at}}}), at, nil
}

// rowOf is how the row of a checkpoint has it that an export shows: the rows of a sleep and of a Map are complete from
// their beginning, and nobody comes back to one whose run, or branch, has ended.
func rowOf(kind store.Kind, h *durable.ExportedStep) (status store.StepStatus, endedAt time.Time, known bool) {
	status, known = worded(store.StepStarted, h.Status)
	cancelled := h.Status == engine.StatusCancelled
	switch {
	case (kind == store.KindSleep || kind == store.KindMap) && (known || cancelled):
		return store.StepCompleted, h.StartedAt, true
	case cancelled && len(h.Error) > 0:
		return store.StepBackoff, h.StartedAt, true
	case cancelled:
		return store.StepStarted, time.Time{}, true
	}
	return status, h.EndedAt, known
}

// child stands for a child whose end the run had not seen. An export does not hold it, so it is of a
// workflow that nobody executes: the run waits for it as it did.
func (p *replay) child(row *store.Step) *store.Start {
	var text string
	if json.Unmarshal(row.Output, &text) != nil {
		return nil
	}
	id, ok := store.ParseID(text)
	if !ok {
		return nil
	}
	return &store.Start{ParentEpoch: theirs, Run: store.Run{
		ID: id, Name: row.Name, Parent: store.OwnedBy(p.run), Workflow: "durabletest.child", Queue: "durabletest.child",
		Status: store.Pending, Input: []byte("null"), CreatedAt: row.StartedAt, WakeAt: row.StartedAt.Add(lease),
	}}
}

// verdict compares what was executed with what is recorded.
func (p *replay) verdict(x *durable.Exported, info *durable.RunInfo) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := Verdict{ID: x.Run.ID}
	for _, h := range x.History {
		name := engine.Unshown(h.Name)
		if row := p.history[name]; row != nil && !p.asked[name] && row.Status.Terminal() && row.Kind != store.KindCompensation {
			v.Unasked = append(v.Unasked, h.Name)
		}
	}
	for _, c := range p.fresh {
		v.New = append(v.New, engine.Shown(c.Name))
	}
	diverges := func(where, format string, args ...any) Verdict {
		v.Diverges, v.Where, v.Why = true, engine.Shown(where), fmt.Sprintf(format, args...)
		return v
	}
	over := x.Run.Status == durable.StatusCompleted || x.Run.Status == durable.StatusFailed
	switch {
	case p.wrong != nil:
		return diverges(p.wrong.Name, "it is recorded as a %s, and the code calls a %s: give the new call another name", p.history[p.wrong.Name].Kind, p.wrong.Kind)
	case info.Err != nil && errors.Is(info.Err, durable.ErrDiverged):
		return diverges(info.Err.Step, "%s", info.Err.Message)
	case len(p.fresh) > 0 && len(v.Unasked) > 0:
		return diverges(p.fresh[0].Name, "history does not hold it, and holds %q, which the code does not ask for: if it was renamed, it would be executed again; bring back the old name", strings.Join(v.Unasked, ", "))
	case len(p.fresh) > 0 && over:
		return diverges(p.fresh[0].Name, "the run has ended, and never called it")
	case over && x.Run.Status != info.Status:
		return diverges("", "the run is %s, and would be %s now%s", x.Run.Status, info.Status, message(info))
	case x.Run.Status == durable.StatusCompleted && string(compact(x.Run.Output)) != string(info.Output):
		return diverges("", "the run's output is %s, and would be %s now", brief(x.Run.Output), brief(info.Output))
	case over && x.Run.Status == durable.StatusFailed && engine.DecodeFailure(x.Run.Error).Message != info.Err.Message:
		return diverges("", "the run failed with %q, and would fail with %q now", engine.DecodeFailure(x.Run.Error).Message, info.Err.Message)
	}
	return v
}

// worded is the value, from the first one on, that has the word.
func worded[T interface {
	~int16
	String() string
}](first T, word string) (T, bool) {
	for v := first; v.String() != T(-1).String(); v++ {
		if v.String() == word {
			return v, true
		}
	}
	return 0, false
}

// compact is a value as it was recorded: exports are indented, for people.
func compact(v jsontext.Value) jsontext.Value {
	if v != nil {
		v = v.Clone()
		_ = v.Compact() // it was read as JSON
	}
	return v
}

func message(info *durable.RunInfo) string {
	if info.Err == nil {
		return ""
	}
	return " (" + info.Err.Message + ")"
}
