package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.InMemory(func() int { return pgtest.Main(m) })) }

// evidenceOf returns the runs as readRuns finds them in a database.
func evidenceOf(runs []durable.RunInfo, now time.Time) (found evidence) {
	for _, r := range runs {
		found.liveCount++
		switch {
		case r.Status == durable.StatusPaused:
			found.paused = append(found.paused, r)
		default:
			found.newest = append(found.newest, r)
			if !r.WakeAt.IsZero() && now.Sub(r.WakeAt) > overdueAfter {
				found.overdue = append(found.overdue, r)
			}
		}
		if r.Diverged || r.Status != durable.StatusPaused && r.Reason != "" && r.Crashes > 0 {
			found.held = append(found.held, r)
		}
	}
	return found
}

// Each state of runs, workers, queues and schedules that the doctor knows is found, and no other.
func TestDoctorFindings(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	alive := durable.WorkerInfo{ID: "w1", Name: "one", Version: "v1", Capacity: 4, State: durable.WorkerRunning, HeartbeatAt: ago(time.Second), DeadAt: now.Add(9 * time.Second), Workflows: []string{"order"}}
	full := alive
	full.ID, full.Active, full.Version = "w2", 4, "v2"
	dead := durable.WorkerInfo{ID: "w3", HeartbeatAt: ago(time.Hour), DeadAt: ago(59 * time.Minute)}
	slow := alive // its Config.Lease is two minutes
	slow.HeartbeatAt, slow.DeadAt = ago(35*time.Second), now.Add(85*time.Second)
	fast := alive
	fast.ClockAhead = -2 * time.Second
	draining := alive
	draining.State = durable.WorkerDraining
	run := func(status durable.Status, change func(*durable.RunInfo)) durable.RunInfo {
		r := durable.RunInfo{ID: "r", Workflow: "order", Queue: "default", Status: status, WakeAt: ago(time.Minute)}
		if change != nil {
			change(&r)
		}
		return r
	}
	for name, c := range map[string]struct {
		workers []durable.WorkerInfo
		runs    []durable.RunInfo
		want    []string // the levels and checks that are not fine
	}{
		"nothing":          {[]durable.WorkerInfo{alive}, nil, nil},
		"no worker":        {nil, nil, []string{"warning workers"}},
		"no worker, a run": {nil, []durable.RunInfo{run(durable.StatusWaiting, func(r *durable.RunInfo) { r.WakeAt = time.Time{} })}, []string{"problem workers"}},
		"a full worker":    {[]durable.WorkerInfo{alive, full}, nil, []string{"warning workers", "warning versions"}},
		"a dead worker":    {[]durable.WorkerInfo{alive, dead}, nil, []string{"warning dead workers"}},
		"a long lease": {[]durable.WorkerInfo{slow}, []durable.RunInfo{
			run(durable.StatusPending, nil), run(durable.StatusRunning, func(r *durable.RunInfo) { r.Owner = "w1" }),
		}, nil},
		"a wrong clock":    {[]durable.WorkerInfo{fast}, nil, []string{"warning clocks of workers"}},
		"a due run":        {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPending, nil)}, nil},
		"a run just due":   {[]durable.WorkerInfo{dead}, []durable.RunInfo{run(durable.StatusPending, func(r *durable.RunInfo) { r.WakeAt = now })}, []string{"problem workers", "warning dead workers"}},
		"another workflow": {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPending, func(r *durable.RunInfo) { r.Workflow = "other" })}, []string{"problem unexecuted runs"}},
		"a draining worker": {
			[]durable.WorkerInfo{draining},
			[]durable.RunInfo{run(durable.StatusPending, nil), run(durable.StatusPending, nil)},
			[]string{"problem unexecuted runs"},
		},
		"a run of a dead worker": {[]durable.WorkerInfo{alive, dead}, []durable.RunInfo{run(durable.StatusRunning, func(r *durable.RunInfo) { r.Owner = "w3" })}, []string{"warning dead workers", "problem dead workers' runs"}},
		"a run of a live worker": {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusRunning, func(r *durable.RunInfo) { r.Owner = "w1" })}, nil},
		"a held run":             {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPending, func(r *durable.RunInfo) { r.Reason, r.Crashes = "rejected", 1 })}, []string{"problem held runs"}},
		"a run that was held":    {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPending, func(r *durable.RunInfo) { r.Reason = "rejected" })}, nil},
		"a suspect run":          {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPending, func(r *durable.RunInfo) { r.Crashes = 1 })}, []string{"warning suspect runs"}},
		"a crash loop":           {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPaused, func(r *durable.RunInfo) { r.Crashes = 5 })}, []string{"problem crash loops"}},
		"a diverged run":         {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPaused, func(r *durable.RunInfo) { r.Diverged = true })}, []string{"problem diverged runs"}},
		"a paused run":           {[]durable.WorkerInfo{alive}, []durable.RunInfo{run(durable.StatusPaused, func(r *durable.RunInfo) { r.PausedBy, r.Crashes = "ann", 1 })}, nil},
	} {
		x := examination{now: now, workers: c.workers}
		findings := append(x.workersFindings(len(c.runs) > 0), x.runFindings(evidenceOf(c.runs, now))...)
		if got := bad(findings); strings.Join(got, ",") != strings.Join(c.want, ",") {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
		for _, f := range findings {
			if f.Level != Fine && f.Fix == "" {
				t.Errorf("%s: %s has no fix: %s", name, f.Check, f.Finding)
			}
		}
	}

	x := examination{now: now, queues: []durable.QueueInfo{
		{Name: "a"}, {Name: "b", PausedAt: ago(time.Hour), PauseReason: "audit"}, {Name: "c", OldestDue: ago(time.Hour)}, {Name: "d", OldestDue: ago(time.Second)},
	}}
	if got := bad(x.queueFindings()); len(got) != 2 {
		t.Errorf("queues: %q", got)
	}
	if got := bad(scheduleFindings([]durable.ScheduleInfo{{Name: "a"}, {Name: "b", Problem: "p"}, {Name: "c", PausedAt: now}, {Name: "d", DeclaredButDeleted: true}})); len(got) != 3 {
		t.Errorf("schedules: %q", got)
	}
}

// The commands in fixes reach what the finding names, whatever it is called.
func TestFixesQuoteNames(t *testing.T) {
	t.Parallel()
	at := time.Now()
	findings := append((&examination{now: at, queues: []durable.QueueInfo{{Name: "--help", PausedAt: at}}}).queueFindings(),
		scheduleFindings([]durable.ScheduleInfo{{Name: "a; b", PausedAt: at}, {Name: "-x", DeclaredButDeleted: true}})...)
	for i, want := range []string{"durable queue resume -- '--help', ", "durable schedule resume 'a; b', ", "durable schedule reset -- '-x', "} {
		if !strings.HasPrefix(findings[i].Fix, want) {
			t.Errorf("the fix is %s", findings[i].Fix)
		}
	}
}

func bad(findings []Finding) (levels []string) {
	for _, f := range findings {
		if f.Level != Fine {
			levels = append(levels, string(f.Level)+" "+f.Check)
		}
	}
	return levels
}

// Runs that nobody executes are found however many newer ones there are, and a worker's are not.
func TestExamineFindsOldRuns(t *testing.T) {
	overdueAfter, mostExamined = 0, 5
	t.Cleanup(func() { overdueAfter, mostExamined = 30*time.Second, 10_000 })
	url := pgtest.ServerURL(t)
	for name, open := range map[string]func() (durable.Store, error){
		"sqlite": func() (durable.Store, error) { return sqlite.Open(filepath.Join(t.TempDir(), "doctor.db")) },
		"postgres": func() (durable.Store, error) {
			return postgres.Open(t.Context(), url, postgres.Schema(pgtest.LendSchema(t, "migration", "secret")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			executed := durable.Define("executed", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Sleep("long", 1<<40) })
			missing := durable.Define("missing", func(*durable.Ctx, int) (int, error) { return 0, nil })
			e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{executed}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- e.Run(ctx) }()
			t.Cleanup(func() {
				cancel()
				if err := errors.Join(<-done, s.Close()); err != nil {
					t.Error(err)
				}
			})
			if _, err := missing.Start(ctx, e, 0, durable.ID("oldest")); err != nil {
				t.Fatal(err)
			}
			for i := range 2 * mostExamined {
				if _, err := executed.Start(ctx, e, 0, durable.ID(fmt.Sprint("newer-", i)), durable.Delay(1<<40)); err != nil {
					t.Fatal(err)
				}
			}
			for workers := []durable.WorkerInfo(nil); len(workers) == 0; runtime.Gosched() {
				if workers, err = e.Workers(ctx); err != nil {
					t.Fatal(err)
				}
			}
			findings, err := Examine(ctx, e)
			if err != nil {
				t.Fatal(err)
			}
			if got := bad(findings); len(got) != 1 || got[0] != "problem unexecuted runs" {
				t.Errorf("found %q", got)
			}
			if !slices.ContainsFunc(findings, func(f Finding) bool {
				return strings.Contains(f.Finding, "workflow missing in queue default, such as oldest")
			}) {
				t.Errorf("the run is not named: %+v", findings)
			}
		})
	}
}
