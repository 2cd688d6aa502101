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

	mu    sync.Mutex
	over  bool
	write *store.StepWrite
	entry *journal.Entry
}

func (m *marker) arm() {
	if clock := &m.t.r.e.clock; clock.test != nil {
		m.timer = clock.at(clock.now().Add(m.t.r.e.cfg.MarkAfter), m.append)
	} else {
		m.timer = time.AfterFunc(m.t.r.e.cfg.MarkAfter, m.append)
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
	if m.timer == nil || m.timer.Stop() {
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
