package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var overviews = []test{
	{"failures by workflow, step and type", failureGroups},
	{"a filter selects the runs of a failure", failureLists},
	{"a failure of which only the newest runs are examined", failureBound},
	{"a run that is repaired has no failure", failureRepaired},
	{"runs by status", statusCounts},
	{"runs by status, up to a number", statusBound},
	{"the newest event", lastEvent},
}

// failed starts a run and ends it with the status and the failure, ended at the given number of seconds.
func (b *fixture) failed(name string, status store.Status, key store.FailureKey, seconds int) store.Run {
	b.Helper()
	r := b.newRunningRun(name)
	r.Workflow = key.Workflow
	wantOutcome(b, "start of "+name, b.commitStart(r).Outcome, store.Written)
	w := b.newCompletion(r.UUID, epochAt(1))
	w.Status, w.Output, w.Error = status, nil, []byte(`{"message":"`+name+`"}`)
	w.EndedAt, w.FailedStep, w.FailedType = b.afterStart(time.Duration(seconds)*time.Second), key.Step, key.Type
	b.commitOwnershipEnd(w)
	r.Status, r.EndedAt = status, w.EndedAt
	return r
}

func (b *fixture) failures(f store.Filter, examine, limit int) []store.FailureGroup {
	b.Helper()
	got, err := b.store.FailureGroups(b.ctx, f, examine, limit)
	if err != nil {
		b.Fatalf("Failures: %v", err)
	}
	return got
}

// wantGroups compares the keys and the numbers of groups.
func (b *fixture) wantGroups(what string, got []store.FailureGroup, want ...string) {
	b.Helper()
	var texts []string
	for _, g := range got {
		text := fmt.Sprintf("%s/%s/%s %d", g.Key.Workflow, g.Key.Step, g.Key.Type, g.RunCount)
		if g.HasMoreRuns {
			text += "+"
		}
		texts = append(texts, text)
	}
	if !slices.Equal(texts, want) {
		b.Errorf("%s: got %q, want %q", what, texts, want)
	}
}

func failureGroups(b *fixture) {
	b.wantGroups("an empty database", b.failures(store.Filter{}, 10, 10))
	key := store.FailureKey{Workflow: "flow", Step: "charge", Type: "*card.Error"}
	b.failed("second", store.Failed, key, 2)
	last := b.failed("last", store.Expired, key, 9)
	b.failed("first", store.Failed, key, 1)
	b.failed("alone", store.Failed, store.FailureKey{Workflow: "flow", Type: "*card.Error"}, 3)
	b.failed("quoted", store.Failed, store.FailureKey{Workflow: "a 'quoted' \U0001F680", Step: "Charge", Type: "x"}, 4)
	b.failed("not a failure", store.Cancelled, key, 5)
	b.failed("completed", store.Completed, key, 5)
	all := []string{"a 'quoted' \U0001F680/Charge/x 1", "flow//*card.Error 1", "flow/charge/*card.Error 3"}
	got := b.failures(store.Filter{}, 10, 10)
	b.wantGroups("all", got, all...)
	if len(got) != 3 {
		return
	}
	g := got[2]
	if !g.First.Equal(b.afterStart(time.Second)) || !g.Last.Equal(b.afterStart(9*time.Second)) {
		b.Errorf("the runs ended from %v to %v", g.First, g.Last)
	}
	if n := g.Newest; n.UUID != last.UUID || n.Name != "last" || n.Workflow != "flow" || n.Status != store.Expired || n.Parent.Valid || string(n.Error) != `{"message":"last"}` {
		b.Errorf("the run that ended last is %+v", n)
	}
	b.wantGroups("two of them", b.failures(store.Filter{}, 10, 2), all[:2]...)
	b.wantGroups("a workflow", b.failures(store.Filter{Workflow: "flow"}, 10, 10), all[1:]...)
	b.wantGroups("no such workflow", b.failures(store.Filter{Workflow: "flo"}, 10, 10))
	b.wantGroups("a failure", b.failures(store.Filter{Failure: key}, 10, 10), "flow/charge/*card.Error 3")
	b.wantGroups("a failure without a step", b.failures(store.Filter{Workflow: "flow", Failure: store.FailureKey{Workflow: "flow", Type: "*card.Error"}}, 10, 1), "flow//*card.Error 1")
	b.wantGroups("no such failure", b.failures(store.Filter{Failure: store.FailureKey{Workflow: "flow", Step: "charge"}}, 10, 10))
	b.wantGroups("a status", b.failures(store.Filter{Statuses: []store.Status{store.Expired}}, 10, 10), "flow/charge/*card.Error 1")
	b.wantGroups("a prefix", b.failures(store.Filter{NamePrefix: "a"}, 10, 10), "flow//*card.Error 1")
	b.wantGroups("after", b.failures(store.Filter{CreatedAfter: b.afterStart(time.Hour)}, 10, 10))
	b.tag(last.UUID, store.Tag{Key: "team.owner", Value: "red"})
	b.wantGroups("a tag", b.failures(store.Filter{Tag: store.Tag{Key: "team.owner"}}, 10, 10), "flow/charge/*card.Error 1")
	b.wantGroups("another value", b.failures(store.Filter{Tag: store.Tag{Key: "team.owner", Value: "blue"}}, 10, 10))
}

func failureLists(b *fixture) {
	keys := []store.FailureKey{
		{Workflow: "flow", Step: "charge", Type: "*card.Error"},
		{Workflow: "flow", Step: "charge", Type: "x"},
		{Workflow: "flow", Type: "x"},
		{Workflow: "other", Type: "x"},
	}
	var all []store.Run
	of := make(map[uuid.UUID]store.FailureKey)
	for i := range 40 {
		key := keys[i%len(keys)]
		r := b.failed(fmt.Sprint("order-", i), []store.Status{store.Failed, store.Expired, store.Cancelled}[i%3], key, i)
		if i%3 < 2 {
			of[r.UUID] = key
		}
		all = append(all, r)
	}
	all = append(all, b.commitRunningRun("live"))
	paused := b.commitRunningRun("paused")
	b.commitOwnershipEnd(b.park(paused, time.Time{}))
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	paused.Status = store.Paused
	waiting := b.commitRunningRun("waiting")
	b.commitOwnershipEnd(b.park(waiting, time.Time{}))
	waiting.Status = store.Waiting
	all = append(all, paused, waiting)
	for _, key := range keys {
		b.wantList(fmt.Sprintf("failure %+v", key), store.Filter{Failure: key}, all, func(r store.Run) bool { return of[r.UUID] == key })
		b.wantList("a failure and a status", store.Filter{Failure: key, Statuses: []store.Status{store.Expired}}, all, func(r store.Run) bool {
			return of[r.UUID] == key && r.Status == store.Expired
		})
	}
	b.wantList("no such failure", store.Filter{Failure: store.FailureKey{Workflow: "flow", Step: "charg", Type: "x"}}, all, func(store.Run) bool { return false })
	for _, statuses := range [][]store.Status{{store.Failed}, {store.Failed, store.Expired}, {store.Paused}, {store.Paused, store.Failed}, {store.Waiting}} {
		b.wantList(fmt.Sprint(statuses), store.Filter{Statuses: statuses}, all, func(r store.Run) bool { return slices.Contains(statuses, r.Status) })
	}
	b.tag(all[0].UUID, store.Tag{Key: "team", Value: "red"})
	b.wantList("a failure and a tag", store.Filter{Failure: keys[0], Tag: store.Tag{Key: "team", Value: "red"}}, all, func(r store.Run) bool { return r.UUID == all[0].UUID })
	b.wantList("a failure and another tag", store.Filter{Failure: keys[0], Tag: store.Tag{Key: "team", Value: "blue"}}, all, func(store.Run) bool { return false })
}

func failureBound(b *fixture) {
	key := store.FailureKey{Workflow: "flow", Type: "x"}
	for i := range 5 {
		b.failed(fmt.Sprint("order-", i), store.Failed, key, i)
	}
	b.wantGroups("all", b.failures(store.Filter{}, 6, 10), "flow//x 5")
	b.wantGroups("as many", b.failures(store.Filter{}, 5, 10), "flow//x 5+")
	b.wantGroups("fewer", b.failures(store.Filter{}, 3, 10), "flow//x 3+")
	b.wantGroups("none of those examined", b.failures(store.Filter{NamePrefix: "order-0"}, 2, 10))
}

func failureRepaired(b *fixture) {
	key := store.FailureKey{Workflow: "flow", Step: "charge", Type: "x"}
	r := b.failed("order", store.Failed, key, 1)
	b.wantRepaired(b.repairOf(b.row(r.UUID), 1))
	b.wantGroups("repaired", b.failures(store.Filter{}, 10, 10))
	b.wantList("repaired", store.Filter{Failure: key}, []store.Run{r}, func(store.Run) bool { return false })
}

func (b *fixture) wantStatuses(most int, want ...store.StatusCount) {
	b.Helper()
	got, err := b.store.StatusCounts(b.ctx, b.now, most)
	if err != nil || !slices.Equal(got, want) {
		b.Errorf("runs by status, up to %d: got %v, %v, want %v", most, got, err, want)
	}
}

func statusCounts(b *fixture) {
	b.wantStatuses(10)
	b.commitStart(b.newPendingRun("due", b.afterStart(-time.Second)))
	b.commitStart(b.newPendingRun("later", b.afterStart(time.Hour)))
	b.inLane("another", "flow", 1, b.afterStart(-time.Second))
	b.commitRunningRun("running")
	timer := b.commitRunningRun("timer")
	b.commitOwnershipEnd(b.park(timer, b.afterStart(time.Hour)))
	for i := range 2 {
		r := b.commitRunningRun(fmt.Sprint("waiting-", i))
		b.commitOwnershipEnd(b.park(r, time.Time{}))
	}
	paused := b.commitRunningRun("paused")
	b.commitOwnershipEnd(b.park(paused, time.Time{}))
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	b.failed("failed", store.Failed, store.FailureKey{Workflow: "flow", Type: "x"}, 1)
	b.failed("expired", store.Expired, store.FailureKey{Workflow: "flow", Type: "x"}, 1)
	b.failed("completed", store.Completed, store.FailureKey{Workflow: "flow"}, 1)
	b.failed("cancelled", store.Cancelled, store.FailureKey{Workflow: "flow"}, 1)
	b.wantStatuses(10,
		store.StatusCount{Status: store.Pending, RunCount: 3}, store.StatusCount{Status: store.Running, RunCount: 1}, store.StatusCount{Status: store.Waiting, RunCount: 3},
		store.StatusCount{Status: store.Paused, RunCount: 1}, store.StatusCount{Status: store.Failed, RunCount: 1}, store.StatusCount{Status: store.Expired, RunCount: 1})
}

func statusBound(b *fixture) {
	for i := range 5 {
		b.commitStart(b.newPendingRun(fmt.Sprint("due-", i), b.afterStart(-time.Second)))
		b.failed(fmt.Sprint("failed-", i), store.Failed, store.FailureKey{Workflow: "flow", Type: "x"}, 1)
		waiting := b.commitRunningRun(fmt.Sprint("waiting-", i))
		b.commitOwnershipEnd(b.park(waiting, time.Time{}))
	}
	b.commitRunningRun("running")
	b.wantStatuses(3, store.StatusCount{Status: store.Pending, RunCount: 3, HasMoreRuns: true}, store.StatusCount{Status: store.Running, RunCount: 1},
		store.StatusCount{Status: store.Waiting, RunCount: 3, HasMoreRuns: true}, store.StatusCount{Status: store.Failed, RunCount: 3, HasMoreRuns: true})
}

func lastEvent(b *fixture) {
	last := func() string {
		b.Helper()
		cursor, err := b.store.LastEventCursor(b.ctx)
		if err != nil {
			b.Fatalf("LastEventCursor: %v", err)
		}
		return cursor
	}
	if got := last(); got != "" {
		b.Errorf("an empty database: got %q", got)
	}
	r := b.commitRunningRun("one")
	b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
	seen := b.tail(r.UUID, 10)
	cursor := last()
	if want := seen[len(seen)-1].Cursor; cursor != want {
		b.Errorf("got %q, want %q", cursor, want)
	}
	if got := b.events(cursor, 10); len(got) != 0 {
		b.Errorf("after the newest event: got %v", got)
	}
	r = b.commitRunningRun("two")
	b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
	b.tail(r.UUID, 10)
	if got := b.events(cursor, 10); len(got) != 1 || got[0].Run != r.UUID {
		b.Errorf("after the cursor: got %v, want the end of the second run", got)
	}
}
