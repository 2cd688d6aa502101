package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// bookings are steps with compensations. The code between them takes its time, and looks at its context.
type bookings struct {
	undo   gate
	mu     sync.Mutex
	undone []string
}

func (b *bookings) book(c *durable.Ctx) error {
	for i := range 3 {
		realtime.Pass(5*time.Millisecond, "the code between two calls executes")
		if c.Err() != nil {
			return context.Cause(c)
		}
		if err := c.Do(fmt.Sprint("book", i), func(context.Context) error { return nil }); err != nil {
			return err
		}
		name := fmt.Sprint("undo", i)
		if err := c.Compensate(name, func(ctx context.Context) error {
			if err := b.undo.pass(ctx); err != nil {
				return err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.undone = append(b.undone, name)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bookings) wantAllUndone(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.undone, []string{"undo2", "undo1", "undo0"}) {
		t.Errorf("the compensations executed were %q", b.undone)
	}
}

// waitsOfADay are calls that last for long.
var waitsOfADay = map[string]func(c *durable.Ctx) error{
	"sleep":   func(c *durable.Ctx) error { return c.Sleep("night", 24*time.Hour) },
	"child":   func(c *durable.Ctx) error { _, err := c.Child("kid", forever, 1); return err },
	"receive": func(c *durable.Ctx) error { _, err := c.Receive[int]("signal"); return err },
	"branch sleeps": func(c *durable.Ctx) error {
		_, err := c.Go("branch", func(c *durable.Ctx) (int, error) { return 1, c.Sleep("night", 24*time.Hour) }).Wait()
		return err
	},
	"backoff": func(c *durable.Ctx) error {
		return c.Do("failing", func(context.Context) error { return errBroken }, durable.Retry(durable.Fixed(24*time.Hour, 5)))
	},
}

// endAs cancels the run, or lets it expire.
func endAs(t *testing.T, e *durable.Engine, want durable.Status) {
	t.Helper()
	if want == durable.StatusCancelled {
		must(t)(e.Cancel(within(t), "run"))
	} else if err := e.SetTimeout(within(t), "run", time.Millisecond); err != nil {
		t.Fatal(err)
	}
}

// compensateTwice stops the engine when the run executes its first compensation, and waits until the run has ended in another engine.
func compensateTwice(t *testing.T, undo gate, stop func(), next *durable.Engine, want durable.Status) {
	t.Helper()
	<-undo.entered
	stop()
	close(undo.open)
	running(t, next)
	awaitStatus(t, next, "run", want)
}

// A branch that looks at its context registers all its compensations in the replay of a run that was cancelled, although another branch
// comes to its open call earlier. It does so again if the process stops while the run compensates.
func TestABranchThatLooksAtItsContextRegistersItsCompensations(t *testing.T) {
	for what, wait := range waitsOfADay {
		t.Run(what, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				b := bookings{undo: newGate()}
				w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
					waits := c.Go("waits", func(c *durable.Ctx) (int, error) { return 1, wait(c) })
					books := c.Go("books", func(c *durable.Ctx) (int, error) {
						if err := b.book(c); err != nil {
							return 0, err
						}
						return c.Receive[int]("booked")
					})
					_, err := waits.Wait()
					_, also := books.Wait()
					return 0, errors.Join(err, also)
				})
				cfg := durable.Config{Workflows: []durable.Definition{w, forever}, Grace: -1}
				e := engineWith(t, s, cfg)
				stop := running(t, e)
				read(w.Start(within(t), e, 1, durable.ID("run")))(t)
				awaitStatus(t, e, "run", durable.StatusWaiting)
				must(t)(e.Cancel(within(t), "run"))
				compensateTwice(t, b.undo, stop, engineWith(t, s, cfg), durable.StatusCancelled)
				b.wantAllUndone(t)
			})
		})
	}
}

// A run that compensates again after its process has stopped is not held because a branch of it sleeps.
func TestARunThatCompensatesAgainRegistersItsCompensations(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		b := bookings{undo: newGate()}
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			c.Go("heartbeat", func(c *durable.Ctx) (int, error) { return 0, c.Sleep("night", 24*time.Hour) })
			if err := b.book(c); err != nil {
				return 0, err
			}
			return 0, errBroken
		})
		cfg := durable.Config{Workflows: []durable.Definition{w}, Grace: -1}
		e := engineWith(t, s, cfg)
		stop := running(t, e)
		read(w.Start(within(t), e, 1, durable.ID("run")))(t)
		compensateTwice(t, b.undo, stop, engineWith(t, s, cfg), durable.StatusFailed)
		b.wantAllUndone(t)
	})
}

// A run that fails in a replay also executes the compensations of a branch that repeats its calls more slowly.
func TestARunThatFailsInAReplayCompensatesItsBranches(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		b := bookings{undo: newGate()}
		close(b.undo.open)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			c.Go("books", func(c *durable.Ctx) (int, error) {
				if err := b.book(c); err != nil {
					return 0, err
				}
				return c.Receive[int]("booked")
			})
			if _, err := c.Receive[int]("go"); err != nil {
				return 0, err
			}
			return 0, errBroken
		})
		e := engineOn(t, s, w)
		running(t, e)
		read(w.Start(within(t), e, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "books/booked", durable.CheckpointStarted)
		awaitStatus(t, e, "run", durable.StatusWaiting)
		orFail(0, e.Signal(within(t), "run", "go", 1))(t)
		awaitStatus(t, e, "run", durable.StatusFailed)
		b.wantAllUndone(t)
	})
}

// The context of a run that must end also ends in a replay in which no call is refused: after its end was recorded, and if the history
// holds a call that the code no longer makes.
func TestTheContextOfARunThatMustEndEndsInAReplay(t *testing.T) {
	for _, want := range []durable.Status{durable.StatusCancelled, durable.StatusExpired} {
		t.Run(string(want), func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				undo, called := newGate(), make(chan struct{}, 10)
				version := func(retired bool) *durable.Workflow[int, int] {
					return durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
						if !retired {
							if err := c.Do("old", func(context.Context) error { return nil }); err != nil {
								return 0, err
							}
						}
						if err := c.Do("step", func(context.Context) error { return nil }); err != nil {
							return 0, err
						}
						if err := c.Compensate("undo", undo.pass); err != nil {
							return 0, err
						}
						called <- struct{}{}
						<-c.Done()
						return 0, context.Cause(c)
					}, durable.Retired("old"))
				}
				w := version(false)
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
				stop := running(t, e)
				read(w.Start(within(t), e, 1, durable.ID("run")))(t)
				<-called
				stop()
				endAs(t, e, want)
				cfg := durable.Config{Workflows: []durable.Definition{version(true)}, Grace: -1}
				compensateTwice(t, undo, running(t, engineWith(t, s, cfg)), engineWith(t, s, cfg), want)
			})
		})
	}
}
