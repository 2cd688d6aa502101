package durabletest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// The runs of a schedule have its priority and its group key, whether code declares them or an operator sets them. Schedules shows
// them, and the bounds of the key hold.
func TestRunsOfAScheduleHaveItsPriorityAndGroupKey(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("report", func(c *durable.Ctx, _ int) (int, error) { return 1, c.Sleep("work", 90*time.Minute) })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:30:00Z", durabletest.Configure(func(cfg *durable.Config) {
			cfg.QueueSettings = map[string]durable.QueueSettings{"reports": {MaxInProgressPerKey: 1, Depth: 1}}
			cfg.Schedules = []durable.Schedule{w.Schedule(1, durable.Schedule{
				Name: "hourly", Every: time.Hour, Overlap: durable.OverlapAllow, Queue: "reports", Priority: 2, GroupKey: "acme", Weight: 3,
			})}
		}))...)
		e.Advance(4*time.Hour + time.Minute)
		var states []string
		for _, id := range []string{"hourly@2026-01-01T01:00:00Z", "hourly@2026-01-01T02:00:00Z", "hourly@2026-01-01T03:00:00Z", "hourly@2026-01-01T04:00:00Z"} {
			run, err := e.Get(quickly(t), id)
			must(t, err)
			state := string(run.Status)
			if run.Place != nil { // those that have ended have none
				state += fmt.Sprintf(" %s, key %s, weight %d", run.Place.State, run.Place.GroupKey, run.Place.Weight)
			}
			if states = append(states, state); run.Priority != 2 {
				t.Errorf("%s: priority %d", id, run.Priority)
			}
		}
		// Each takes 90 minutes, one after the other; the Depth of 1 refuses no run of a schedule.
		want(t, "runs", states, []string{
			"completed", "completed", "waiting outside, key acme, weight 3", "pending behind key, key acme, weight 3",
		})
		s := scheduleOf(t, e, "hourly").Schedule
		if s.Priority != 2 || s.GroupKey != "acme" || s.Weight != 3 {
			t.Errorf("%+v", s)
		}
		s.Priority, s.GroupKey, s.Weight = -1, "", 0
		must(t, e.SetSchedule(quickly(t), s))
		id, err := e.TriggerSchedule(quickly(t), "hourly")
		must(t, err)
		run, err := e.Get(quickly(t), id)
		must(t, err)
		if run.Priority != -1 || run.Place == nil || run.Place.GroupKey != "" {
			t.Errorf("priority %d, place %+v", run.Priority, run.Place)
		}
		if s := scheduleOf(t, e, "hourly"); s.Schedule.Priority != -1 || s.Declared.Priority != 2 || s.Declared.GroupKey != "acme" {
			t.Errorf("%+v", s)
		}
	})
}

// A schedule with a group key starts no run outside of the bounds of its queue: not if the queue has no settings yet, nor if
// it loses them. The times are not lost.
func TestAScheduleWithAGroupKeyNeedsAQueueWithSettings(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("report", func(*durable.Ctx, int) (int, error) { return 1, nil })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:30:00Z")...)
		s := w.Schedule(1, durable.Schedule{Name: "hourly", Every: time.Hour, Queue: "reports", GroupKey: "acme"})
		err := e.SetSchedule(quickly(t), s)
		if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), `GroupKey "acme" in queue "reports"`) {
			t.Fatalf("SetSchedule without the queue: %v", err)
		}
		must(t, e.SetQueue(quickly(t), "reports", durable.QueueSettings{MaxInProgressPerKey: 1}))
		must(t, e.SetSchedule(quickly(t), s))
		must(t, e.DeleteQueue(quickly(t), "reports"))
		e.Advance(time.Hour)
		if got := scheduleOf(t, e, "hourly"); !strings.Contains(got.Problem, "SetQueue") || len(got.LastFires) != 0 {
			t.Fatalf("the queue was deleted: %+v", got)
		}
		_, err = e.TriggerSchedule(quickly(t), "hourly")
		_, err2 := e.Backfill(quickly(t), "hourly", at("2025-12-31T00:00:00Z"), at("2026-01-01T00:00:00Z"))
		if !errors.Is(err, durable.ErrInvalidConfig) || !errors.Is(err2, durable.ErrInvalidConfig) {
			t.Errorf("trigger: %v, backfill: %v", err, err2)
		}
		must(t, e.SetQueue(quickly(t), "reports", durable.QueueSettings{MaxInProgressPerKey: 1}))
		e.Advance(2 * time.Minute)
		want(t, "fires", fires(t, e, "hourly"), []string{"2026-01-01T01:00:00Z scheduled started"})
		if got := scheduleOf(t, e, "hourly"); got.Problem != "" {
			t.Errorf("%+v", got)
		}
	})
}
