package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// startBySlate is a slate with one run that must begin by a time. It counts how often the mark of that time is removed.
type startBySlate struct {
	*slate
	by      time.Time
	removed int
}

func (s *startBySlate) QueuePlaceOfRun(context.Context, uuid.UUID) (*store.QueuedRun, error) {
	return &store.QueuedRun{StartBy: s.by}, nil
}

func (s *startBySlate) ClearStartByDeadline(context.Context, uuid.UUID, store.Epoch) (bool, error) {
	s.removed++
	return true, nil
}

// A run that is late, or that is claimed while its process shuts down, keeps the mark of the time by which it must begin: its
// function is not called, so whoever claims the run next checks the time again.
func TestOnlyARunThatBeginsLosesTheMarkOfItsStartBy(t *testing.T) {
	for _, c := range []struct {
		name      string
		late      time.Duration
		suspended bool
		begins    bool
		status    store.Status
	}{
		{name: "in time", late: -time.Minute, begins: true},
		{name: "late", late: time.Minute, status: store.Expired},
		{name: "in time, in a drain", late: -time.Minute, suspended: true},
		{name: "late, in a drain", late: time.Minute, suspended: true, status: store.Expired},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &startBySlate{slate: new(slate)}
			r := newLoneRun(t, s, store.ClaimedRun{Run: store.Run{Control: store.HasStartBy}})
			s.by = r.e.clock.Now().Add(-c.late)
			if c.suspended {
				r.suspend(suspensionSpec{cause: ErrShutdown, status: store.Pending})
			}
			if begins := r.checkStartBy(); begins != c.begins || s.removed > 0 != c.begins {
				t.Errorf("%s: begins %v, the mark was removed %d times", c.name, begins, s.removed)
			}
			if end := r.forcedEnd; (end != nil) != (c.status != 0) || end != nil && end.status != c.status {
				t.Errorf("%s: the run must end with %+v, want %s", c.name, end, c.status)
			}
		})
	}
}
