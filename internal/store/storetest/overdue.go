package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var overdues = []test{
	{"places with overdue runs", overduePlaces},
	{"places that live workers execute", overdueExecuted},
}

// place commits a pending run of the pair, and returns the entry for it that Overdue returns.
func (b *fixture) place(p store.QueueWorkflow, name string, wakeAt time.Time) store.OverdueLane {
	b.Helper()
	r := b.newPendingRun(name, wakeAt)
	r.Queue, r.Workflow = p.Queue, p.Workflow
	wantOutcome(b, "start of "+name, b.commitStart(r).Outcome, store.Written)
	return store.OverdueLane{QueueWorkflow: p, Lane: r.ClaimLane(), Run: r.UUID, Since: r.WakeAt}
}

func (b *fixture) overdue(after store.ClaimLane, limit int) []store.OverdueLane {
	b.Helper()
	got, err := b.store.OverdueClaimLanes(b.ctx, b.now, after, limit)
	if err != nil {
		b.Fatalf("Overdue: %v", err)
	}
	return got
}

func overduePlaces(b *fixture) {
	if got := b.overdue(store.FirstLane, 10); len(got) != 0 {
		b.Errorf("an empty database: got %v", got)
	}
	b.place(store.QueueWorkflow{Queue: "a", Workflow: "later"}, "later", b.afterStart(time.Minute))
	b.place(store.QueueWorkflow{Queue: "a", Workflow: "two"}, "second", b.afterStart(-time.Minute))
	paused := b.place(store.QueueWorkflow{Queue: "b", Workflow: "paused"}, "paused", b.afterStart(-time.Hour))
	b.controlExistingRuns(store.VerbPause, paused.Run)
	want := []store.OverdueLane{
		b.place(store.QueueWorkflow{Queue: "a", Workflow: "two"}, "first", b.afterStart(-2*time.Minute)),
		b.place(store.QueueWorkflow{Queue: "b", Workflow: "%s 'quoted' \U0001F680"}, "now", b.now),
		b.place(store.QueueWorkflow{Queue: "c", Workflow: "one"}, "last", b.afterStart(-time.Second)),
	}
	urgent := b.inLane("c", "one", 2, b.afterStart(-time.Hour))
	want = append(want, store.OverdueLane{QueueWorkflow: store.QueueWorkflow{Queue: "c", Workflow: "one"}, Lane: urgent.ClaimLane(), Run: urgent.UUID, Since: urgent.WakeAt})
	slices.SortFunc(want, func(l, r store.OverdueLane) int { return cmp.Compare(l.Lane, r.Lane) })
	check := func(what string, got, want []store.OverdueLane) {
		b.Helper()
		if len(got) != len(want) {
			b.Fatalf("%s: got %v, want %v", what, got, want)
		}
		for i := range want {
			wantFields(b, fmt.Sprintf("%s: place %d", what, i), got[i], want[i])
		}
	}
	check("all", b.overdue(store.FirstLane, 10), want)
	check("those after the first", b.overdue(want[0].Lane, 10), want[1:])
	check("the next one", b.overdue(want[0].Lane, 1), want[1:2])
	check("after the last", b.overdue(want[3].Lane, 10), nil)
	check("those after a lane without runs", b.overdue(want[1].Lane+1, 10), want[2:])
}

func overdueExecuted(b *fixture) {
	pairs := []store.QueueWorkflow{{Queue: "a", Workflow: "one"}, {Queue: "b", Workflow: "one"}, {Queue: "a", Workflow: "it's \"two\""}}
	check := func(what string, want ...bool) {
		b.Helper()
		got, err := b.store.HaveLiveWorkers(b.ctx, pairs)
		if err != nil || !slices.Equal(got, want) {
			b.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
	beat := func(w store.Worker, until time.Time) {
		b.renew(store.Heartbeat{Worker: w, LeaseUntil: until})
	}
	check("no workers", false, false, false)
	w := store.Worker{ID: uuid.New(), Name: "w", State: store.WorkerRunning, StartedAt: b.now, Workflows: []string{"it's \"two\"", "one"}, Queues: []string{"a"}}
	beat(w, b.afterStart(time.Hour))
	check("one worker", true, false, true)
	if got := b.workers(); len(got) != 1 || !slices.Equal(got[0].Workflows, w.Workflows) || !slices.Equal(got[0].Queues, w.Queues) {
		b.Errorf("the registry: got %v, want %v", got, w)
	}
	w.Queues = nil
	beat(w, b.afterStart(time.Hour))
	check("a worker that serves all queues now", true, true, true)
	if got := b.workers(); len(got) != 1 || got[0].Queues != nil {
		b.Errorf("the registry: got %v, want no queues", got)
	}
	w.Workflows, w.Queues = w.Workflows[1:], []string{"a"}
	beat(w, b.afterStart(time.Hour))
	check("a worker that executes less now", true, false, false)
	other := store.Worker{ID: uuid.New(), Name: "other", State: store.WorkerRunning, StartedAt: b.now, Workflows: []string{}}
	beat(other, b.afterStart(time.Hour))
	check("a worker that executes nothing", true, false, false)
	other.Workflows = nil
	beat(other, b.afterStart(time.Hour))
	check("a worker that may execute any", true, true, true)
	if got := b.workers(); len(got) != 2 || got[0].Workflows != nil && got[1].Workflows != nil {
		b.Errorf("the registry: got %v, want one without a list", got)
	}
	beat(other, b.afterStart(-time.Second))
	check("a worker that is silent", true, false, false)
	w.State = store.WorkerDraining
	beat(w, b.afterStart(time.Hour))
	check("a worker that drains", false, false, false)
}
