package durabletest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/schedule"
)

// TestScheduleFiresWhatItsTimetableSays plays random pauses, changes, stops of workers and passing time, with two workers, and
// compares what was fired with the times that the timetable has while the schedule is not paused.
func TestScheduleFiresWhatItsTimetableSays(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		begin := at("2026-03-28T00:00:00Z").Add(time.Duration(r.IntN(86400)) * time.Second)
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })
		client := durabletest.NewWithOptions(t, nil, append(slices.Clone(opts), durabletest.StartClockAt(begin))...)
		workers := []*durabletest.Engine{client.StartAnother(w), client.StartAnother(w)}
		crons := []durable.Schedule{
			{Cron: "*/13 * * * *"}, {Cron: "30 1,2,3 * * *", Location: "Europe/Berlin"}, {Cron: "@hourly", Location: "Australia/Lord_Howe"}, {Every: 7 * time.Minute},
		}
		var table *schedule.Timetable
		var expected []string
		paused := true // until it is set
		now := client.Now()
		set := func() {
			s := crons[r.IntN(len(crons))]
			s.Name, s.Workflow, s.Input, s.Overlap, s.CatchUp = "s", "w", 1, durable.OverlapAllow, 48*time.Hour
			must(t, client.SetSchedule(quickly(t), s))
			var err error
			table, err = (&schedule.Settings{Cron: s.Cron, Every: schedule.Duration(s.Every), Location: s.Location}).Timetable("s")
			must(t, err)
		}
		set()
		paused = false
		for range 30 {
			switch n := r.IntN(10); {
			case n == 0:
				client.Advance(0)
				set()
			case n == 1 && !paused:
				client.Advance(0)
				must(t, client.PauseSchedule(quickly(t), "s"))
				paused = true
			case n == 2 && paused:
				must(t, client.ResumeSchedule(quickly(t), "s"))
				paused = false
			case n == 3: // one of the two, or both, are replaced while time passes
				for i := range 1 + r.IntN(2) {
					workers[i].Stop()
				}
			}
			d := time.Duration(r.IntN(5*3600)) * time.Second
			client.Advance(d)
			for at := table.NextAfter(now); !paused && !at.After(client.Now()); at = table.NextAfter(at) {
				expected = append(expected, fmt.Sprint(at.Format(time.RFC3339), " scheduled started"))
			}
			now = client.Now()
			workers[0].Stop()
			workers[0] = client.StartAnother(w)
			if r.IntN(2) == 0 {
				workers[1].Stop()
				workers[1] = client.StartAnother(w)
			}
			client.Advance(0) // what was missed without a worker is made up for
		}
		got := fires(t, client, "s")
		if len(expected) > 1000 { // older ones are folded
			expected, got = expected[len(expected)-1000:], got[max(0, len(got)-1000):]
		}
		slices.Sort(expected)
		expected = slices.Compact(expected)
		want(t, "fires", got, expected)
		runs := 0
		for page := (durable.Page{Limit: 1000}); ; {
			list, err := client.List(quickly(t), durable.Filter{IDPrefix: "s@"}, page)
			must(t, err)
			if runs += len(list.Runs); list.Next == "" {
				break
			}
			page.Cursor = list.Next
		}
		if len(expected) < 1000 && runs != len(expected) {
			t.Errorf("%d runs, want %d", runs, len(expected))
		}
	})
}
