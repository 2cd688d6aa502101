package engine

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Sleep waits until the time that due answers for the present, which is recorded before
// the wait begins: whoever continues the run waits for the same time. It costs one
// row. A long wait leaves memory.
func (s *Scope) Sleep(name string, site uintptr, due func(now time.Time) time.Time) error {
	r := s.r
	full := s.prefix + name
	recorded, err := s.claimName(full, store.KindSleep, site)
	if err != nil {
		return err
	}
	if recorded == nil {
		if err := CheckName("sleep", name); err != nil {
			return err
		}
		if r.idle.nested() {
			return nestedError(r, full)
		}
		if recorded, err = s.recordSleep(full, due); err != nil {
			return err
		}
	}
	if r.e.clock.until(recorded.NextAt) <= 0 {
		return nil
	}
	r.live.Store(true) // what follows was not executed before
	return r.idle.until(s, recorded.NextAt, nil)
}

func (s *Scope) recordSleep(full string, due func(time.Time) time.Time) (*store.Step, error) {
	r := s.r
	r.idle.busy()
	defer r.idle.done()
	t := &task{r: r, s: s, spec: &Spec{Kind: store.KindSleep}, name: full, attempt: 1, first: r.e.clock.now()}
	w := t.row(store.StepCompleted, nil, nil)
	w.Step.NextAt = due(t.first).Truncate(time.Microsecond)
	if _, _, err := t.write(w); err != nil {
		return nil, err
	}
	if w.Outcome == store.Adopted {
		return w.Recorded, nil
	}
	return &w.Step, nil
}

func nestedError(r *run, full string) error {
	return fmt.Errorf("%w: %q in run %q: return from the outer step first, and call this one from the workflow function",
		ErrNestedStep, Shown(full), r.row.Address())
}
