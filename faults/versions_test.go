package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

func init() {
	// steady version executes runs as version Point of the code.
	scenarios["steady version"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{
			Workflows: []durable.Definition{steady(j.Ledger, 10, 10*time.Millisecond)}, Version: j.Point, Lease: time.Second, Poll: 20 * time.Millisecond, Concurrency: 8,
		})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// Row 56: two versions of the code are side by side, and processes of both are killed and come back within the minute. No run goes
// back: once the later version has executed a step of it, the earlier one executes none, also while no process of the later version
// lives. Runs of the killed earlier version go forward. No run is lost, and no acknowledged step runs again.
func TestRow56_TwoVersionsAreKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const kills, perKill = 6, 12
		l := newLedger(t)
		w := steady(l, 10, 0) // which only starts runs here
		client := engineOn(t, db.openIn(t), durable.Config{})
		versions := []string{"v1", "v2"}
		versionOf := make(map[int]string) // by process
		var workers [2]*process
		work := func(at int) {
			p := spawn(t, job{Scenario: "steady version", DB: db, Ledger: l, Point: versions[at]})
			p.expect("working")
			workers[at], versionOf[p.cmd.Process.Pid] = p, versions[at]
		}
		work(0)
		await(t, "v1 to be seen before v2", func() bool {
			all, err := client.Workers(bounded(t))
			return err == nil && len(all) == 1
		})
		work(1)
		var runs []*durable.Run[int]
		for k := range kills {
			for range perKill {
				runs = append(runs, start(t, client, w, 1, durable.ID(fmt.Sprint("run-", len(runs)))))
			}
			victim := workers[k%2]
			await(t, "the process to execute steps", func() bool {
				n := 0
				for _, e := range l.read(t) {
					if e.Pid == victim.cmd.Process.Pid {
						n++
					}
				}
				return n >= 10
			})
			victim.kill()
			if versions[k%2] == "v1" { // else its next process may take all of its runs before v2 does
				within(10*time.Second, func() bool { return len(wentForward(t, l, versionOf)) > 0 })
			}
			work(k % 2)
		}
		for _, run := range runs {
			if sum, err := run.Result(bounded(t)); err != nil || sum != 55 {
				t.Errorf("run %s: %d, %v", run.ID(), sum, err)
			}
		}
		executed, repeated := judgeSteady(t, l)
		forward, back := wentForward(t, l, versionOf), 0
		earlier, later := make(map[string]bool), make(map[string]bool)
		for _, e := range l.read(t) {
			switch versionOf[e.Pid] {
			case "v1":
				earlier[e.Run] = true
				if later[e.Run] {
					back++
					t.Errorf("v1 executed %s of run %s after v2 had", e.Step, e.Run)
				}
			case "v2":
				later[e.Run] = true
			default:
				t.Fatalf("process %d, which is not known, executed a step", e.Pid)
			}
		}
		if len(forward) == 0 {
			t.Errorf("of %d runs v1 executed %d, and %d went forward to v2: the versions did not meet", len(runs), len(earlier), len(forward))
		}
		t.Logf("runs=%d kills=%d steps=%d repeated=%d by_v1=%d forward=%d back=%d", len(runs), kills, executed, repeated, len(earlier), len(forward), back)
	})
}

// wentForward returns the runs of which v2 has executed a step after v1 had executed one. versionOf has the versions of the processes.
func wentForward(t *testing.T, l ledger, versionOf map[int]string) map[string]bool {
	t.Helper()
	earlier, forward := make(map[string]bool), make(map[string]bool)
	for _, e := range l.read(t) {
		switch v := versionOf[e.Pid]; {
		case v == "v1":
			earlier[e.Run] = true
		case v == "v2" && earlier[e.Run]:
			forward[e.Run] = true
		}
	}
	return forward
}
