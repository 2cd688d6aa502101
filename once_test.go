package durable_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// markStore is a store that calls a function before or after the commit of an at-most-once step's marker. While deaf is set, no
// lease is renewed.
type markStore struct {
	durable.Store
	before, after func()
	deaf          atomic.Bool
}

func (s *markStore) Commit(ctx context.Context, b *store.Batch) error {
	mark := slices.ContainsFunc(b.Steps, func(w *store.StepWrite) bool { return w.Step.Name == "charge" && w.Step.Status == store.StepStarted })
	if mark && s.before != nil {
		s.before()
	}
	err := s.Store.Commit(ctx, b)
	if mark && s.after != nil {
		s.after()
	}
	return err
}

func (s *markStore) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	if s.deaf.Load() {
		return store.RenewResult{}, store.ErrUnavailable
	}
	return s.Store.RenewLeases(ctx, h)
}

// If a pause or a cancel was acknowledged before the marker is written, the process learns of it from the outcome of that write:
// the function is not called, and the step's outcome is not unknown later.
func TestAtMostOnceIsNotCalledAfterAnAcknowledgedControl(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for _, verb := range []durable.Verb{durable.VerbCancel, durable.VerbPause} {
			var charged, attempt atomic.Int32
			w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
				return 0, c.Do("charge", func(ctx context.Context) error {
					charged.Add(1)
					attempt.Store(int32(durable.Attempt(ctx)))
					return nil
				}, durable.AtMostOnce())
			})
			other, id := engineOn(t, s), string(verb)
			m := &markStore{Store: s}
			var once atomic.Bool
			m.before = func() {
				if once.Swap(true) {
					return
				}
				control := other.Cancel
				if verb == durable.VerbPause {
					control = other.Pause
				}
				if _, err := control(within(t), id); err != nil {
					t.Error(err)
				}
			}
			e := engineOn(t, m, w)
			stop := running(t, e)
			run, err := w.Start(within(t), e, 0, durable.ID(id))
			if err != nil {
				t.Fatal(err)
			}
			if verb == durable.VerbCancel {
				if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) || charged.Load() != 0 {
					t.Errorf("%v, charged %d times after the cancel", err, charged.Load())
				}
			} else {
				awaitStatus(t, other, id, durable.StatusPaused)
				if charged.Load() != 0 {
					t.Errorf("charged %d times after the pause", charged.Load())
				}
				must(t)(other.Resume(within(t), id))
				if _, err := run.Result(within(t)); err != nil || charged.Load() != 1 || attempt.Load() != 1 {
					t.Errorf("resumed: %v, charged %d times, in attempt %d", err, charged.Load(), attempt.Load())
				}
			}
			stop()
		}
	})
}

// If the outcome of the marker's write arrives after the lease has expired, the function is not called: the next owner has called
// Verify meanwhile, and acts on what it returned.
func TestAtMostOnceIsNotCalledWhenTheLeaseIsOver(t *testing.T) {
	for name, verified := range map[string]bool{"verified": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var charged, refunded atomic.Int32
				opts := []durable.StepOption{durable.AtMostOnce()}
				if verified {
					opts = append(opts, durable.Verify(func(context.Context) (int, bool, error) { n := charged.Load(); return int(n), n > 0, nil }))
				}
				w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
					if err := c.Compensate("refund", func(context.Context) error { refunded.Add(1); return nil }); err != nil {
						return 0, err
					}
					return c.Step("charge", func(context.Context) (int, error) { return int(charged.Add(1)), nil }, opts...)
				})
				m := &markStore{Store: s}
				marked, held := make(chan struct{}, 9), make(chan struct{})
				m.after = func() { m.deaf.Store(true); marked <- struct{}{}; <-held }
				e := engineWith(t, m, durable.Config{Workflows: []durable.Definition{w}, Lease: time.Second, Grace: -1})
				stop := running(t, e)
				if _, err := w.Start(within(t), e, 0, durable.ID("x")); err != nil {
					t.Fatal(err)
				}
				<-marked
				e2 := engineOn(t, s, w)
				running(t, e2)
				successor, err := w.Start(within(t), e2, 0, durable.ID("x"))
				if err != nil {
					t.Fatal(err)
				}
				_, err = successor.Result(within(t))
				if verified && (err != nil || charged.Load() != 1) || !verified && (!errors.Is(err, durable.ErrOutcomeUnknown) || refunded.Load() != 1) {
					t.Fatalf("the next owner: %v, charged %d, refunded %d times", err, charged.Load(), refunded.Load())
				}
				before := charged.Load()
				close(held)
				stop()
				if charged.Load() != before {
					t.Errorf("charged %d more times by a process whose lease was over", charged.Load()-before)
				}
			})
		})
	}
}

// If the run is cancelled while Verify is called, and Verify reports that the step did not happen, the function is not called.
func TestCancelWhileVerifying(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		asked := make(chan struct{}, 9)
		var charged atomic.Int32
		var again atomic.Bool
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			return c.Step("charge", func(ctx context.Context) (int, error) {
				if again.Load() {
					return int(charged.Add(1)), nil
				}
				return 0, g.pass(ctx)
			}, durable.Verify(func(ctx context.Context) (int, bool, error) {
				asked <- struct{}{}
				<-ctx.Done()
				return 0, false, nil
			}))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		stop()
		again.Store(true)
		e = engineOn(t, s, w)
		running(t, e)
		<-asked
		must(t)(e.Cancel(within(t), "x"))
		if _, err = run.Result(within(t)); charged.Load() != 0 || !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("%v, charged %d times after the cancel", err, charged.Load())
		}
	})
}

type panicsInMarshal struct{ N int }

func (panicsInMarshal) MarshalJSON() ([]byte, error) { panic("a nil pointer, say") }

// A step whose value panics while it is encoded has taken effect: it fails, and is not executed again.
func TestValueThatPanicsWhenEncoded(t *testing.T) {
	var effects atomic.Int32
	retry := durable.Retry(durable.Fixed(time.Millisecond, 5))
	effect := func(context.Context) (panicsInMarshal, error) { effects.Add(1); return panicsInMarshal{}, nil }
	for name, do := range map[string]func(c *durable.Ctx) error{
		"step": func(c *durable.Ctx) error { _, err := c.Step("charge", effect, retry); return err },
		"once": func(c *durable.Ctx) error { _, err := c.Step("charge", effect, durable.AtMostOnce()); return err },
		"map": func(c *durable.Ctx) error {
			_, err := c.Map("m", []int{1}, func(ctx context.Context, _ int) (panicsInMarshal, error) { return effect(ctx) }, durable.ItemOptions(retry))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			effects.Store(0)
			_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) { return 0, do(c) })
			if !errors.Is(err, durable.ErrNotEncodable) || !errors.Is(err, durable.ErrPanic) || effects.Load() != 1 {
				t.Errorf("%v, %d effects", err, effects.Load())
			}
			var failed *durable.RunError
			if !errors.As(err, &failed) || failed.Stack == "" {
				t.Errorf("the stack is lost: %+v", failed)
			}
		})
	}
}
