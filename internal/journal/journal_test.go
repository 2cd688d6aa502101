package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// fake is a Commit that can be held, and returns what it is told.
type fake struct {
	mu           sync.Mutex
	batches      [][]string // the step names of each call
	commitResult func(names []string) error
	gate         chan struct{} // if set, each call takes one from it
}

func (f *fake) commit(ctx context.Context, b *store.Batch) error {
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var names []string
	for _, s := range b.Steps {
		names = append(names, s.Step.Name)
	}
	for _, r := range b.OwnershipEnds {
		names = append(names, r.HoldReason)
	}
	for _, s := range b.Starts {
		names = append(names, s.Run.Name)
	}
	f.mu.Lock()
	f.batches = append(f.batches, names)
	f.mu.Unlock()
	if f.commitResult != nil {
		if err := f.commitResult(names); err != nil {
			return err
		}
	}
	for _, s := range b.Steps {
		s.Outcome = store.Written
	}
	return nil
}

func (f *fake) calls() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.batches
}

func step(name string) *store.StepWrite {
	return &store.StepWrite{Step: store.Step{Name: name, Run: uuid.New()}}
}

func closeNow(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// What arrives during one commit is the next batch.
func TestCommitInFlightGathersTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait() // the first commit is held at the gate
		const more = secondWriterThreshold - 1
		for i := range more {
			wg.Go(func() { must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i)))) })
		}
		synctest.Wait()
		if got := j.PendingEntries(); got != more {
			t.Errorf("%d entries wait, want %d", got, more)
		}
		close(f.gate)
		wg.Wait()
		closeNow(t, j)
		if got := f.calls(); len(got) != 2 || len(got[0]) != 1 || len(got[1]) != more {
			t.Errorf("batches of %v, want one of 1 and one of %d", lengths(got), more)
		}
	})
}

// One bad row fails alone.
func TestBadRowFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{}), commitResult: func(names []string) error {
			for _, n := range names {
				if n == "bad" {
					return store.ErrBadData
				}
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
			if err := j.WriteStep(t.Context(), step("bad")); !errors.Is(err, store.ErrBadData) {
				t.Errorf("the bad row got %v, want ErrBadData", err)
			}
		})
		synctest.Wait()
		close(f.gate)
		wg.Wait()
		closeNow(t, j)
	})
}

// While the database is away the same batch is replayed, and nobody is told.
func TestUnavailableIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 4
		f := &fake{commitResult: func([]string) error {
			if left--; left >= 0 {
				return fmt.Errorf("down: %w", store.ErrUnavailable)
			}
			return nil
		}}
		var seen FlushStats
		j := New(f.commit, func(fl FlushStats) { seen = fl }, time.Minute)
		must(t, j.WriteStep(t.Context(), step("a")))
		closeNow(t, j)
		if seen.Retries != 4 || seen.Rows != 1 {
			t.Errorf("observed %+v, want 4 retries of 1 item", seen)
		}
	})
}

// Patience ends: the caller is told, and the journal goes on.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		f := &fake{commitResult: func([]string) error {
			if down {
				return store.ErrUnavailable
			}
			return nil
		}}
		j := New(f.commit, nil, 10*time.Second)
		began := time.Now()
		if err := j.WriteStep(t.Context(), step("a")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("gave up after %v, want about 10s", took)
		}
		down = false
		must(t, j.WriteStep(t.Context(), step("b")))
		closeNow(t, j)
	})
}

// A marker that nobody has flushed yet is withdrawn; one in flight is waited for.
func TestSettleMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		inFlight, err := j.AppendStartedMarker(step("in flight"))
		must(t, err)
		synctest.Wait()
		waiting, err := j.AppendStartedMarker(step("waiting"))
		must(t, err)
		if committed, err := j.WithdrawOrAwaitStartedMarker(waiting); committed || err != nil {
			t.Errorf("the waiting marker: committed %v, %v; want withdrawn", committed, err)
		}
		close(f.gate)
		if committed, err := j.WithdrawOrAwaitStartedMarker(inFlight); !committed || err != nil {
			t.Errorf("the marker in flight: committed %v, %v; want committed", committed, err)
		}
		closeNow(t, j)
		if got := f.calls(); len(got) != 1 || got[0][0] != "in flight" {
			t.Errorf("flushed %v, want only the one in flight", got)
		}
	})
}

// A caller whose context ends before its entry is taken leaves nothing behind.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if err := j.WriteStep(ctx, step("second")); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(f.gate)
		wg.Wait()
		closeNow(t, j)
		if got := f.calls(); len(got) != 1 {
			t.Errorf("flushed %v, want only the first", got)
		}
	})
}

// TestNothingIsWrittenForACallerThatHasLeft: a flush may be faster than the caller's look at its context.
func TestNothingIsWrittenForACallerThatHasLeft(t *testing.T) {
	f := new(fake)
	j := New(f.commit, nil, 0)
	defer closeNow(t, j)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	separate := j.NewSeparateTxWriter()
	defer separate.Close()
	for name, w := range map[string]CommittingWriter{"journal": j, "alone": separate} {
		for range 1000 {
			var written *WriteError
			if err := w.WriteStep(ended, step(name)); !errors.As(err, &written) || written.MayHaveCommitted || !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if calls := f.calls(); len(calls) > 0 {
		t.Errorf("%d commits for a caller that had left, such as %q", len(calls), calls[0])
	}
}

// Close returns results to pending entries and refuses new ones; it gives up a hung commit when ctx ends.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := j.WriteStep(t.Context(), step("hung")); !errors.Is(err, context.Canceled) {
				t.Errorf("the hung entry got %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := j.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v, want DeadlineExceeded", err)
		}
		wg.Wait()
		if err := j.WriteStep(t.Context(), step("late")); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	})
}

// A flush is bounded in items, and keeps an entry's items together.
func TestFlushIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait()
		for range 3 {
			wg.Go(func() {
				starts := make([]*store.StartWrite, maxFlushRows/2+1)
				for i := range starts {
					starts[i] = &store.StartWrite{}
				}
				must(t, j.WriteStarts(t.Context(), starts))
			})
		}
		synctest.Wait()
		close(f.gate)
		wg.Wait()
		closeNow(t, j)
		if got := lengths(f.calls()); len(got) != 4 {
			t.Errorf("batches of %v, want each of the three large entries alone", got)
		}
	})
}

func lengths(batches [][]string) (n []int) {
	for _, b := range batches {
		n = append(n, len(b))
	}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// One writer alone: what the journal itself costs a step.
func BenchmarkStep(b *testing.B) {
	for _, callers := range []int{1, 100} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			j := New(func(_ context.Context, batch *store.Batch) error { return nil }, nil, 0)
			b.ReportAllocs()
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := j.WriteStep(b.Context(), step("s")); err != nil {
						b.Error(err)
					}
				}
			})
			if err := j.Close(context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
}
