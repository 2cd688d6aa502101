package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// muteSchedules is a store that loses replies to commits of schedules, and repeats these, as the stores do.
type muteSchedules struct {
	durable.Store
	lose int // so many replies are lost from now on
}

func (s *muteSchedules) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	for ; s.lose > 0; s.lose-- {
		if err := s.Store.ChangeSchedule(ctx, u); err != nil {
			return err
		}
	}
	return s.Store.ChangeSchedule(ctx, u)
}

// A backfill whose replies were lost starts each run once, and its result counts them as started.
func TestABackfillWhoseReplyIsLostCountsWhatItStarted(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		s := &muteSchedules{Store: inner}
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })
		e := engineOn(t, s)
		if err := e.SetSchedule(within(t), w.Schedule(1, durable.Schedule{Name: "s", Cron: "@hourly"})); err != nil {
			t.Fatal(err)
		}
		from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		read(w.Start(within(t), e, 1, durable.ID("s@2020-01-01T02:00:00Z")))(t)
		read(w.Start(within(t), e, 1, durable.ID("s@2020-01-08T02:00:00Z")))(t)
		read(e.Backfill(within(t), "s", from, from.Add(time.Hour)))(t)

		s.lose = 2
		got := read(e.Backfill(within(t), "s", from, from.Add(200*time.Hour)))(t)
		if want := (durable.BackfillResult{Started: 197, AlreadyFired: 1, IDTaken: 2}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if runs := read(e.List(within(t), durable.Filter{IDPrefix: "s@"}, durable.Page{Limit: 1000}))(t); len(runs.Runs) != 200 {
			t.Errorf("there are %d runs of 200 times", len(runs.Runs))
		}
	})
}
