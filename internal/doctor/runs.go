package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

var (
	// overdueAfter is how long a run may be due before the doctor asks why no worker executes it.
	overdueAfter = 30 * time.Second
	// mostExamined bounds the runs of each kind that the doctor reads.
	mostExamined = 10_000
)

const (
	// mostDue is of how many workflows and queues the doctor reads the run that has been due for the longest time.
	mostDue = 100
	// toleratedSkew is how far the clock of a worker may differ from the database's. A slow heartbeat reads it wrong by half of its round trip.
	toleratedSkew = time.Second
	// searchTime bounds the search for live runs to which no index leads.
	searchTime = time.Second
)

// Examine returns what is wrong with the workers, runs, queues and schedules of the engine's database, by its clock.
func Examine(ctx context.Context, e *durable.Engine) ([]Finding, error) {
	now, err := e.Now(ctx)
	if err != nil {
		return nil, err
	}
	x := examination{now: now}
	if x.workers, err = e.Workers(ctx); err != nil {
		return nil, err
	}
	if x.queues, err = e.Queues(ctx); err != nil {
		return nil, err
	}
	schedules, err := e.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := readRuns(ctx, e, now)
	if err != nil {
		return nil, err
	}
	findings := append(x.workersFindings(runs.liveCount > 0), x.runFindings(runs)...)
	findings = append(findings, x.queueFindings()...)
	return append(findings, scheduleFindings(schedules)...), nil
}

// evidence is what the doctor reads of the live runs.
type evidence struct {
	liveCount int // how many there are, at least
	// paused, held and due are found by indexes, however many runs there are.
	paused, held []durable.RunInfo
	overdue      []durable.RunInfo // those that are overdue, the oldest of each workflow and queue
	newest       []durable.RunInfo // of the live ones that are not paused
	isPartial    bool              // there are further live runs
}

func readRuns(ctx context.Context, e *durable.Engine, now time.Time) (found evidence, err error) {
	counts, err := e.StatusCounts(ctx)
	if err != nil {
		return found, err
	}
	for _, c := range counts {
		if c.Status != durable.StatusFailed && c.Status != durable.StatusExpired {
			found.liveCount += c.Runs
		}
	}
	if found.paused, _, err = listRuns(ctx, e, durable.Filter{Status: []durable.Status{durable.StatusPaused}}); err != nil {
		return found, err
	}
	if found.held, _, err = listRuns(ctx, e, durable.Filter{Held: true}); err != nil {
		return found, err
	}
	live := durable.Filter{Status: []durable.Status{durable.StatusPending, durable.StatusRunning, durable.StatusWaiting}}
	if found.newest, found.isPartial, err = listRuns(ctx, e, live); err != nil {
		return found, err
	}
	due, err := e.OldestDue(ctx)
	if err != nil {
		return found, err
	}
	var ids []string
	for _, d := range due[:min(len(due), mostDue)] {
		if now.Sub(d.Since) > overdueAfter {
			ids = append(ids, d.RunID)
		}
	}
	if len(ids) > 0 {
		page, err := e.List(ctx, durable.Filter{RunID: ids}, durable.Page{Limit: mostDue})
		if err != nil {
			return found, err
		}
		found.overdue = page.Runs
	}
	return found, nil
}

// listRuns returns the newest runs that match, and whether there are more.
func listRuns(ctx context.Context, e *durable.Engine, f durable.Filter) (runs []durable.RunInfo, more bool, err error) {
	for page := (durable.RunPage{}); ; {
		if page, err = e.List(ctx, f, durable.Page{Limit: min(1000, mostExamined-len(runs)), Cursor: page.Next, MaxTime: searchTime}); err != nil {
			return nil, false, err
		}
		runs = append(runs, page.Runs...)
		if page.Next == "" || len(runs) >= mostExamined || !page.SearchedTo.IsZero() {
			return runs, page.Next != "", nil
		}
	}
}

// examination holds what the doctor compares runs with.
type examination struct {
	now     time.Time
	workers []durable.WorkerInfo
	queues  []durable.QueueInfo
}

func (x *examination) isAlive(w *durable.WorkerInfo) bool {
	return !wording.IsWorkerDead(x.now, w)
}

func (x *examination) workersFindings(waiting bool) (findings []Finding) {
	living, dead := 0, 0
	versions := make(map[string]bool)
	for i := range x.workers {
		w := &x.workers[i]
		if !x.isAlive(w) {
			dead++
			continue
		}
		living++
		versions[w.Version] = true
		if w.ClockAhead.Abs() > toleratedSkew {
			findings = append(findings, Finding{Warning, "clocks of workers", fmt.Sprintf("the clock of worker %s differs by %v from the database's", w.Name, w.ClockAhead.Abs().Round(time.Millisecond)), "set it by NTP: the library uses the database's clock, but time.Now in your code, and logs, use this one"})
		}
		if w.Active >= w.Capacity {
			findings = append(findings, Finding{Warning, "workers", fmt.Sprintf("worker %s uses all of its %d slots", w.Name, w.Capacity), "start further workers, or raise Config.Concurrency"})
		}
	}
	switch {
	case living == 0 && waiting:
		findings = append(findings, Finding{Problem, "workers", "no worker lives, and runs wait", "start a process that calls Engine.Run"})
	case living == 0:
		findings = append(findings, Finding{Warning, "workers", "no worker lives", "start a process that calls Engine.Run"})
	default:
		findings = append(findings, Finding{Fine, "workers", wording.Count(living, "worker lives", "workers live"), ""})
	}
	if dead > 0 {
		findings = append(findings, Finding{Warning, "dead workers", wording.Count(dead, "worker has sent no heartbeat for longer than its lease", "workers have sent no heartbeats for longer than their leases"), "find out why the process died; its runs are taken over, and its entry disappears by itself"})
	}
	if len(versions) > 1 {
		findings = append(findings, Finding{Warning, "versions", fmt.Sprintf("workers of %d versions live: %s", len(versions), strings.Join(slices.Sorted(maps.Keys(versions)), ", ")), "finish the deployment, if none is under way"})
	}
	return findings
}

// tally counts runs of one kind, and keeps the ID of one.
type tally struct {
	count     int
	exampleID string
}

func (t *tally) add(r *durable.RunInfo) {
	if t.count++; t.count == 1 {
		t.exampleID = r.ID
	}
}

// finding returns the finding for the runs, as in "3 runs are suspect, such as order-42".
func (t *tally) finding(level Severity, check, one, many, fix string) Finding {
	return Finding{level, check, fmt.Sprintf("%s, such as %s", wording.Count(t.count, one, many), t.exampleID), fix}
}

func (x *examination) runFindings(found evidence) (findings []Finding) {
	var ownerless, held, suspect, crashed, diverged tally
	unexecuted := make(map[string]*tally) // by what is missing
	ids := make(map[string]bool)
	for i := range x.workers {
		if x.isAlive(&x.workers[i]) {
			ids[x.workers[i].ID] = true
		}
	}
	for i := range found.paused {
		if r := &found.paused[i]; !r.Diverged && r.Crashes > 0 && r.PausedBy == "" {
			crashed.add(r)
		}
	}
	for i := range found.held {
		if r := &found.held[i]; r.Diverged {
			diverged.add(r)
		} else {
			held.add(r)
		}
	}
	for i := range found.newest {
		if r := &found.newest[i]; r.Crashes > 0 && r.Reason == "" {
			suspect.add(r)
		}
	}
	for i := range found.overdue {
		r := &found.overdue[i]
		if r.Status == durable.StatusRunning && !ids[r.Owner] {
			ownerless.add(r)
		}
		if missing := x.missingWorker(r); missing != "" {
			if unexecuted[missing] == nil {
				unexecuted[missing] = new(tally)
			}
			unexecuted[missing].add(r)
		}
	}
	add := func(t *tally, level Severity, check, one, many, fix string) {
		if t.count > 0 {
			findings = append(findings, t.finding(level, check, one, many, fix))
		}
	}
	add(&ownerless, Problem, "dead workers' runs", "workflow in a queue has a run of a dead worker that was not taken over", "workflows in queues have runs of dead workers that were not taken over", "start a worker that executes the workflow; durable get shows which one had the run")
	add(&held, Problem, "held runs", "run is held", "runs are held", "durable get shows the reason: mend what it names, or deploy code that fits the run; the run is tried again by itself")
	add(&diverged, Problem, "diverged runs", "run is held because the code does not fit its history", "runs are held because the code does not fit their histories", "durable get names the call: deploy code that fits, and the run continues by itself")
	add(&crashed, Problem, "crash loops", "run was paused because its process died again and again", "runs were paused because their processes died again and again", "durable get shows the reason: mend the cause, and then durable resume")
	add(&suspect, Warning, "suspect runs", "run has lost its process since its last checkpoint", "runs have lost their processes since their last checkpoints", "look for out-of-memory kills and panics in the log of the worker that had the run (durable get)")
	for _, missing := range slices.Sorted(maps.Keys(unexecuted)) {
		findings = append(findings, Finding{Problem, "unexecuted runs", fmt.Sprintf("runs are due, and no worker executes %s, such as %s", missing, unexecuted[missing].exampleID), "start a worker with this workflow in Config.Workflows, and with the queue, if it has Config.Queues"})
	}
	if len(findings) == 0 {
		findings = append(findings, Finding{Fine, "runs", "none is held, suspect or without a worker; " + wording.Count(found.liveCount, "run is", "runs are") + " live", ""})
	}
	if found.isPartial {
		findings = append(findings, Finding{Fine, "runs", fmt.Sprintf("of the live runs, the newest %d were read for the search of suspect ones", len(found.newest)), ""})
	}
	return findings
}

// missingWorker returns the workflow and the queue of an overdue run and that no live worker executes; else an empty text.
func (x *examination) missingWorker(r *durable.RunInfo) string {
	if r.Status == durable.StatusPaused || r.Status == durable.StatusRunning {
		return ""
	}
	for i := range x.workers {
		w := &x.workers[i]
		if x.isAlive(w) && w.State == durable.WorkerRunning && !w.Quiet && (w.Workflows == nil || slices.Contains(w.Workflows, r.Workflow)) && (w.Queues == nil || slices.Contains(w.Queues, r.Queue)) {
			return ""
		}
	}
	return fmt.Sprintf("workflow %s in queue %s", r.Workflow, r.Queue)
}

func (x *examination) queueFindings() (findings []Finding) {
	const longWait = 5 * time.Minute
	for i := range x.queues {
		q := &x.queues[i]
		switch {
		case !q.PausedAt.IsZero():
			findings = append(findings, Finding{Warning, "queues", fmt.Sprintf("queue %s is paused since %s, %d wait%s", q.Name, wording.ExactTime(q.PausedAt), q.Waiting, reasonText(q.PauseReason, q.PausedBy)), "durable queue resume " + wording.ShellArgument(q.Name) + ", if the reason is over"})
		case !q.OldestDue.IsZero() && x.now.Sub(q.OldestDue) > longWait:
			findings = append(findings, Finding{Warning, "queues", fmt.Sprintf("the oldest run in queue %s is due since %s, and waits for: %s", q.Name, wording.RoughDuration(x.now.Sub(q.OldestDue)), cmp.Or(string(q.BlockedBy), "a worker")), "raise the bounds with durable queue set, or add workers"})
		}
	}
	return findings
}

func reasonText(reason, actor string) string {
	if why := wording.ReasonAndActor(reason, actor); why != "" {
		return ": " + why
	}
	return ""
}

func scheduleFindings(schedules []durable.ScheduleInfo) (findings []Finding) {
	for _, i := range schedules {
		switch {
		case i.DeclaredButDeleted:
			findings = append(findings, Finding{Warning, "schedules", fmt.Sprintf("schedule %s was deleted, and code declares it: it does not fire", i.Name), "durable schedule reset " + wording.ShellArgument(i.Name) + ", or remove it from the code"})
		case i.Problem != "":
			findings = append(findings, Finding{Problem, "schedules", fmt.Sprintf("schedule %s cannot fire: %s", i.Name, i.Problem), "correct it with durable schedule set, or in the code"})
		case !i.PausedAt.IsZero():
			findings = append(findings, Finding{Warning, "schedules", fmt.Sprintf("schedule %s is paused since %s%s", i.Name, wording.ExactTime(i.PausedAt), reasonText(i.PauseReason, i.PausedBy)), "durable schedule resume " + wording.ShellArgument(i.Name) + ", if the reason is over"})
		}
	}
	return findings
}
