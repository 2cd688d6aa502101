package engine

import (
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
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
	if entry, err := m.t.r.e.journal.Mark(w); err == nil {
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
	committed, err := m.t.r.e.journal.Settle(entry)
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
