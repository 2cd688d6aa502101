package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// flowOfWrongClocks asserts that queues, limits, schedules and starts that fold go by the clock of the database, whatever the clocks of
// the processes say. inTime asserts that something came when it was due.
func flowOfWrongClocks(t *testing.T, client *durable.Engine, anyone func() *wrong, inTime func(t *testing.T, what string, due, came time.Time)) {
	t.Run("rates", func(t *testing.T) {
		const runs, count, burst = 60, 20, 2 // the rate of the limit
		must(t, "set the queue", client.SetQueue(bounded(t), "rated", durable.QueueSettings{Rate: durable.QueueRate{Count: count, Period: time.Second, Burst: burst}}))
		for i := range runs {
			anyone().do("limited", fmt.Sprint("limited", i), i)
		}
		began, called, by := make([]time.Time, 0, runs), make([]time.Time, 0, runs), make(map[string]int)
		for i := range runs {
			all, err := result(t, client, namesake[int, []moment]("limited"), fmt.Sprint("limited", i))
			must(t, "execute a run", err)
			began, called = append(began, all[0].True), append(called, all[1].True)
			by[all[1].Who]++
		}
		if len(by) != 3 {
			t.Errorf("not every process executed some: %v", by)
		}
		for what, times := range map[string][]time.Time{"runs": began, "steps": called} {
			slices.SortFunc(times, time.Time.Compare)
			if took, least := times[runs-1].Sub(times[0])+reading, (runs-burst)*time.Second/count; took < least || took > time.Minute {
				t.Errorf("%d %s began within %v, want at least %v", runs, what, took, least)
			}
		}
		t.Logf("runs=%d by=%v runs_took=%v steps_took=%v", runs, by, began[runs-1].Sub(began[0]).Round(time.Millisecond), called[runs-1].Sub(called[0]).Round(time.Millisecond))
	})

	t.Run("runs that wait in line expire", func(t *testing.T) {
		const runs, d = 6, 700 * time.Millisecond
		must(t, "set the queue", client.SetQueue(bounded(t), "closed", durable.QueueSettings{MaxExecuting: 1}))
		must(t, "pause the queue", client.PauseQueue(bounded(t), "closed"))
		realtime.Pass(1500*time.Millisecond, "every process knows the settings of a new queue within a second")
		for i := range runs {
			anyone().do("expire", fmt.Sprint("expires", i), d)
		}
		for i := range runs {
			id := fmt.Sprint("expires", i)
			_, err := result(t, client, namesake[int, []moment]("limited"), id)
			mustFail(t, err, durable.ErrTimeout, id)
			r := info(t, client, id)
			inTime(t, "the end of "+id, r.CreatedAt.Add(d), r.EndedAt)
		}
	})

	t.Run("schedules", func(t *testing.T) {
		const least = 5
		must(t, "set the schedule", client.SetSchedule(bounded(t), durable.Schedule{Name: "s", Workflow: "tick", Every: time.Second, Overlap: durable.OverlapAllow, Input: 0}))
		var fires []durable.ScheduleFire
		await(t, "the schedule to fire", func() (fired bool) {
			var err error
			fires, err = client.ScheduleFires(bounded(t), "s", durable.Page{})
			must(t, "read the fires", err)
			return len(fires) >= least
		})
		must(t, "pause the schedule", client.PauseSchedule(bounded(t), "s"))
		for i, f := range fires {
			if i > 0 && fires[i-1].At.Sub(f.At) != time.Second || f.Outcome != durable.FireStarted {
				t.Errorf("after %v came %+v", f.At, fires[max(0, i-1)])
			}
			at, err := result(t, client, namesake[int, moment]("tick"), f.ID)
			must(t, "execute a run of the schedule", err)
			inTime(t, f.ID, f.At, at.True)
		}
	})

	t.Run("starts that fold", func(t *testing.T) {
		const n = 12
		var begun time.Time // the last debounced start
		for i := range n {
			begun = time.Now()
			anyone().do("debounce", "-", i)
			anyone().do("singleton", "-", i)
		}
		type numbered struct {
			N  int
			At moment
		}
		for _, name := range []string{"debounced", "single"} {
			var runs []durable.RunInfo
			await(t, "the runs to end", func() bool {
				page, err := client.List(bounded(t), durable.Filter{Workflow: name}, durable.Page{Limit: 1000})
				must(t, "list the runs", err)
				runs = page.Runs
				return !slices.ContainsFunc(runs, func(r durable.RunInfo) bool { return r.EndedAt.IsZero() })
			})
			last, err := result(t, client, namesake[int, numbered](name), runs[0].ID)
			if err != nil || last.N != n-1 {
				t.Errorf("%s: the last of the starts was %d, the last run had %d, %v", name, n-1, last.N, err)
			}
			if name == "debounced" {
				inTime(t, "the end of the quiet time", begun.Add(500*time.Millisecond), last.At.True)
				if len(runs) != 1 {
					t.Errorf("%d runs of debounced starts, want 1", len(runs))
				}
			}
		}
	})
}
