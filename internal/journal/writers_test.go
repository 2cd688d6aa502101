package journal

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// A second writer joins only when much waits.
func TestSecondWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait()
		for i := range secondWriterThreshold {
			wg.Go(func() { must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i)))) })
		}
		synctest.Wait()
		if got := j.PendingEntries(); got != 0 {
			t.Errorf("%d entries wait, want 0: the second writer took them", got)
		}
		close(f.gate)
		wg.Wait()
		closeNow(t, j)
	})
}

// A caller that is to write may find that a second writer has taken all there was.
func TestACallerThatIsToFlushFindsNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := New(new(fake).commit, nil, 0)
		first := j.newStepEntry(step("first"))
		own, err := j.appendEntry(first, true)
		if must(t, err); own == nil {
			t.Fatal("the first caller is not told to write")
		}
		for i := range secondWriterThreshold - 1 {
			_, err := j.appendEntry(j.newStepEntry(step(fmt.Sprint(i))), true)
			must(t, err)
		}
		must(t, <-first.result) // by the second writer
		j.writeOnce(own)
		synctest.Wait()
		if j.activeWriters != 0 {
			t.Errorf("%d writers are counted when all have left", j.activeWriters)
		}
		must(t, j.WriteStep(t.Context(), step("one more")))
		closeNow(t, j)
	})
}

// A caller that cannot leave writes itself if nobody else does, and hands over what came
// meanwhile.
func TestACallerThatIsAloneFlushesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(context.Background(), step("first"))) })
		synctest.Wait()
		for i := range 3 {
			wg.Go(func() { must(t, j.WriteStep(context.Background(), step(fmt.Sprint(i)))) })
		}
		synctest.Wait()
		f.gate <- struct{}{}
		synctest.Wait() // the first caller has gone, a writer holds the others at the gate
		if got := j.PendingEntries(); got != 0 {
			t.Errorf("%d entries wait for a writer", got)
		}
		f.gate <- struct{}{}
		wg.Wait()
		closeNow(t, j)
		if got := f.calls(); len(got) != 2 || len(got[0]) != 1 || len(got[1]) != 3 {
			t.Errorf("batches of %v, want one of 1 and one of 3", lengths(got))
		}
	})
}

// Where commits take turns, all that waits is one batch, however much it is.
func TestOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{gate: make(chan struct{})}
		j := New(f.commit, nil, 0)
		j.UseSingleWriter()
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait()
		for i := range 2 * secondWriterThreshold {
			wg.Go(func() { must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i)))) })
		}
		synctest.Wait()
		if got := j.PendingEntries(); got != 2*secondWriterThreshold {
			t.Errorf("%d entries wait, want %d", got, 2*secondWriterThreshold)
		}
		close(f.gate)
		wg.Wait()
		closeNow(t, j)
		if got := f.calls(); len(got) != 2 {
			t.Errorf("batches of %v, want two", lengths(got))
		}
	})
}

// TestAFlushWaitsForReturningCallers: callers that continue at once after each reply share their flushes from then
// on, wherever they run; callers that take their time are not waited for.
func TestAFlushWaitsForReturningCallers(t *testing.T) {
	const callers, each = 16, 200
	for _, busy := range []bool{true, false} {
		t.Run(fmt.Sprintf("busy=%v", busy), func(t *testing.T) {
			var flushes, items, waits, looks atomic.Int64
			j := New(func(_ context.Context, b *store.Batch) error {
				flushes.Add(1)
				items.Add(int64(b.Len()))
				for began := time.Now(); time.Since(began) < time.Millisecond; { // as a database would
					runtime.Gosched()
				}
				return nil
			}, nil, 0)
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for n := range each {
						must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i, n))))
						if n > each/4 && n < each-each/4 { // all callers are there
							looks.Add(1)
							if j.expects() {
								waits.Add(1)
							}
						}
						if !busy {
							realtime.Pass(5*time.Millisecond, "a caller that is not busy comes now and then")
						}
					}
				})
			}
			wg.Wait()
			closeNow(t, j)
			mean := float64(items.Load()) / float64(flushes.Load())
			waited := float64(waits.Load()) / float64(looks.Load())
			if busy && (mean < callers/2 || waited < 0.5) {
				t.Errorf("%.1f callers shared a flush, and were waited for at %.2f of all looks", mean, waited)
			}
			if !busy && waited > 0.5 {
				t.Errorf("callers that take their time were waited for at %.2f of all looks", waited)
			}
		})
	}
}

// expects reports whether the next writer waits for the callers that have their results, not counting
// trials.
func (j *Journal) expects() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.callerReturnRate >= minCallerReturnRate
}

// A writer that waits for callers sleeps until enough entries are pending, or until the time is over.
func TestAWriterSleepsUntilEnoughIsPending(t *testing.T) {
	for _, enough := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const limit = 200 * time.Microsecond
			j := New(new(fake).commit, nil, 0)
			own := j.addWriter() // so that no entry starts one
			began := time.Now()
			var wg sync.WaitGroup
			var inTime bool
			wg.Go(func() { inTime = j.sleepUntilPending(2, limit) })
			synctest.Wait()
			j.sleepUntilPending(2, limit) // returns at once, because one writer sleeps already
			appended := 1
			if enough {
				appended = 2
			}
			var last *Entry
			for i := range appended {
				last = j.newStepEntry(step(fmt.Sprint(i)))
				_, err := j.appendEntry(last, false)
				must(t, err)
			}
			wg.Wait()
			want := limit
			if enough {
				want = 0
			}
			if slept := time.Since(began); slept != want || inTime != enough {
				t.Errorf("with %d entries pending, the writer slept %v, want %v, and it says in time: %v", appended, slept, want, inTime)
			}
			if j.sleep.taken || j.sleep.wakeAt != 0 || len(j.sleep.woken) != 0 {
				t.Errorf("the sleep left %+v behind", j.sleep)
			}
			j.writeUntilEmpty(own, 0)
			must(t, <-last.result)
			closeNow(t, j)
		})
	}
}

// While a writer sleeps until callers return, their entries start no second writer, which would divide what is one batch.
func TestNoSecondWriterWhileOneAwaitsCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fake)
		j := New(f.commit, nil, 0)
		own := j.addWriter()
		const callers = secondWriterThreshold + 8
		go func() {
			j.sleepUntilPending(callers, time.Hour)
			j.writeUntilEmpty(own, 0)
		}()
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i)))) })
		}
		wg.Wait()
		closeNow(t, j)
		if got := f.calls(); len(got) != 1 || len(got[0]) != callers {
			t.Errorf("batches of %v, want one of %d", lengths(got), callers)
		}
	})
}

// newJournalThatAwaitsCallers returns a journal whose flushes are slow, and whose callers have always returned in time, and a writer of it.
func newJournalThatAwaitsCallers() (j *Journal, own *transactionRuns) {
	j = New(new(fake).commit, nil, 0)
	j.callerReturnRate = 1
	j.counters.averageTime.Store(int64(time.Hour))
	return j, j.addWriter()
}

// If many entries are pending, a writer does not wait for the callers of its last flush.
func TestALargeBatchWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, own := newJournalThatAwaitsCallers()
		var last *Entry
		for i := range secondWriterThreshold {
			if i > 0 {
				began := time.Now()
				j.awaitMoreEntries(minCallersToSleep)
				if waited := time.Since(began); waited == 0 {
					t.Fatalf("with %d entries pending, the writer did not wait for callers", i)
				}
				j.callerReturnRate = 1
			}
			last = j.newStepEntry(step(fmt.Sprint(i)))
			j.pendingEntries = append(j.pendingEntries, last)
		}
		began := time.Now()
		j.awaitMoreEntries(minCallersToSleep)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("with %d entries pending, the writer waited %v for callers", secondWriterThreshold, waited)
		}
		j.writeUntilEmpty(own, 0)
		must(t, <-last.result)
		closeNow(t, j)
	})
}

// Callers that return after the time of a sleep do not count as callers that returned in time, although the writer may wake up late and find
// their entries.
func TestLateCallersDoNotCountAsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, own := newJournalThatAwaitsCallers()
		const callers = 16
		for range 12 {
			go func() {
				time.Sleep(maxCallerWait) // ends together with the sleep of the writer, perhaps before the writer looks
				j.mu.Lock()
				defer j.mu.Unlock()
				for i := range callers {
					j.pendingEntries = append(j.pendingEntries, j.newStepEntry(step(fmt.Sprint(i))))
				}
			}()
			j.awaitMoreEntries(callers)
			time.Sleep(maxCallerWait) // if the writer has not slept, the callers come now
			synctest.Wait()
			j.pendingEntries = nil
		}
		if j.callerReturnRate >= minCallerReturnRate {
			t.Errorf("callers that are always late have the return rate %.2f", j.callerReturnRate)
		}
		j.writeUntilEmpty(own, 0)
		closeNow(t, j)
	})
}
