package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var contexts = []test{
	{"a cancelled context ends every call, and nothing else", contextCancelled},
	{"a context whose time is up", contextDeadline},
	{"a context that ends in the middle", contextRace},
	{"a closed store says so", contextClosed},
	{"it has a name", contextName},
}

// calls returns a call of every method that takes a context and does not wait for its end.
func (b *fixture) calls() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Commit": func(ctx context.Context) error {
			return b.store.Commit(ctx, &store.Batch{Starts: []*store.StartWrite{{Run: b.newRunningRun("cancelled")}}})
		},
		"Claim": func(ctx context.Context) error {
			_, err := b.store.Claim(ctx, b.query(b.now))
			return err
		},
		"Renew": func(ctx context.Context) error {
			_, err := b.store.RenewLeases(ctx, b.heartbeat())
			return err
		},
		"Expire": func(ctx context.Context) error {
			_, err := b.store.EndLeases(ctx, []uuid.UUID{b.worker}, b.query(b.now))
			return err
		},
		"Get": func(ctx context.Context) error {
			_, err := b.store.GetRuns(ctx, []store.RunRef{{UUIDOrName: "cancelled"}})
			return err
		},
		"History": func(ctx context.Context) error {
			_, err := b.store.History(ctx, uuid.New())
			return err
		},
		"Order": func(ctx context.Context) error {
			return b.store.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{uuid.New()}, Now: b.now})
		},
		"News": func(ctx context.Context) error {
			_, err := b.store.OwnedRunChanges(ctx, b.worker, []store.Lease{{Run: uuid.New(), Epoch: epochAt(1)}})
			return err
		},
		"Outline": func(ctx context.Context) error {
			_, err := b.store.RunProgress(ctx, uuid.New(), b.now)
			return err
		},
		"List": func(ctx context.Context) error {
			_, err := b.store.ListRuns(ctx, store.Filter{}, uuid.UUID{}, 10)
			return err
		},
		"Tree": func(ctx context.Context) error {
			_, err := b.store.RunTree(ctx, uuid.New(), true)
			return err
		},
		"Counts": func(ctx context.Context) error {
			_, err := b.store.RunTreeCounts(ctx, uuid.New(), time.Now())
			return err
		},
		"Tag": func(ctx context.Context) error {
			_, err := b.store.SetTags(ctx, uuid.New(), []store.Tag{{Key: "team", Value: "red"}}, store.Epoch{}, store.ActorAndReason{})
			return err
		},
		"Events": func(ctx context.Context) error {
			_, err := b.store.Events(ctx, "", 10)
			return err
		},
		"Workers": func(ctx context.Context) error {
			_, err := b.store.Workers(ctx)
			return err
		},
		"Overdue": func(ctx context.Context) error {
			_, err := b.store.OverdueClaimLanes(ctx, time.Now(), store.FirstLane, 10)
			return err
		},
		"Executed": func(ctx context.Context) error {
			_, err := b.store.HaveLiveWorkers(ctx, []store.QueueWorkflow{{Queue: "queue", Workflow: "flow"}})
			return err
		},
		"Now": func(ctx context.Context) error {
			_, err := b.store.Now(ctx)
			return err
		},
	}
}

func contextCancelled(b *fixture) {
	r := b.commitPendingRun("due", b.now)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	for name, call := range b.calls() {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			b.Errorf("%s with a cancelled context: got %v, want %v", name, err, context.Canceled)
		}
	}
	if rows := b.get("cancelled"); rows[0] != nil {
		b.Error("the start of a cancelled call is there")
	}
	b.claimOne(b.query(b.now), r.UUID) // the cancelled claim has not claimed it
	for name, call := range b.calls() {
		if err := call(b.ctx); err != nil {
			b.Errorf("%s after that: %v", name, err)
		}
	}
}

func contextDeadline(b *fixture) {
	ctx, cancel := context.WithDeadline(b.ctx, time.Unix(0, 0))
	defer cancel()
	for name, call := range b.calls() {
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("%s after its deadline: got %v, want %v", name, err, context.DeadlineExceeded)
		}
	}
}

// contextRace checks that a commit is written completely or not at all, whenever its context is
// cancelled, and that every item of the repeated commit has the outcome Written.
func contextRace(b *fixture) {
	r := b.commitRunningRun("")
	for i := range 50 {
		batch := &store.Batch{}
		for range 100 {
			batch.Steps = append(batch.Steps, &store.StepWrite{Step: b.completed(r.UUID, epochAt(1), uuid.NewString())})
		}
		ctx, cancel := context.WithCancel(b.ctx)
		done := make(chan error, 1)
		go func() { done <- b.store.Commit(ctx, batch) }()
		for range i * 20 {
			b.store.Name() // some work, so that the cancel happens at a different moment each time
		}
		cancel()
		err := <-done
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnavailable) {
			b.Fatalf("a commit cancelled in the middle: got %v, want %v", err, context.Canceled)
		}
		if n := len(b.history(r.UUID)) - 100*i; n != 0 && n != 100 || err == nil && n != 100 {
			b.Fatalf("a commit cancelled in the middle (%v) wrote %d of 100 steps", err, n)
		}
		b.commit(batch)
		for _, w := range batch.Steps {
			wantOutcome(b, "the replay", w.Outcome, store.Written)
		}
	}
}

func contextClosed(b *fixture) {
	if err := b.store.Close(); err != nil {
		b.Fatalf("Close: %v", err)
	}
	for name, call := range b.calls() {
		if err := call(b.ctx); !errors.Is(err, store.ErrClosed) {
			b.Errorf("%s of a closed store: got %v, want %v", name, err, store.ErrClosed)
		}
	}
	if err := b.store.Listen(b.ctx, b.worker, func(store.WakeHint) {}); !errors.Is(err, store.ErrClosed) {
		b.Errorf("Attend of a closed store: got %v, want %v", err, store.ErrClosed)
	}
	if err := b.store.Close(); err != nil {
		b.Errorf("a second Close: %v", err)
	}
}

func contextName(b *fixture) {
	if got := b.store.Name(); got != "postgres" && got != "sqlite" {
		b.Errorf("Name: got %q, want postgres or sqlite", got)
	}
}
