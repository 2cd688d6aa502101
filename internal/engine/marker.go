package engine

import (
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// marker is the trace that a slow attempt leaves before it ends, so that a process
// it kills leaves it behind. A fast attempt costs no row: the marker is only
// appended when the attempt has lasted Config.MarkAfter, and nobody waits for it.
type marker struct {
	t     *task
	timer Timer
	again *time.Timer // timer, if it can be used again

	mu    sync.Mutex
	over  bool
	write *store.StepWrite
	entry *journal.Entry
}

// mark arms a marker for the attempt that begins: the run's spare one, if there is one, since a timer for
// each step is a measurable part of a fast step.
func (t *task) mark() *marker {
	m := t.r.spareMarker.Swap(nil)
	if m == nil {
		m = new(marker)
	}
	m.t = t
	m.arm()
	return m
}

func (m *marker) arm() {
	after := m.t.r.e.cfg.MarkAfter
	switch clock := &m.t.r.e.clock; {
	case clock.test != nil:
		m.timer = clock.at(clock.now().Add(after), m.append)
	case m.again != nil:
		m.again.Reset(after)
	default:
		m.again = time.AfterFunc(after, m.append)
		m.timer = m.again
	}
}

func (m *marker) append() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	w := m.t.row(store.StepStarted, nil, nil)
	if entry, err := m.t.r.e.journal.AppendMarker(w); err == nil {
		m.write, m.entry = w, entry
	}
}

// settle ends the marker when the attempt is over, and learns whether it left a row.
// A marker that failed is nothing lost: the attempt's own write meets the same end.
func (m *marker) settle() error {
	if m.timer == nil {
		return nil
	}
	if m.timer.Stop() { // append was not called, and will not be
		r := m.t.r
		m.t = nil
		r.spareMarker.Store(m)
		return nil
	}
	m.mu.Lock()
	m.over = true
	entry, w := m.entry, m.write
	m.mu.Unlock()
	if entry == nil {
		return nil
	}
	committed, err := m.t.r.e.journal.SettleMarker(entry)
	if err != nil || !committed {
		return nil
	}
	switch w.Outcome {
	case store.Written:
		m.t.exists = true
	case store.Fenced:
		m.t.r.fenced(w.State)
		return ErrSuspended
	}
	return nil
}

// announce writes the marker of an at-most-once attempt before it begins. It is done
// already if another execution got further.
func (t *task) announce() (res Result, done bool, err error) {
	w := t.row(store.StepStarted, nil, nil)
	res, _, err = t.write(w)
	return res, w.Outcome == store.Adopted, err
}

// mayBegin returns why the step's function may not be called now, or nil. What the process knows by now counts: a
// write, or a Verify function, may have lasted until the lease was over, or until the run was paused or cancelled.
func (t *task) mayBegin() error {
	if t.r.e.clock.now().After(t.r.lease()) {
		t.r.lose()
	}
	return t.s.left()
}

// takeBack replaces the marker of an at-most-once attempt whose function was not called, so that the next
// execution calls it and need not ask what happened. Where that cannot be written the marker stays, and the outcome
// counts as unknown. If another execution has the run, the write is fenced.
func (t *task) takeBack() {
	w := t.row(store.StepBackoff, nil, nil)
	w.Step.NextAt = w.Step.EndedAt
	if err := t.r.e.journal.Step(t.r.durable, w); err != nil {
		t.r.logger().Warn("the started marker of a step whose function was not called could not be taken back; its outcome counts as unknown",
			telemetry.KeyStep, Shown(t.name), telemetry.KeyError, err)
	}
}
