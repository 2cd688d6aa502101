package durable_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// timeoutsSeen is a store that keeps the timeouts that it is given, and the times until when runs have to begin.
type timeoutsSeen struct {
	durable.Store
	timeouts []time.Duration
}

func (s *timeoutsSeen) Commit(ctx context.Context, b *store.Batch) error {
	for _, start := range b.Starts {
		s.timeouts = append(s.timeouts, start.Timeout)
		if start.Place != nil && !start.Place.StartBy.IsZero() {
			s.timeouts = append(s.timeouts, start.Place.StartBy.Sub(start.Run.WakeAt))
		}
	}
	return s.Store.Commit(ctx, b)
}

func (s *timeoutsSeen) SetDeadline(ctx context.Context, d *store.DeadlineChangeRequest) error {
	s.timeouts = append(s.timeouts, d.Timeout)
	return s.Store.SetDeadline(ctx, d)
}

// A duration that is shorter than the database can record counts as a microsecond, and not as none.
func TestTimeoutsAreAtLeastAMicrosecond(t *testing.T) {
	s := &timeoutsSeen{Store: openStore(t)}
	e := engineOn(t, s)
	w := durable.Define("w", double)
	ctx := within(t)
	read(w.Start(ctx, e, 1, durable.Timeout(1), durable.Delay(time.Hour)))(t)
	read(w.Start(ctx, e, 1, durable.ID("run"), durable.StartBy(1), durable.Timeout(time.Hour), durable.Delay(time.Hour)))(t)
	if err := e.SetTimeout(ctx, "run", 1); err != nil {
		t.Fatal(err)
	}
	if err := e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: "s", Cron: "@daily", Timeout: 1})); err != nil {
		t.Fatal(err)
	}
	s.timeouts = append(s.timeouts, orFail(e.Schedules(ctx))(t)[0].Schedule.Timeout)
	if want := []time.Duration{time.Microsecond, time.Hour, time.Microsecond, time.Microsecond, time.Microsecond}; !slices.Equal(s.timeouts, want) {
		t.Errorf("the store is given %v, want %v", s.timeouts, want)
	}
}
