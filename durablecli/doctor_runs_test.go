package durablecli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Each state of runs, workers, queues and schedules that the doctor knows is found, and no other.
func TestDoctorFindings(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	alive := durable.WorkerInfo{ID: "w1", Name: "one", Version: "v1", Capacity: 4, State: durable.WorkerRunning, HeartbeatAt: ago(time.Second), Workflows: []string{"order"}}
	full := alive
	full.ID, full.Active, full.Version = "w2", 4, "v2"
	dead := durable.WorkerInfo{ID: "w3", HeartbeatAt: ago(time.Hour)}
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
		findings := append(x.workersFindings(len(c.runs) > 0), x.runFindings(c.runs)...)
		if got := bad(findings); strings.Join(got, ",") != strings.Join(c.want, ",") {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
		for _, f := range findings {
			if f.Level != fine && f.Fix == "" {
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

func bad(findings []finding) (levels []string) {
	for _, f := range findings {
		if f.Level != fine {
			levels = append(levels, string(f.Level)+" "+f.Check)
		}
	}
	return levels
}

// The types of events that --type knows are those of the library.
func TestAllEventTypesAreKnown(t *testing.T) {
	source, err := os.ReadFile("../events.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\tEvent\w+ +EventType = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(declared) < 9 {
		t.Fatalf("found %q in events.go", declared)
	}
	for _, d := range declared {
		if !slices.Contains(eventTypes, d[1]) {
			t.Errorf("eventTypes lacks %q", d[1])
		}
	}
}
