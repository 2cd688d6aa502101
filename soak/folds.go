package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	quiet          = 300 * time.Millisecond // of debounced starts
	atMost         = 1500 * time.Millisecond
	throttleCount  = 3 // starts per throttlePeriod
	throttlePeriod = 2 * time.Second
)

// The kinds of starts that fold, as the ledger has them.
const (
	foldSingleton = "singleton"
	foldDebounce  = "debounce"
	foldThrottle  = "throttle"
)

// foldInput is the input of a run that a start with a key has created.
type foldInput struct {
	Key string `json:"key"`
	N   int    `json:"n"`
}

// feedingInput is the input of a run whose step makes a start that folds.
type feedingInput struct {
	Kind string `json:"kind"`
	Mode string `json:"mode,omitzero"`
	foldInput
}

// foldStarter makes starts that fold, and has the workflows that they start.
type foldStarter struct {
	ledger  *ledger
	engine  *durable.Engine
	single  *durable.Workflow[foldInput, int] // of singletons
	latest  *durable.Workflow[foldInput, int] // of debounced starts
	some    *durable.Workflow[foldInput, int] // of throttled starts
	feeding *durable.Workflow[feedingInput, string]
}

func newFolder(book *ledger) *foldStarter {
	f := &foldStarter{ledger: book}
	f.single = durable.Define("single", func(c *durable.Ctx, in foldInput) (int, error) {
		e := entry{Kind: kindQueuedBegun, Run: c.RunID(), Exec: rand.Text(), Step: foldSingleton, Value: in.Key}
		book.add(e)
		e.Kind = kindQueuedReturned
		defer book.add(e)
		if err := c.Compensate("undo", func(ctx context.Context) error { return sleepCtx(ctx, 30*time.Millisecond) }, durable.Retry(retryPolicy)); err != nil {
			return 0, err
		}
		if in.N%3 == 0 {
			if err := c.Sleep("sleep", 2*parkAfter); err != nil {
				return 0, err
			}
		}
		return in.N, c.Do("work", func(ctx context.Context) error { return sleepCtx(ctx, time.Duration(in.N%7*60)*time.Millisecond) }, durable.Retry(retryPolicy))
	})
	f.latest = durable.Define("latest", func(c *durable.Ctx, in foldInput) (int, error) {
		book.add(entry{Kind: kindDebounceRan, Run: c.RunID(), Step: in.Key, Value: strconv.Itoa(in.N)})
		return in.N, nil
	})
	f.some = durable.Define("some", func(_ *durable.Ctx, in foldInput) (int, error) { return in.N, nil })
	f.feeding = durable.Define("feeding", func(c *durable.Ctx, in feedingInput) (string, error) {
		return c.Step("start", func(ctx context.Context) (string, error) {
			run, err := f.start(ctx, in, c.RunID(), f.startWith)
			if err != nil {
				return "", err
			}
			return run.RunID(), sleepCtx(ctx, 50*time.Millisecond) // time to be killed after the start, and before it is recorded
		}, durable.Retry(durable.Fixed(200*time.Millisecond, 100)))
	})
	return f
}

func (f *foldStarter) definitions() []durable.Definition {
	return []durable.Definition{f.single, f.latest, f.some, f.feeding}
}

// startWith makes a start by itself.
func (f *foldStarter) startWith(ctx context.Context, w *durable.Workflow[foldInput, int], in foldInput, opts ...durable.StartOption) (*durable.Run[int], error) {
	return w.Start(ctx, f.engine, in, opts...)
}

// startFunc makes a start, by itself or in a transaction.
type startFunc func(ctx context.Context, w *durable.Workflow[foldInput, int], in foldInput, opts ...durable.StartOption) (*durable.Run[int], error)

// start makes a start that folds. The ledger says when it began and, unless it failed, what it led to. id identifies it: a
// start that is repeated has the same.
func (f *foldStarter) start(ctx context.Context, in feedingInput, id string, start startFunc) (*durable.Run[int], error) {
	x := entry{Kind: kindFoldBegun, Exec: id, Step: in.Kind + "/" + in.Key, Value: in.Mode, Attempt: in.N}
	f.ledger.add(x)
	run, err := f.startWithKind(ctx, in, start)
	return run, f.recordOutcome(x, run, err)
}

func (f *foldStarter) startWithKind(ctx context.Context, in feedingInput, start startFunc) (*durable.Run[int], error) {
	switch in.Kind {
	case foldSingleton:
		return start(ctx, f.single, in.foldInput, durable.Singleton(in.Key, durable.SingletonPolicy(in.Mode)))
	case foldDebounce:
		return start(ctx, f.latest, in.foldInput, durable.Debounce(in.Key, quiet, atMost))
	}
	return start(ctx, f.some, in.foldInput, durable.Throttle(in.Key, throttleCount, throttlePeriod))
}

// recordOutcome records what a start led to. The error is nil if the start was refused or skipped.
func (f *foldStarter) recordOutcome(x entry, run *durable.Run[int], err error) error {
	x.Kind = kindFoldEnded
	var live *durable.LiveError
	var skipped *durable.ThrottledError
	switch {
	case err == nil:
		x.Run = run.RunID()
	case errors.As(err, &live):
		x.Run, x.Err = live.RunID, "live"
	case errors.As(err, &skipped):
		x.Err = "skipped"
	default:
		return fmt.Errorf("start %s: %w", x.Step, err)
	}
	f.ledger.add(x)
	return nil
}
