package durablecli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

const (
	// deadAfter is how old the heartbeat of a live worker is at most, with a margin: a third of the default lease passes between two.
	deadAfter = 30 * time.Second
	// overdueAfter is how long a run may be due before the doctor asks why no worker executes it.
	overdueAfter = 30 * time.Second
	// mostExamined bounds the live runs that the doctor reads.
	mostExamined = 10_000
)

// examineRuns returns what is wrong with workers, runs, queues and schedules.
func (s *session) examineRuns(ctx context.Context) ([]finding, error) {
	workers, err := s.engine.Workers(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := s.engine.Queues(ctx)
	if err != nil {
		return nil, err
	}
	schedules, err := s.engine.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	live := durable.Filter{Status: wording.StatusGroups["live"]}
	runs, next, err := listRuns(ctx, s.engine, live, mostExamined, "")
	if err != nil {
		return nil, err
	}
	x := examination{now: s.now(), workers: workers, queues: queues}
	findings := x.workersFindings(len(runs) > 0)
	if next != "" {
		findings = append(findings, finding{fine, "runs", fmt.Sprintf("the newest %d live runs were read, and there are more", len(runs)), ""})
	}
	findings = append(findings, x.runFindings(runs)...)
	findings = append(findings, x.queueFindings()...)
	return append(findings, scheduleFindings(schedules)...), nil
}

// examination holds what the doctor compares runs with.
type examination struct {
	now     time.Time
	workers []durable.WorkerInfo
	queues  []durable.QueueInfo
}

func (x *examination) alive(w *durable.WorkerInfo) bool { return x.now.Sub(w.HeartbeatAt) <= deadAfter }

func (x *examination) workersFindings(waiting bool) (findings []finding) {
	living, dead := 0, 0
	versions := make(map[string]bool)
	for i := range x.workers {
		w := &x.workers[i]
		if !x.alive(w) {
			dead++
			continue
		}
		living++
		versions[w.Version] = true
		if w.Active >= w.Capacity {
			findings = append(findings, finding{warning, "workers", fmt.Sprintf("worker %s uses all of its %d slots", w.Name, w.Capacity), "start further workers, or raise Config.Concurrency"})
		}
	}
	switch {
	case living == 0 && waiting:
		findings = append(findings, finding{problem, "workers", "no worker lives, and runs wait", "start a process that calls Engine.Run"})
	case living == 0:
		findings = append(findings, finding{warning, "workers", "no worker lives", "start a process that calls Engine.Run"})
	default:
		findings = append(findings, finding{fine, "workers", wording.Count(living, "worker lives", "workers live"), ""})
	}
	if dead > 0 {
		findings = append(findings, finding{warning, "dead workers", fmt.Sprintf("%s no heartbeat for %v", wording.Count(dead, "worker has had", "workers have had"), deadAfter), "find out why the process died; its runs are taken over, and its entry disappears by itself"})
	}
	if len(versions) > 1 {
		findings = append(findings, finding{warning, "versions", fmt.Sprintf("workers of %d versions live: %s", len(versions), namesOrAll(slices.Sorted(maps.Keys(versions)), "")), "finish the deployment, if none is under way"})
	}
	return findings
}

// tally counts runs of one kind, and keeps the ID of one.
type tally struct {
	n  int
	id string
}

func (t *tally) add(r *durable.RunInfo) {
	if t.n++; t.n == 1 {
		t.id = r.ID
	}
}

// finding returns the finding for the runs, as in "3 runs are suspect, such as order-42".
func (t *tally) finding(level severity, check, one, many, fix string) finding {
	return finding{level, check, fmt.Sprintf("%s, such as %s", wording.Count(t.n, one, many), t.id), fix}
}

func (x *examination) runFindings(runs []durable.RunInfo) (findings []finding) {
	var ownerless, held, suspect, crashed, diverged tally
	unexecuted := make(map[string]*tally) // by what is missing
	ids := make(map[string]bool)
	for i := range x.workers {
		if x.alive(&x.workers[i]) {
			ids[x.workers[i].ID] = true
		}
	}
	for i := range runs {
		r := &runs[i]
		switch {
		case r.Status == durable.StatusRunning && !ids[r.Owner] && x.now.Sub(r.WakeAt) > overdueAfter:
			ownerless.add(r)
		case r.Diverged:
			diverged.add(r)
		case r.Status == durable.StatusPaused && r.Crashes > 0 && r.PausedBy == "":
			crashed.add(r)
		case r.Status == durable.StatusPaused:
		case r.Reason != "" && r.Crashes > 0: // a reason from before the last checkpoint is past
			held.add(r)
		case r.Crashes > 0:
			suspect.add(r)
		}
		if missing := x.missing(r); missing != "" {
			if unexecuted[missing] == nil {
				unexecuted[missing] = new(tally)
			}
			unexecuted[missing].add(r)
		}
	}
	add := func(t *tally, level severity, check, one, many, fix string) {
		if t.n > 0 {
			findings = append(findings, t.finding(level, check, one, many, fix))
		}
	}
	add(&ownerless, problem, "dead workers' runs", "run belongs to a dead worker and was not taken over", "runs belong to dead workers and were not taken over", "start a worker that executes the workflow; durable get shows which one had the run")
	add(&held, problem, "held runs", "run is held", "runs are held", "durable get shows the reason: mend what it names, or deploy code that fits the run; the run is tried again by itself")
	add(&diverged, problem, "diverged runs", "run is held because the code does not fit its history", "runs are held because the code does not fit their histories", "durable get names the call: deploy code that fits, and the run continues by itself")
	add(&crashed, problem, "crash loops", "run was paused because its process died again and again", "runs were paused because their processes died again and again", "durable get shows the reason: mend the cause, and then durable resume")
	add(&suspect, warning, "suspect runs", "run has lost its process since its last checkpoint", "runs have lost their processes since their last checkpoints", "look for out-of-memory kills and panics in the log of the worker that had the run (durable get)")
	for _, missing := range slices.Sorted(maps.Keys(unexecuted)) {
		add(unexecuted[missing], problem, "unexecuted runs", "run is due, and no worker executes "+missing, "runs are due, and no worker executes "+missing, "start a worker with this workflow in Config.Workflows, and with the queue, if it has Config.Queues")
	}
	if len(findings) == 0 {
		findings = append(findings, finding{fine, "runs", "none of " + wording.Count(len(runs), "live run", "live runs") + " is held, suspect or without a worker", ""})
	}
	return findings
}

// missing returns the workflow and the queue of a run that is due for long, and that no live worker executes; else an empty text.
func (x *examination) missing(r *durable.RunInfo) string {
	if r.Status == durable.StatusPaused || r.Status == durable.StatusRunning || r.WakeAt.IsZero() || x.now.Sub(r.WakeAt) < overdueAfter {
		return ""
	}
	for i := range x.workers {
		w := &x.workers[i]
		if x.alive(w) && w.State == durable.WorkerRunning && !w.Quiet && (w.Workflows == nil || slices.Contains(w.Workflows, r.Workflow)) && (w.Queues == nil || slices.Contains(w.Queues, r.Queue)) {
			return ""
		}
	}
	return fmt.Sprintf("workflow %s in queue %s", r.Workflow, r.Queue)
}

func (x *examination) queueFindings() (findings []finding) {
	const longWait = 5 * time.Minute
	for i := range x.queues {
		q := &x.queues[i]
		switch {
		case !q.PausedAt.IsZero():
			findings = append(findings, finding{warning, "queues", fmt.Sprintf("queue %s is paused since %s, %d wait%s", q.Name, wording.Exact(q.PausedAt), q.Waiting, reasonText(q.PauseReason, q.PausedBy)), "durable queue resume " + q.Name + ", if the reason is over"})
		case !q.OldestDue.IsZero() && x.now.Sub(q.OldestDue) > longWait:
			findings = append(findings, finding{warning, "queues", fmt.Sprintf("the oldest run in queue %s is due since %s, and waits for: %s", q.Name, wording.About(x.now.Sub(q.OldestDue)), cmp.Or(string(q.BlockedBy), "its key")), "raise the bounds with durable queue set, or add workers"})
		}
	}
	return findings
}

func reasonText(reason, actor string) string {
	if why := wording.ByWhom(reason, actor); why != "" {
		return ": " + why
	}
	return ""
}

func scheduleFindings(schedules []durable.ScheduleInfo) (findings []finding) {
	for _, i := range schedules {
		switch {
		case i.DeclaredButDeleted:
			findings = append(findings, finding{warning, "schedules", fmt.Sprintf("schedule %s was deleted, and code declares it: it does not fire", i.Name), "durable schedule reset " + i.Name + ", or remove it from the code"})
		case i.Problem != "":
			findings = append(findings, finding{problem, "schedules", fmt.Sprintf("schedule %s cannot fire: %s", i.Name, i.Problem), "correct it with durable schedule set, or in the code"})
		case !i.PausedAt.IsZero():
			findings = append(findings, finding{warning, "schedules", fmt.Sprintf("schedule %s is paused since %s%s", i.Name, wording.Exact(i.PausedAt), reasonText(i.PauseReason, i.PausedBy)), "durable schedule resume " + i.Name + ", if the reason is over"})
		}
	}
	return findings
}
