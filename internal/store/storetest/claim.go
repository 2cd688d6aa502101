package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var claims = []test{
	{"a claim owns, counts the epoch and loads the history", claimWhole},
	{"only what is due", claimDue},
	{"the oldest first, at most the limit", claimOldest},
	{"only what the worker serves", claimServed},
	{"a run in a queue that the code does not name", claimAnyQueue},
	{"the higher priority first", claimPriorities},
	{"a priority is not passed over when its first run appears", claimNewPriority},
	{"every lane of a priority has its turn", claimTurns},
	{"an expired lease is taken over", claimExpired},
	{"next is the earliest ahead", claimNext},
	{"histories stay with their runs", claimHistories},
	{"a claim of nothing", claimNothing},
	{"a claim for several workers", claimTogether},
	{"a claim forgets why the run was given back", claimReason},
}

func claimWhole(b *fixture) {
	r := b.newRunningRun("order-42")
	r.Version, r.Trace, r.Deadline = "v1", "trace", b.afterStart(24*time.Hour)
	b.commitStart(r)
	var history []store.Step
	for _, name := range []string{"é", "b", "a b", "a", "B", "a0", "A"} {
		s := b.completed(r.UUID, epochAt(1), name)
		if len(history)%3 == 1 {
			s = b.backoff(r.UUID, epochAt(1), 1, name)
		}
		history = append(history, s)
		b.commitStep(s, false)
	}
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Waiting, WakeAt: b.afterStart(time.Minute)})
	q := b.query(b.afterStart(time.Minute))
	got := b.claimOne(q, r.UUID)
	r.Status, r.Epoch, r.Owner, r.WakeAt = store.Running, epochAt(2), owner(q.Worker), q.LeaseUntil
	wantRun(b, "the run claimed", got.Run, r)
	wantRun(b, "its row", b.row(r.UUID), r)
	slices.SortFunc(history, func(l, r store.Step) int { return strings.Compare(l.Name, r.Name) })
	wantSteps(b, "the history with it", got.History, history...)
	wantOutcome(b, "a step of the new owner", b.commitStep(b.completed(r.UUID, epochAt(2), "next"), false).Outcome, store.Written)
}

func claimDue(b *fixture) {
	b.commitPendingRun("later", b.now.Add(time.Microsecond))
	first := b.commitPendingRun("now", b.now)
	q := b.query(b.now)
	got := b.claimOne(q, first.UUID)
	first.Status, first.Epoch, first.Owner, first.WakeAt, first.StartedAt = store.Running, epochAt(1), owner(q.Worker), q.LeaseUntil, b.now
	wantRun(b, "the run claimed, started at its first claim", got.Run, first)
	wantSteps(b, "its history", got.History)
	if again := b.claim(b.query(b.now)); len(again.Runs) != 0 {
		b.Errorf("claimed again: %v", describeClaims(again.Runs))
	}
}

func claimOldest(b *fixture) {
	var all []store.Run
	for _, i := range []int{7, 2, 9, 0, 5, 1, 8, 3, 6, 4} {
		all = append(all, b.commitPendingRun(fmt.Sprint("order-", i), b.afterStart(time.Duration(i)*time.Second)))
	}
	slices.SortFunc(all, func(l, r store.Run) int { return l.WakeAt.Compare(r.WakeAt) })
	q := b.query(b.afterStart(time.Minute))
	for q.Limit = 1; len(all) > 0; q.Limit++ {
		n := min(q.Limit, len(all))
		got := b.claim(q)
		want := make(map[uuid.UUID]string)
		for _, r := range all[:n] {
			want[r.UUID] = r.Name
		}
		for _, c := range got.Runs {
			if _, ok := want[c.Run.UUID]; !ok {
				b.Errorf("limit %d: claimed %s before older ones", q.Limit, c.Run.Name)
			}
			delete(want, c.Run.UUID)
		}
		if len(got.Runs) != n || len(want) != 0 {
			b.Fatalf("limit %d: got %v, want %d, with %v", q.Limit, describeClaims(got.Runs), n, want)
		}
		all = all[n:]
	}
}

// inLane commits and returns a pending run of a queue, workflow and priority. Its name begins with these.
func (b *fixture) inLane(queue, workflow string, priority int16, wakeAt time.Time) store.Run {
	b.Helper()
	id, name := store.NewRootIdentity(fmt.Sprintf("%s%s%+d %s", queue, workflow, priority, uuid.New()))
	r := b.newPendingRun("", wakeAt)
	r.UUID, r.Name, r.Queue, r.Workflow, r.Priority = id, name, queue, workflow, priority
	wantOutcome(b, "start of "+name, b.commitStart(r).Outcome, store.Written)
	return r
}

// lanesOf returns the beginnings of the names of claimed runs, as inLane has set them.
func lanesOf(runs []store.ClaimedRun) (lanes []string) {
	for _, c := range runs {
		lane, _, _ := strings.Cut(c.Run.Name, " ")
		lanes = append(lanes, lane)
	}
	slices.Sort(lanes)
	return lanes
}

func claimServed(b *fixture) {
	for _, queue := range []string{"a", "b", "c"} {
		for _, workflow := range []string{"x", "y", "z"} {
			b.inLane(queue, workflow, 0, b.now)
		}
	}
	q := b.query(b.now)
	for _, step := range []struct {
		workflows, queues, want []string
	}{
		{[]string{"x", "y"}, []string{"a", "b", "none"}, []string{"ax+0", "ay+0", "bx+0", "by+0"}},
		{[]string{"x", "none"}, nil, []string{"cx+0"}},
		{[]string{"none"}, nil, nil},
		{[]string{"x", "y", "z"}, nil, []string{"az+0", "bz+0", "cy+0", "cz+0"}},
	} {
		q.Filter = store.NewClaimFilter(step.workflows, step.queues)
		if got := lanesOf(b.claim(q).Runs); !slices.Equal(got, step.want) {
			b.Errorf("workflows %v in queues %v: got %v, want %v", step.workflows, step.queues, got, step.want)
		}
	}
}

// claimAnyQueue checks that a run whose queue the code does not name any more is claimed, and is expired and
// found like any other run.
func claimAnyQueue(b *fixture) {
	r := b.inLane("the queue of last year", "flow", 0, b.now)
	q := b.query(b.now)
	b.claimOne(q, r.UUID)
	if got := b.heldBy(q); !slices.Equal(got, []store.Lease{{Run: r.UUID, Epoch: epochAt(1)}}) {
		b.Errorf("the leases of the claim: got %v, want the run's", got)
	}
	later := b.query(b.afterStart(time.Minute))
	later.LeaseUntil = b.afterStart(24 * time.Hour)
	if n := b.endLeases(later, q.Worker); n != 1 {
		b.Errorf("expired %d runs, want 1", n)
	}
	if got := b.claimOne(later, r.UUID).Run; got.Epoch != epochAt(2) {
		b.Errorf("taken over at epoch %v, want %v", got.Epoch, epochAt(2))
	}
}

func claimPriorities(b *fixture) {
	batch := &store.Batch{}
	for i := range 500 {
		r := b.newPendingRun("", b.afterStart(-time.Hour))
		r.Queue = fmt.Sprint("queue-", i%5)
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
	}
	b.commit(batch)
	for priority := int16(-2); priority <= 2; priority++ {
		b.inLane("p", "flow", priority, b.afterStart(time.Duration(priority)*time.Second))
		b.inLane("q", "flow", priority, b.afterStart(-time.Minute))
	}
	b.inLane("not due", "flow", 2, b.afterStart(time.Hour))
	q := b.query(b.afterStart(time.Minute))
	q.Limit = 2
	for _, want := range [][]string{{"pflow+2", "qflow+2"}, {"pflow+1", "qflow+1"}} {
		if got := lanesOf(b.claim(q).Runs); !slices.Equal(got, want) {
			b.Errorf("claimed %v, want %v", got, want)
		}
	}
	q.Limit = 502 // the rest of priority 0
	for _, c := range b.claim(q).Runs {
		if c.Run.Priority != 0 {
			b.Errorf("claimed a run of priority %d before those of priority 0", c.Run.Priority)
		}
	}
	q.Limit = 2
	for _, want := range [][]string{{"pflow-1", "qflow-1"}, {"pflow-2", "qflow-2"}, nil} {
		if got := lanesOf(b.claim(q).Runs); !slices.Equal(got, want) {
			b.Errorf("claimed %v, want %v", got, want)
		}
	}
}

func claimNewPriority(b *fixture) {
	q := b.query(b.now)
	q.Limit = 1
	for priority := int16(-2); priority <= 2; priority++ {
		for range 2 {
			b.inLane("queue", "flow", priority, b.now)
		}
		got := b.claim(q).Runs
		if len(got) != 1 || got[0].Run.Priority != priority {
			b.Errorf("claimed %v, want the first run of priority %d", lanesOf(got), priority)
		}
	}
}

// claimTurns checks that a lane with many due runs never starves another lane of its priority.
func claimTurns(b *fixture) {
	batch := &store.Batch{}
	for range 500 {
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.newPendingRun("", b.now)})
	}
	quiet := b.newPendingRun("quiet", b.afterStart(time.Second)) // the quiet run is due later than the others
	quiet.Workflow = "quiet"
	b.commit(&store.Batch{Starts: append(batch.Starts, &store.StartWrite{Run: quiet})})
	q := b.query(b.afterStart(time.Minute))
	q.Filter, q.Limit = store.NewClaimFilter([]string{"flow", "quiet"}, nil), 5
	for range 101 {
		for _, c := range b.claim(q).Runs {
			if c.Run.UUID == quiet.UUID {
				return
			}
		}
	}
	b.Error("501 runs were due, 505 claimed, and the one of the quiet workflow was not among them")
}

func claimExpired(b *fixture) {
	r := b.commitPendingRun("", b.now)
	first := b.query(b.now)
	b.claimOne(first, r.UUID)
	b.commitStep(b.completed(r.UUID, epochAt(1), "charge"), false)
	at := first.LeaseUntil
	if early := b.claim(b.query(at.Add(-time.Microsecond))); len(early.Runs) != 0 {
		b.Errorf("claimed a microsecond before the lease ended: %v", describeClaims(early.Runs))
	}
	second := b.query(at)
	got := b.claimOne(second, r.UUID)
	r.Status, r.Epoch, r.Owner, r.WakeAt, r.StartedAt, r.Crashes = store.Running, epochAt(2), owner(second.Worker), second.LeaseUntil, b.now, 1
	wantRun(b, "the run taken over", got.Run, r)
	wantSteps(b, "its history", got.History, b.completed(r.UUID, epochAt(1), "charge"))
	wantOutcome(b, "a step of the old owner", b.commitStep(b.completed(r.UUID, epochAt(1), "late"), false).Outcome, store.Fenced)
	wantOutcome(b, "a finish of the old owner", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1))).Outcome, store.Fenced)
}

func claimNext(b *fixture) {
	wantNext := func(what string, got, want time.Time) {
		b.Helper()
		if !got.Equal(want) {
			b.Errorf("%s: next is %s, want %s", what, show(got), show(want))
		}
	}
	q := b.query(b.now)
	q.LeaseUntil = b.afterStart(100 * time.Hour)
	wantNext("nothing", b.claim(q).NextDue, time.Time{})
	foreign := b.newPendingRun("foreign", b.afterStart(time.Minute))
	foreign.Workflow = "other"
	b.commitStart(foreign)
	wantNext("only another workflow's", b.claim(q).NextDue, time.Time{})
	b.commitPendingRun("second", b.afterStart(2*time.Hour))
	first := b.commitPendingRun("first", b.afterStart(time.Hour))
	wantNext("two ahead", b.claim(q).NextDue, first.WakeAt)
	b.commitPendingRun("due", b.now)
	got := b.claim(q)
	if len(got.Runs) != 1 {
		b.Fatalf("claimed %v, want the one due", describeClaims(got.Runs))
	}
	wantNext("one due, two ahead", got.NextDue, first.WakeAt)
	q.Filter = store.NewClaimFilter([]string{"flow", "other"}, nil)
	wantNext("the other workflow too", b.claim(q).NextDue, foreign.WakeAt)
	b.commitPendingRun("due too", b.now)
	b.commitPendingRun("left for the limit", b.now)
	q.Limit = 1
	wantNext("what is due and left for the limit is not ahead", b.claim(q).NextDue, foreign.WakeAt)
}

func claimHistories(b *fixture) {
	want := make(map[uuid.UUID][]store.Step)
	for i := range 20 {
		r := b.commitRunningRun("")
		for j := range i {
			s := b.completed(r.UUID, epochAt(1), fmt.Sprintf("step-%02d", j))
			s.Output = []byte(r.UUID.String())
			want[r.UUID] = append(want[r.UUID], s)
			b.commitStep(s, false)
		}
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now})
	}
	got := b.claim(b.query(b.now))
	if len(got.Runs) != 20 {
		b.Errorf("claimed %d runs, want 20", len(got.Runs))
	}
	for _, c := range got.Runs {
		wantSteps(b, "history of "+c.Run.Name, c.History, want[c.Run.UUID]...)
	}
}

// Each claimed run has one of the owners, who gets at most as many runs as it occurs among them.
func claimTogether(b *fixture) {
	for range 5 {
		b.commitPendingRun("", b.now)
	}
	one, two := uuid.New(), uuid.New()
	q := b.query(b.now)
	q.Owners, q.Limit = []uuid.UUID{one, two, one}, 3
	owned := make(map[uuid.UUID][]uuid.UUID)
	for _, c := range b.claim(q).Runs {
		owned[c.Run.Owner.UUID] = append(owned[c.Run.Owner.UUID], c.Run.UUID)
		wantRun(b, "its row", b.row(c.Run.UUID), c.Run)
	}
	if len(owned) != 2 || len(owned[one]) != 2 || len(owned[two]) != 1 {
		b.Fatalf("claimed %v, want two runs of %s and one of %s", owned, one, two)
	}
	for id, want := range owned {
		q.Worker = id
		leases, err := b.store.LeasesOfClaim(b.ctx, q)
		if err != nil {
			b.Fatal(err)
		}
		var got []uuid.UUID
		for _, l := range leases {
			got = append(got, l.Run)
		}
		slices.SortFunc(got, compareUUIDs)
		if slices.SortFunc(want, compareUUIDs); !slices.Equal(got, want) {
			b.Errorf("%s has leases of %v, want %v", id, got, want)
		}
	}
	if n := b.endLeases(b.query(b.now), one); n != 2 {
		b.Errorf("the leases of %d runs were ended, want those of %s", n, one)
	}
	q.Owners, q.Limit = []uuid.UUID{two, two, two, two, two, one}, 6
	if got := b.claim(q).Runs; len(got) != 4 || slices.ContainsFunc(got, func(c store.ClaimedRun) bool { return c.Run.Owner.UUID != two && c.Run.Owner.UUID != one }) {
		b.Errorf("claimed %v, want the other two and those of %s", describeClaims(got), one)
	}
}

func compareUUIDs(l, r uuid.UUID) int { return bytes.Compare(l[:], r[:]) }

func claimNothing(b *fixture) {
	b.commitPendingRun("", b.now)
	for name, change := range map[string]func(*store.ClaimQuery){
		"nothing served":   func(q *store.ClaimQuery) { q.Filter = nil },
		"no workflow":      func(q *store.ClaimQuery) { q.Filter = store.NewClaimFilter(nil, []string{"queue"}) },
		"a limit of 0":     func(q *store.ClaimQuery) { q.Limit = 0 },
		"another queue":    func(q *store.ClaimQuery) { q.Filter = store.NewClaimFilter([]string{"flow"}, []string{"other"}) },
		"another workflow": func(q *store.ClaimQuery) { q.Filter = store.NewClaimFilter([]string{"other"}, nil) },
	} {
		q := b.query(b.now)
		change(&q)
		if got := b.claim(q); len(got.Runs) != 0 {
			b.Errorf("%s: claimed %v", name, describeClaims(got.Runs))
		}
	}
}

func claimReason(b *fixture) {
	r := b.commitRunningRun("")
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, HoldReason: "put off", WakeAt: b.now})
	if got := b.row(r.UUID).PauseOrHoldReason; got != "put off" {
		b.Errorf("reason given back with: got %q, want %q", got, "put off")
	}
	if got := b.claimOne(b.query(b.now), r.UUID).Run.PauseOrHoldReason; got != "" {
		b.Errorf("reason after the claim: got %q, want none", got)
	}
	if got := b.row(r.UUID).PauseOrHoldReason; got != "" {
		b.Errorf("reason in the row after the claim: got %q, want none", got)
	}
}
