package model_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// queueCheck makes random calls that concern one queue, and compares its counts with the places of its runs.
type queueCheck struct {
	*check
	now     time.Time
	live    bool // the queue has a row that is not deleted
	paused  bool
	bounds  store.QueueSettings
	started int
	strayed bool // there may be runs without a place, which count when an admission sees them
	before  *queueSight
}

const flowQueue = "q"

// The runs of a queue, whatever is done to them and to it, through two handles: no more of them get places than its bounds allow,
// its counts are those of its places, none waits while there is room, and in the end all end.
func TestQueuesKeepTheirBounds(t *testing.T) {
	onBeds(t, allChecks, func(t *rapid.T, b *bed) {
		q := &queueCheck{check: newCheck(t, b), now: base}
		t.Repeat(map[string]func(*rapid.T){
			"start":    q.action(func() { q.must(q.start()) }),
			"child":    q.action(func() { q.must(q.child()) }),
			"leave":    q.action(func() { q.must(q.leave()) }),
			"leave 2":  q.action(func() { q.must(q.leave()) }),
			"control":  q.action(func() { q.must(q.control()) }),
			"claim":    q.action(func() { q.must(q.claim()) }),
			"priority": q.action(func() { q.must(q.priority()) }),
			"change":   q.action(func() { q.must(q.change()) }),
			"admit":    q.action(q.admit),
			"together": q.action(q.together),
		})
		q.drain()
	})
}

// call is one call through a handle. It may be repeated.
type call func(ctx context.Context, s store.Store) error

// must makes the call through either handle.
func (c *check) must(text string, do call) {
	c.Log(text)
	if err := c.repeated(do, c.handle()); err != nil {
		c.diverge("%s: %v", text, err)
	}
}

// repeated makes the call, and repeats it as long as the store says that it may succeed later.
func (c *check) repeated(do call, handle int) error {
	for {
		if err := do(c.ctx, c.bed.handles[handle]); !again(err) || c.ctx.Err() != nil {
			return err
		}
	}
}

// together makes a pass and another call at the same time.
func (q *queueCheck) together() {
	text, do := []func() (string, call){q.start, q.leave, q.control, q.claim}[q.dice("with", 4)]()
	q.Logf("a pass, and at the same time: %s", text)
	var passed, done error
	var both sync.WaitGroup
	both.Go(func() { passed = q.repeated(q.pass(new(store.AdmissionRequest)), 0) })
	both.Go(func() { done = q.repeated(do, 1) })
	both.Wait()
	if passed != nil || done != nil {
		q.diverge("a pass: %v; %s: %v", passed, text, done)
	}
	q.look()
}

func (q *queueCheck) pass(a *store.AdmissionRequest) call {
	return func(ctx context.Context, s store.Store) error {
		*a = store.AdmissionRequest{Queue: flowQueue, Now: q.now, CloseDurationAfterRewind: time.Minute}
		return s.AdmitRuns(ctx, a)
	}
}

func (q *queueCheck) place(r *store.Run, key string) *store.QueuePlace {
	return &store.QueuePlace{
		Run: r.UUID, Queue: flowQueue, Key: key, Weight: int32(1 + q.dice("weight", 3)), Priority: r.Priority, State: store.PlaceNotArrived, Root: !r.Parent.Valid,
	}
}

// start starts a root; now and then as a process does that does not know the row of the queue.
func (q *queueCheck) start() (string, call) {
	if q.started++; q.started > 8 { // each is read after each call
		return q.claim()
	}
	id := q.newID(int16(q.dice("shard", 2)))
	r := store.Run{
		UUID: id, Name: id.String(), Workflow: "f", Queue: flowQueue, Priority: int16(q.dice("priority", 3) - 1), Status: store.Pending, CreatedAt: q.now,
		WakeAt: q.now.Add(time.Duration(q.dice("delay", 3)) * time.Second),
	}
	w := &store.StartWrite{Run: r}
	if q.dice("deadline", 8) == 0 {
		w.Run.Deadline = q.now.Add(time.Duration(1+q.dice("timeout", 9)) * time.Second)
	}
	key := pick(q.check, "key", []string{"", "a", "a", "b"})
	if q.live && (key != "" || q.dice("knows", 6) > 0) {
		w.Run.Admission, w.Place = store.AdmissionPending, q.place(&w.Run, key)
	} else {
		q.strayed = true
	}
	if q.dice("start by", 6) == 0 {
		if w.Place == nil {
			w.Place = q.place(&w.Run, "")
		}
		w.Run.Control, w.Place.StartBy = store.HasStartBy, w.Run.WakeAt.Add(time.Duration(1+q.dice("begin within", 9))*time.Second)
	}
	return fmt.Sprintf("start %s with key %q and gate %d, %+v", shorten(id), key, w.Run.Admission, w.Place), func(ctx context.Context, s store.Store) error {
		mine := *w
		return commitNow(ctx, s, &store.Batch{Starts: []*store.StartWrite{&mine}}, func() store.WriteOutcome { return mine.Outcome })
	}
}

func commitNow(ctx context.Context, s store.Store, b *store.Batch, outcome func() store.WriteOutcome) error {
	err := s.Commit(ctx, b)
	if err == nil && outcome() == store.Locked {
		err = errLocked
	}
	return err
}

// one returns a run with one of the statuses, or nil.
func (q *queueCheck) one(what string, some ...store.Status) *store.Run {
	seen := q.read()
	runs := slices.DeleteFunc(seen.runs, func(r *store.Run) bool { return !slices.Contains(some, r.Status) })
	if len(runs) == 0 {
		return nil
	}
	return pick(q.check, what, runs)
}

// child starts a child of a running run.
func (q *queueCheck) child() (string, call) {
	parent := q.one("parent", store.Running)
	if q.started++; parent == nil || parent.Control != 0 || q.started > 8 {
		return q.claim()
	}
	id := q.newID(store.ShardOf(parent.UUID))
	r := store.Run{
		UUID: id, Name: "kid" + fmt.Sprint(number(id)), Parent: uuid.NullUUID{UUID: parent.UUID, Valid: true}, Workflow: "f", Queue: flowQueue,
		Priority: parent.Priority, Status: store.Pending, CreatedAt: q.now, WakeAt: q.now,
	}
	w := &store.StartWrite{Run: r, ParentEpoch: parent.Epoch}
	if q.live {
		w.Run.Admission, w.Place = store.AdmissionPending, q.place(&w.Run, pick(q.check, "key", []string{"", "a"}))
	} else {
		q.strayed = true
	}
	return fmt.Sprintf("child %s of %s", shorten(id), shorten(parent.UUID)), func(ctx context.Context, s store.Store) error {
		mine := *w
		return commitNow(ctx, s, &store.Batch{Starts: []*store.StartWrite{&mine}}, func() store.WriteOutcome { return mine.Outcome })
	}
}

// leave ends a running run, or makes it wait.
func (q *queueCheck) leave() (string, call) {
	r := q.one("running", store.Running)
	if r == nil {
		return q.claim()
	}
	w := store.OwnershipEnd{UUID: r.UUID, ParentToWake: r.Parent, Now: q.now, Epoch: r.Epoch, Status: store.Completed, EndedAt: q.now}
	switch n := q.dice("leaves", 4); {
	case n == 0:
		w.Status, w.EndedAt, w.WakeAt = store.Waiting, time.Time{}, q.now.Add(time.Duration(1+q.dice("sleep", 3))*time.Second)
	case n == 1:
		w.Status, w.EndedAt, w.WakeAt = store.Pending, time.Time{}, q.now
	case r.Control&store.CancelRequested != 0:
		w.Status = store.Cancelled
	}
	return fmt.Sprintf("%s becomes %s", shorten(r.UUID), w.Status), func(ctx context.Context, s store.Store) error {
		mine := w
		return commitNow(ctx, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&mine}}, func() store.WriteOutcome { return mine.Outcome })
	}
}

// control pauses, resumes, cancels or terminates a run.
func (q *queueCheck) control() (string, call) {
	r := q.one("run", store.Pending, store.Running, store.Waiting, store.Paused)
	if r == nil {
		return q.claim()
	}
	o := store.ControlRequest{
		Verb: pick(q.check, "verb", []store.ControlVerb{store.VerbPause, store.VerbPause, store.VerbResume, store.VerbResume, store.VerbResume, store.VerbCancel, store.VerbTerminate}),
		Runs: []uuid.UUID{r.UUID}, Now: q.now, Error: []byte("cancelled"),
	}
	return fmt.Sprintf("verb %d for %s", o.Verb, shorten(r.UUID)), func(ctx context.Context, s store.Store) error {
		mine := o
		return s.ControlRuns(ctx, &mine)
	}
}

// priority gives a run that has not begun another priority, and takes it out of its line.
func (q *queueCheck) priority() (string, call) {
	r := q.one("run", store.Pending, store.Paused)
	if r == nil {
		return q.claim()
	}
	p := int16(q.dice("new priority", 5) - 2)
	return fmt.Sprintf("priority %d for %s", p, shorten(r.UUID)), func(ctx context.Context, s store.Store) error {
		return s.MoveRun(ctx, &store.MoveRunRequest{Run: r.UUID, Priority: &p, Now: q.now})
	}
}

// claim claims some runs, as a worker does that knows the row of the queue.
func (q *queueCheck) claim() (string, call) {
	c := store.ClaimQuery{
		Worker: workers[0], EpochNonce: q.nonce(), Filter: served[0], Limit: 1 + q.dice("limit", 4), MaxSuspects: 1, Now: q.now, LeaseUntil: q.now.Add(24 * time.Hour),
	}
	if q.live {
		c.QueueRules = store.NewQueueClaimRules([]string{flowQueue}, nil, nil)
	}
	return fmt.Sprint("claim ", c.Limit), func(ctx context.Context, s store.Store) error {
		_, err := s.Claim(ctx, c)
		return err
	}
}

// change changes the queue.
func (q *queueCheck) change() (string, call) {
	some := func(what string, n int) int { return max(0, q.dice(what, 2*n)-n+1) }
	switch n := q.dice("change", 7); {
	case n == 0 && q.live:
		q.live, q.paused, q.bounds = false, false, store.QueueSettings{}
		return "delete the queue", func(ctx context.Context, s store.Store) error {
			_, err := s.DeleteQueue(ctx, store.DeleteOrResetRequest{Name: flowQueue})
			return err
		}
	case n < 3 && q.live:
		q.paused = !q.paused
		p := store.QueuePauseRequest{Name: flowQueue, Now: q.now, Resume: !q.paused}
		return fmt.Sprint("pause the queue: ", q.paused), func(ctx context.Context, s store.Store) error {
			_, err := s.PauseQueue(ctx, p)
			return err
		}
	case n == 3:
		q.now = q.now.Add(time.Duration(q.dice("pass", 2500)) * time.Millisecond)
		return fmt.Sprint("it is ", offset(q.now)), func(context.Context, store.Store) error { return nil }
	}
	q.live, q.strayed = true, q.strayed || !q.live
	q.bounds = store.QueueSettings{MaxExecuting: some("executing", 3), MaxInProgress: some("open", 3), MaxExecutingPerKey: some("of a key", 2), MaxInProgressPerKey: some("open of a key", 2)}
	rate := func(what string) (r store.Rate) {
		if n := some(what, 2); n > 0 {
			r = store.Rate{Count: n, Period: time.Second, Burst: n}
		}
		return r
	}
	q.bounds.Rate, q.bounds.RatePerKey = rate("rate"), rate("rate of a key")
	c := store.QueueChangeRequest{Name: flowQueue, Settings: q.bounds, Now: q.now}
	return fmt.Sprintf("set %+v", q.bounds), func(ctx context.Context, s store.Store) error { return s.ChangeQueue(ctx, c) }
}

// admit makes passes until there is nothing more to do, and then checks that nobody waits while there is room.
func (q *queueCheck) admit() {
	for range 200 {
		var a store.AdmissionRequest
		if err := q.repeated(q.pass(&a), q.handle()); err != nil {
			q.diverge("a pass: %v", err)
		}
		if !a.HasMoreWork && !a.QueueLocked {
			seen := q.look()
			q.idle(seen)
			q.unclaimed(seen)
			return
		}
	}
	q.diverge("the passes never end")
}

// drain lets all runs end.
func (q *queueCheck) drain() {
	if q.paused {
		q.must("resume the queue", func(ctx context.Context, s store.Store) error {
			_, err := s.PauseQueue(ctx, store.QueuePauseRequest{Name: flowQueue, Resume: true})
			return err
		})
		q.paused = false
	}
	for round := range 200 {
		if round == 30 {
			realtime.Pass(store.StrayCheckInterval, "stores look for strays at most once in this time")
		}
		q.admit()
		seen := q.read()
		if len(seen.runs) == 0 {
			if seen.use != (store.QueueUse{}) {
				q.diverge("all runs have ended, and the queue has %+v", seen.use)
			}
			return
		}
		for _, r := range seen.runs {
			switch r.Status {
			case store.Paused:
				q.must("resume "+shorten(r.UUID), func(ctx context.Context, s store.Store) error {
					return s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{r.UUID}, Now: q.now})
				})
			case store.Running:
				w := store.OwnershipEnd{UUID: r.UUID, ParentToWake: r.Parent, Now: q.now, Epoch: r.Epoch, Status: store.Failed, Error: []byte("over"), EndedAt: q.now}
				if r.Control&store.CancelRequested != 0 {
					w.Status = store.Cancelled
				}
				q.must("end "+shorten(r.UUID), func(ctx context.Context, s store.Store) error {
					mine := w
					return commitNow(ctx, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&mine}}, func() store.WriteOutcome { return mine.Outcome })
				})
			}
		}
		q.now = q.now.Add(time.Second)
		q.must(q.claim())
	}
	q.diverge("runs never end: %+v", q.read().runs)
}
