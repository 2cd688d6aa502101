package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// lockable is a Commit that waits for the lock of one run as long as it is held, and fails then.
type lockable struct {
	mu      sync.Mutex
	held    uuid.UUID
	waits   []bool // for each transaction that met the lock, whether it was brief
	commits int
}

// pass lets the bubble's time pass.
func pass(d time.Duration) { <-time.After(d) }

func (l *lockable) commit(_ context.Context, b *store.Batch) error {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	for _, s := range b.Signals {
		if s.Run == held {
			if b.ShortLockWait {
				pass(10 * time.Millisecond)
			} else {
				pass(100 * time.Millisecond)
			}
			l.mu.Lock()
			l.waits = append(l.waits, b.ShortLockWait)
			l.mu.Unlock()
			return fmt.Errorf("held: %w", store.ErrLocked)
		}
		s.Outcome = store.Written
	}
	pass(time.Millisecond)
	l.mu.Lock()
	l.commits++
	l.mu.Unlock()
	return nil
}

func (l *lockable) hold(run uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = run
}

// Whose lock is held is dismissed, and so are those who may wait for a lock beside it; steps are
// flushed at once. As long as somebody writes alone, nobody else waits for the same lock.
func TestNoWriteWaitsForALockOfAnotherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(lockable)
		j := New(l.commit, nil, 0)
		run, other := uuid.New(), uuid.New()
		l.hold(run)
		held, beside := &store.SignalWrite{Run: run}, &store.SignalWrite{Run: other}
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait()
		began := time.Now()
		for _, s := range []*store.SignalWrite{held, beside} {
			wg.Go(func() {
				err := j.WriteSignal(t.Context(), s)
				if failed, typed := errors.AsType[*WriteError](err); !errors.Is(err, store.ErrLocked) || !typed || failed.MayHaveCommitted {
					t.Errorf("got %v, want ErrLocked, and that nothing was written", err)
				}
			})
		}
		for i := range secondWriterThreshold - 4 {
			wg.Go(func() {
				must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i))))
				if took := time.Since(began); took > 150*time.Millisecond {
					t.Errorf("a step waited %v for the lock of a signal", took)
				}
			})
		}
		wg.Wait()

		alone, free := j.NewSeparateTxWriter(), j.NewSeparateTxWriter()
		must(t, free.WriteSignal(t.Context(), beside))
		free.Close()
		for range 2 {
			if err := alone.WriteSignal(t.Context(), held); !errors.Is(err, store.ErrLocked) {
				t.Errorf("alone: %v", err)
			}
		}
		began = time.Now()
		if err := j.WriteSignal(t.Context(), &store.SignalWrite{Run: run}); !errors.Is(err, store.ErrLocked) || time.Since(began) > 0 {
			t.Errorf("another for the same run: %v after %v, want ErrLocked at once", err, time.Since(began))
		}
		l.hold(uuid.Nil)
		must(t, alone.WriteSignal(t.Context(), held))
		alone.Close()
		must(t, j.WriteSignal(t.Context(), &store.SignalWrite{Run: run}))
		if want := []bool{false, true, true}; !slices.Equal(l.waits, want) {
			t.Errorf("waits that were brief: %v, want %v", l.waits, want)
		}
		if held.Outcome != store.Written || beside.Outcome != store.Written {
			t.Errorf("outcomes %d and %d", held.Outcome, beside.Outcome)
		}
		closeNow(t, j)
	})
}

// What the database rejects fails alone, and its neighbours commit.
func TestRejectedFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{}), commitResult: func(names []string) error {
			if slices.Contains(names, "bad") {
				return store.ErrRejected
			}
			return nil
		}}
		j := New(f.commit, nil, 0)
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait()
		for i := range secondWriterThreshold - 2 {
			wg.Go(func() { must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i)))) })
		}
		wg.Go(func() {
			err := j.WriteStep(t.Context(), step("bad"))
			if failed, typed := errors.AsType[*WriteError](err); !errors.Is(err, store.ErrRejected) || !typed || failed.MayHaveCommitted {
				t.Errorf("got %v, want ErrRejected, and that nothing was written", err)
			}
		})
		synctest.Wait()
		close(f.gate)
		wg.Wait()
		closeNow(t, j)
	})
}

// A write alone is never under way together with its run's leave, and Close waits for it.
func TestASeparateTxWriterKeepsTheOrderOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		s := step("a")
		leave := &store.OwnershipEnd{UUID: s.Step.Run, Status: store.Waiting, HoldReason: "leave"}
		alone := j.NewSeparateTxWriter()
		defer alone.Close()
		var wg sync.WaitGroup
		wg.Go(func() { must(t, alone.WriteStep(t.Context(), s)) })
		synctest.Wait() // at the gate
		wg.Go(func() { must(t, j.WriteOwnershipEnd(t.Context(), leave)) })
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("stranger"))) })
		synctest.Wait()
		second := j.NewSeparateTxWriter()
		defer second.Close()
		if err := second.WriteOwnershipEnd(t.Context(), leave); !errors.Is(err, store.ErrLocked) {
			t.Errorf("the leave beside its run's step: %v, want ErrLocked", err)
		}
		for range 3 {
			f.gate <- struct{}{}
			synctest.Wait()
		}
		wg.Wait()
		closeNow(t, j)
		calls := f.calls()
		at := func(name string) int {
			return slices.IndexFunc(calls, func(names []string) bool { return slices.Contains(names, name) })
		}
		if len(calls) != 3 || at("leave") < at("a") {
			t.Errorf("transactions %v: the leave was under way beside its run's step", calls)
		}
	})
}

// A caller whose context ends while its write is under way is told that it may be durable.
func TestASeparateTxWriterReportsThatItMayHaveCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		alone := j.NewSeparateTxWriter()
		defer alone.Close()
		err := alone.WriteStep(ctx, step("a"))
		if failed, typed := errors.AsType[*WriteError](err); !errors.Is(err, context.DeadlineExceeded) || !typed || !failed.MayHaveCommitted {
			t.Errorf("got %v, want the end of the context, and that it may have been committed", err)
		}
		close(f.gate)
		closeNow(t, j)
	})
}

// A transaction alone is repeated while the database is unavailable, as a batch is. If it fails after a try that may have been
// committed, the error says so.
func TestASeparateTxWriterRetriesWhileTheDatabaseIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := []error{store.ErrUnavailable, nil, store.ErrUnavailable, store.ErrRejected}
		f := &fake{commitResult: func([]string) error {
			err := store.ErrUnavailable
			if len(results) > 0 {
				err, results = results[0], results[1:]
			}
			return err
		}}
		j := New(f.commit, nil, time.Minute)
		alone := j.NewSeparateTxWriter()
		defer alone.Close()
		began := time.Now() // the writes of one writer share one patience, which begins with the first of them
		must(t, alone.WriteStep(t.Context(), step("a")))
		for _, want := range []error{store.ErrRejected, store.ErrUnavailable} {
			err := alone.WriteStep(t.Context(), step("b"))
			if failed, typed := errors.AsType[*WriteError](err); !errors.Is(err, want) || !typed || !failed.MayHaveCommitted {
				t.Errorf("got %v, want %v, and that it may have been committed", err, want)
			}
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("the writer gave up after %v, want the patience of a minute", took)
		}
		closeNow(t, j)
	})
}
