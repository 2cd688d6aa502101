package durable_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// TryResult does not wait.
func TestTryResult(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, fail bool) (int, error) {
			if fail {
				return 0, errFlaky
			}
			return c.Receive[int]("go")
		})
		e := engineOn(t, s, w)
		running(t, e)
		run := read(w.Start(within(t), e, false, durable.ID("run")))(t)
		if out, ended, err := run.TryResult(within(t)); out != 0 || ended || err != nil {
			t.Errorf("of a run that goes on: %d, %v, %v", out, ended, err)
		}
		if err := e.Signal(within(t), "run", "go", 7); err != nil {
			t.Fatal(err)
		}
		read(run.Result(within(t)))(t)
		if out, ended, err := run.TryResult(within(t)); out != 7 || !ended || err != nil {
			t.Errorf("of a run that has completed: %d, %v, %v", out, ended, err)
		}
		failed := read(w.Start(within(t), e, true))(t)
		_, want := failed.Result(within(t))
		var as *durable.RunError
		if _, ended, err := failed.TryResult(within(t)); !ended || !errors.As(err, &as) || err.Error() != want.Error() {
			t.Errorf("of a run that has failed: %v, %v", ended, err)
		}
	})
}

// Counts has the numbers of delayed runs, and of calls that wait.
func TestCountsTellWhatIsWaitedFor(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if _, err := c.StartChild("later", kid, 0, durable.Delay(time.Hour)); err != nil {
				return 0, err
			}
			if _, err := c.Child("now", kid, 0); err != nil {
				return 0, err
			}
			return 0, nil
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, kid}, ParkAfter: time.Millisecond})
		running(t, e)
		read(w.Start(within(t), e, 0, durable.ID("run")))(t)
		var got durable.TreeCounts
		for ctx := within(t); got.OpenCalls["receive"] == 0; {
			got = read(e.TreeCounts(ctx, "run"))(t)
		}
		if got.Delayed != 1 || fmt.Sprint(got.OpenCalls) != "map[child:2 receive:1]" || got.Statuses[durable.StatusPending] != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

// Workers shows at once that a worker drains.
func TestWorkerState(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		held := newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Do("hold", held.pass) })
		e, client := engineOn(t, s, w), engineOn(t, s)
		stop := running(t, e)
		read(w.Start(within(t), client, 0))(t)
		<-held.entered
		state := func() durable.WorkerState {
			workers := read(client.Workers(within(t)))(t)
			if len(workers) != 1 {
				t.Fatalf("%d workers", len(workers))
			}
			if d := workers[0].DeadAt.Sub(workers[0].HeartbeatAt); d <= 0 || d > 11*time.Second { // the lease is 10 s
				t.Errorf("it counts as dead %v after its heartbeat", d)
			}
			if workers[0].ClockAhead.Abs() > 5*time.Second { // both clocks are this machine's
				t.Errorf("its clock is %v ahead", workers[0].ClockAhead)
			}
			return workers[0].State
		}
		if got := state(); got != durable.WorkerRunning {
			t.Errorf("it is %q", got)
		}
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		for ctx := within(t); state() != durable.WorkerDraining; {
			if ctx.Err() != nil {
				t.Fatal("a worker that drains is never shown to")
			}
		}
		close(held.open)
		<-stopped
	})
}

// With FailAtMaxCrashes, a run that loses its process again and again fails finally, with its children. A run that writes
// checkpoints in between does not.
func TestFailAtMaxCrashes(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const most = 3
		at := dbNow(t, s)
		crashed := func(name string, bits store.ControlBits, steps ...string) store.Run {
			t.Helper()
			id, name := store.NewRootIdentity(name)
			r := store.Run{
				UUID: id, Name: name, Workflow: "w", Queue: "default", Status: store.Running, Epoch: store.Epoch{}.Next(1), Owner: store.ValidNullUUID(store.NewUUID(0)),
				Input: []byte("0"), CreatedAt: at.Add(-time.Hour), StartedAt: at.Add(-time.Hour), WakeAt: at.Add(-time.Minute),
			}
			kid := r
			kid.UUID, kid.Parent, kid.Name, kid.Workflow = store.NewChildUUID(id), store.ValidNullUUID(id), "kid", "kid"
			kid.Status, kid.Epoch, kid.Owner.Valid, kid.StartedAt = store.Pending, store.Epoch{}, false, time.Time{}
			step := store.Step{
				Run: id, Name: "kid", Kind: store.KindChild, Status: store.StepStarted, Attempt: 1, Epoch: r.Epoch,
				Output: []byte(`"` + kid.UUID.String() + `"`), StartedAt: r.CreatedAt,
			}
			commit := func(b *store.Batch) {
				t.Helper()
				if err := s.Commit(within(t), b); err != nil {
					t.Fatal(err)
				}
			}
			commit(&store.Batch{Starts: []*store.StartWrite{{Run: r}}})
			commit(&store.Batch{Starts: []*store.StartWrite{{Run: kid, ParentEpoch: r.Epoch}}, Steps: []*store.StepWrite{{Step: step}}})
			if bits != 0 {
				o := &store.ControlRequest{Verb: store.VerbCancel, Scope: store.CancelRunItself, Runs: []store.UUID{id}, Now: r.CreatedAt}
				if err := s.ControlRuns(within(t), o); err != nil {
					t.Fatal(err)
				}
			}
			for i := range most - 1 {
				now := r.WakeAt.Add(time.Duration(i) * time.Second)
				got, err := s.Claim(within(t), store.ClaimQuery{
					Worker: store.NewUUID(0), EpochNonce: 2, Filter: store.NewClaimFilter([]string{"w"}, nil), Limit: 1, MaxSuspects: 1,
					Now: now, LeaseUntil: now.Add(time.Second),
				})
				if err != nil || len(got.Runs) != 1 {
					t.Fatal(got, err)
				}
				r = got.Runs[0].Run
				r.WakeAt = at.Add(-time.Minute)
			}
			for _, name := range steps {
				step.Name, step.Kind, step.Status, step.Epoch, step.Output, step.EndedAt = name, store.KindStep, store.StepCompleted, r.Epoch, []byte("1"), at
				commit(&store.Batch{Steps: []*store.StepWrite{{Step: step}}})
			}
			return kid
		}
		kid := crashed("loop", 0)
		crashed("cancelled", store.CancelRequested)
		crashed("gets on", 0, "step")
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if c.ID() != "gets on" {
				t.Errorf("the function of %q was called", c.ID())
			}
			return 1, nil
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, MaxCrashes: most, FailAtMaxCrashes: true})
		running(t, e)
		_, err := read(w.Handle(within(t), e, "loop"))(t).Result(within(t))
		var failed *durable.RunError
		if !errors.Is(err, durable.ErrCrashLoop) || !errors.As(err, &failed) || failed.Status != durable.StatusFailed {
			t.Errorf("a crash loop ends with %v", err)
		}
		if info := read(e.Get(within(t), kid.UUID.String()))(t); info.Status != durable.StatusCancelled {
			t.Errorf("its child is %s", info.Status)
		}
		_, err = read(w.Handle(within(t), e, "cancelled"))(t).Result(within(t))
		if !errors.Is(err, durable.ErrCancelled) || !errors.Is(err, durable.ErrCompensation) || !errors.As(err, &failed) || failed.Status != durable.StatusCancelled {
			t.Errorf("a crash loop that is to be cancelled ends with %v", err)
		}
		if out, err := read(w.Handle(within(t), e, "gets on"))(t).Result(within(t)); out != 1 || err != nil {
			t.Errorf("a run with a new checkpoint: %d, %v", out, err)
		}
	})
}

// A claim takes at most ClaimLimit runs.
func TestClaimLimit(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 0, nil })
		client := engineOn(t, s)
		const runs = 20
		handles := make([]*durable.Run[int], runs)
		for i := range handles {
			handles[i] = read(w.Start(within(t), client, i))(t)
		}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ClaimLimit: 2})
		running(t, e)
		for _, r := range handles {
			read(r.Result(within(t)))(t)
		}
		if got := e.Stats(); got.ClaimQueries < runs/2 || got.ClaimedRuns != runs {
			t.Errorf("%d claims took %d runs", got.ClaimQueries, got.ClaimedRuns)
		}
		if _, err := durable.New(s, durable.Config{ClaimLimit: -1}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a negative limit: %v", err)
		}
	})
}

// Waits whose time is over are counted by what followed.
func TestTimedOutWaitsAreCounted(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		soon := durable.Within(time.Millisecond)
		w := durable.Define("w", func(c *durable.Ctx, how string) (int, error) {
			switch how {
			case "value":
				return c.Receive[int]("go", soon, durable.Else(1))
			case "cancel":
				return c.Receive[int]("go", soon, durable.ElseCancel())
			case "expire":
				return c.Receive[int]("go", soon, durable.ElseExpire())
			case "escalate":
				return c.Receive[int]("go", soon, durable.ElseSignal(c.ID(), "go", 1))
			}
			return c.Receive[int]("go", soon)
		})
		e := engineOn(t, s, w)
		running(t, e)
		for _, how := range []string{"value", "cancel", "expire", "error", "escalate"} {
			_, _ = w.Call(within(t), e, how)
		}
		if got, want := e.Stats().ReceiveTimeouts, (durable.ReceiveTimeouts{Failed: 1, ReturnedElse: 1, Cancelled: 1, Expired: 1, Escalated: 1}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}
