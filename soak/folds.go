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

// keyed is the input of a run that a start with a key has created.
type keyed struct {
	Key string `json:"key"`
	N   int    `json:"n"`
}

// feed is the input of a run whose step makes a start that folds.
type feed struct {
	Kind string `json:"kind"`
	Mode string `json:"mode,omitzero"`
	keyed
}

// folder makes starts that fold, and has the workflows that they start.
type folder struct {
	ledger  *ledger
	engine  *durable.Engine
	single  *durable.Workflow[keyed, int] // of singletons
	latest  *durable.Workflow[keyed, int] // of debounced starts
	some    *durable.Workflow[keyed, int] // of throttled starts
	feeding *durable.Workflow[feed, string]
}

func newFolder(book *ledger) *folder {
	f := &folder{ledger: book}
	f.single = durable.Define("single", func(c *durable.Ctx, in keyed) (int, error) {
		e := entry{Kind: kIn, Run: c.RunID(), Exec: rand.Text(), Step: foldSingleton, Value: in.Key}
		book.add(e)
		e.Kind = kOut
		defer book.add(e)
		if err := c.Compensate("undo", func(ctx context.Context) error { return wait(ctx, 30*time.Millisecond) }, durable.Retry(tries)); err != nil {
			return 0, err
		}
		if in.N%3 == 0 {
			if err := c.Sleep("sleep", 2*parkAfter); err != nil {
				return 0, err
			}
		}
		return in.N, c.Do("work", func(ctx context.Context) error { return wait(ctx, time.Duration(in.N%7*60)*time.Millisecond) }, durable.Retry(tries))
	})
	f.latest = durable.Define("latest", func(c *durable.Ctx, in keyed) (int, error) {
		book.add(entry{Kind: kRan, Run: c.RunID(), Step: in.Key, Value: strconv.Itoa(in.N)})
		return in.N, nil
	})
	f.some = durable.Define("some", func(_ *durable.Ctx, in keyed) (int, error) { return in.N, nil })
	f.feeding = durable.Define("feeding", func(c *durable.Ctx, in feed) (string, error) {
		return c.Step("start", func(ctx context.Context) (string, error) {
			run, err := f.start(ctx, in, c.RunID(), f.startWith)
			if err != nil {
				return "", err
			}
			return run.RunID(), wait(ctx, 50*time.Millisecond) // time to be killed after the start, and before it is recorded
		}, durable.Retry(durable.Fixed(200*time.Millisecond, 100)))
	})
	return f
}

func (f *folder) definitions() []durable.Definition {
	return []durable.Definition{f.single, f.latest, f.some, f.feeding}
}

// startWith makes a start by itself.
func (f *folder) startWith(ctx context.Context, w *durable.Workflow[keyed, int], in keyed, opts ...durable.StartOption) (*durable.Run[int], error) {
	return w.Start(ctx, f.engine, in, opts...)
}

// starter makes a start, by itself or in a transaction.
type starter func(ctx context.Context, w *durable.Workflow[keyed, int], in keyed, opts ...durable.StartOption) (*durable.Run[int], error)

// start makes a start that folds. The ledger says when it began and, unless it failed, what it led to. id identifies it: a
// start that is repeated has the same.
func (f *folder) start(ctx context.Context, in feed, id string, start starter) (*durable.Run[int], error) {
	x := entry{Kind: kFold, Exec: id, Step: in.Kind + "/" + in.Key, Value: in.Mode, Attempt: in.N}
	f.ledger.add(x)
	run, err := f.startOnly(ctx, in, start)
	return run, f.led(x, run, err)
}

func (f *folder) startOnly(ctx context.Context, in feed, start starter) (*durable.Run[int], error) {
	switch in.Kind {
	case foldSingleton:
		return start(ctx, f.single, in.keyed, durable.Singleton(in.Key, durable.WhileLive(in.Mode)))
	case foldDebounce:
		return start(ctx, f.latest, in.keyed, durable.Debounce(in.Key, quiet, atMost))
	}
	return start(ctx, f.some, in.keyed, durable.Throttle(in.Key, throttleCount, throttlePeriod))
}

// led records what a start led to. The error is nil if the start was refused or skipped.
func (f *folder) led(x entry, run *durable.Run[int], err error) error {
	x.Kind = kFolded
	var live *durable.LiveError
	var skipped *durable.SkippedError
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
