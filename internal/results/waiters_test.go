package results

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// world is a database with runs, and a process that executes some of them.
type world struct {
	mu       sync.Mutex
	runs     map[uuid.UUID]*store.Run
	here     map[uuid.UUID]bool  // runs that this process executes
	fails    error               // of every query
	rejected map[uuid.UUID]error // of every query for the run
	queries  int
	log      strings.Builder

	beforeFind, afterFind func() // called by Find, if they are not nil
}

const patience = time.Minute

func (w *world) IsExecuting(id uuid.UUID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.here[id]
}

func (*world) Patience() time.Duration { return patience }

func (w *world) Statuses(_ context.Context, ids []uuid.UUID) ([]store.Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queries++
	if w.fails != nil {
		return nil, w.fails
	}
	all := make([]store.Status, len(ids))
	for i, id := range ids {
		if err := w.rejected[id]; err != nil {
			return nil, err
		}
		if r := w.runs[id]; r != nil {
			all[i] = r.Status
		}
	}
	return all, nil
}

func (w *world) GetRunsSelectingPayloads(_ context.Context, refs []store.RunRef, _ store.PayloadSelection) ([]*store.Run, error) {
	if w.beforeFind != nil {
		w.beforeFind()
	}
	if w.afterFind != nil {
		defer w.afterFind()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*store.Run, len(refs))
	for i, ref := range refs {
		id, _ := ref.AsUUID()
		if r := w.runs[id]; r != nil {
			all[i] = new(*r)
		}
	}
	return all, nil
}

// set changes the world.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// run adds a run that is not executed here.
func (w *world) run(status store.Status) *store.Run {
	r := &store.Run{UUID: uuid.New(), Status: status}
	w.set(func() { w.runs[r.UUID] = r })
	return r
}

type outcome struct {
	run *store.Run
	err error
	at  time.Duration // since the wait began
}

// awaiting waits for the run in a goroutine, and returns when the goroutine waits.
func awaiting(ctx context.Context, all *Waiters, id uuid.UUID, outside bool) <-chan outcome {
	got, began := make(chan outcome, 1), time.Now()
	go func() {
		run, err := all.Await(ctx, id, outside, nil)
		got <- outcome{run, err, time.Since(began)}
	}()
	synctest.Wait()
	return got
}

// pass lets the time of the synctest bubble pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// in executes the test with time that passes at once, and checks that no goroutine outlasts the waiters.
func in(t *testing.T, test func(t *testing.T, w *world, all *Waiters)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{runs: map[uuid.UUID]*store.Run{}, here: map[uuid.UUID]bool{}, rejected: map[uuid.UUID]error{}}
		all := New(w, w, slog.New(slog.NewTextHandler(&w.log, nil)))
		test(t, w, all)
		synctest.Wait()
		if _, looking := all.QueryCount(); looking {
			t.Error("nobody waits, and the database is still queried")
		}
	})
}

// TestAnEndInThisProcessNeedsNoQuery checks that the end of a run that is executed here is delivered at once, to all waiters,
// without a query.
func TestAnEndInThisProcessNeedsNoQuery(t *testing.T) {
	in(t, func(t *testing.T, w *world, all *Waiters) {
		run := w.run(store.Running)
		w.set(func() { w.here[run.UUID] = true })
		first, second := awaiting(t.Context(), all, run.UUID, true), awaiting(t.Context(), all, run.UUID, false)
		all.Deliver(&store.Run{UUID: run.UUID, Status: store.Completed})
		for _, got := range []outcome{<-first, <-second} {
			if got.err != nil || got.run.Status != store.Completed || got.at != 0 {
				t.Errorf("%+v", got)
			}
		}
		if w.queries != 0 {
			t.Errorf("%d queries", w.queries)
		}
	})
}

// TestAnEndInAnotherProcessIsRead checks that the end of a run that another process executes is read within the longest
// interval, and at once after a recheck.
func TestAnEndInAnotherProcessIsRead(t *testing.T) {
	in(t, func(t *testing.T, w *world, all *Waiters) {
		run, other := w.run(store.Running), w.run(store.Running)
		got := awaiting(t.Context(), all, run.UUID, true)
		pass(10 * time.Minute) // the intervals have grown to the longest
		w.set(func() { run.Status = store.Failed })
		if it := <-got; it.err != nil || it.run.Status != store.Failed || it.at > 10*time.Minute+3*maxQueryDelay/2 {
			t.Errorf("%+v", it)
		}
		got = awaiting(t.Context(), all, other.UUID, true)
		pass(10 * time.Minute)
		w.set(func() { other.Status = store.Completed })
		all.QueryNow()
		if it := <-got; it.err != nil || it.at > 10*time.Minute+3*firstQueryDelay/2 {
			t.Errorf("after a recheck: %+v", it)
		}
	})
}

// TestRunThatMovesIsRead checks that the waiters of a run that leaves this process learn its end from the database.
func TestRunThatMovesIsRead(t *testing.T) {
	in(t, func(t *testing.T, w *world, all *Waiters) {
		run := w.run(store.Running)
		w.set(func() { w.here[run.UUID] = true })
		got := awaiting(t.Context(), all, run.UUID, false)
		w.set(func() { w.here[run.UUID], run.Status = false, store.Completed })
		all.NoteRunLeft(run.UUID)
		if it := <-got; it.err != nil || it.run == nil || it.at > 3*firstQueryDelay/2 {
			t.Errorf("%+v", it)
		}
	})
}

// TestRunThatIsRepairedMeanwhile checks that a run that is repaired while a query reads it has not ended, neither for those who
// waited before the repair, nor, even if the query had read the former end, for those who wait since then.
func TestRunThatIsRepairedMeanwhile(t *testing.T) {
	for _, hasRead := range []bool{false, true} {
		in(t, func(t *testing.T, w *world, all *Waiters) {
			run := w.run(store.Failed)
			var late <-chan outcome
			repair := func() {
				if late == nil {
					w.set(func() { run.Status = store.Pending })
					late = awaiting(t.Context(), all, run.UUID, true)
				}
			}
			if hasRead {
				w.afterFind = repair
			} else {
				w.beforeFind = repair
			}
			early := awaiting(t.Context(), all, run.UUID, true)
			pass(time.Minute)
			w.set(func() { run.Status = store.Completed })
			want := store.Completed
			if hasRead {
				want = store.Failed
			}
			if it := <-early; it.err != nil || it.run.Status != want {
				t.Errorf("read %v: waited before: %v, %+v", hasRead, it.err, it.run)
			}
			if it := <-late; it.err != nil || it.run.Status != store.Completed {
				t.Errorf("read %v: waited since: %v, %+v", hasRead, it.err, it.run)
			}
		})
	}
}

// TestMissingRun checks that a wait for a run that does not exist returns no run.
func TestMissingRun(t *testing.T) {
	in(t, func(t *testing.T, _ *world, all *Waiters) {
		if it := <-awaiting(t.Context(), all, uuid.New(), true); it.run != nil || it.err != nil {
			t.Errorf("%+v", it)
		}
	})
}

// TestOutageIsWaitedOut checks that nobody gets an error while the database is unavailable, that the log says so once a
// minute, and that a wait ends with its context.
func TestOutageIsWaitedOut(t *testing.T) {
	in(t, func(t *testing.T, w *world, all *Waiters) {
		run := w.run(store.Completed)
		w.set(func() { w.fails = store.ErrUnavailable })
		ctx, cancel := context.WithCancelCause(t.Context())
		got, given := awaiting(t.Context(), all, run.UUID, true), awaiting(ctx, all, run.UUID, true)
		pass(10*time.Minute - time.Second)
		cause := errors.New("no more time")
		cancel(cause)
		if it := <-given; !errors.Is(it.err, cause) {
			t.Errorf("%+v", it)
		}
		w.set(func() { w.fails = nil })
		if it := <-got; it.err != nil || it.run == nil {
			t.Errorf("%+v", it)
		}
		if lines := strings.Count(w.log.String(), "could not read the results"); lines != 10 {
			t.Errorf("%d lines were logged in ten minutes", lines)
		}
	})
}

// TestRejectedQueries checks what the waiters get whose queries the database rejects: callers outside of runs get the
// error, at once if only an operator can help, and otherwise after the patience. Runs keep waiting. The waiters of
// other runs get their results.
func TestRejectedQueries(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		after time.Duration
	}{
		"permission": {store.ErrPermission, 0},
		"rejected":   {store.ErrRejected, patience},
		"schema":     {store.ErrSchema, patience},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world, all *Waiters) {
				bad := w.run(store.Completed)
				w.set(func() { w.rejected[bad.UUID] = c.err })
				parent, outside := awaiting(t.Context(), all, bad.UUID, false), awaiting(t.Context(), all, bad.UUID, true)
				if it := <-outside; !errors.Is(it.err, c.err) || it.at < c.after || it.at > c.after+2*maxQueryDelay {
					t.Errorf("a caller got %+v", it)
				}
				if name == "rejected" { // the query is split, until it asks for the bad run alone
					good := w.run(store.Completed)
					if it := <-awaiting(t.Context(), all, good.UUID, true); it.err != nil || it.run == nil || it.at > maxQueryDelay {
						t.Errorf("the waiter of another run got %+v", it)
					}
				}
				pass(10 * time.Minute)
				select {
				case it := <-parent:
					t.Errorf("a run got %+v", it)
				default:
				}
				w.set(func() { delete(w.rejected, bad.UUID) })
				if it := <-parent; it.err != nil || it.run == nil {
					t.Errorf("a run got %+v", it)
				}
			})
		})
	}
}

// TestPatienceBeginsAnew checks that a query that succeeds ends the time for which a caller's queries were rejected.
func TestPatienceBeginsAnew(t *testing.T) {
	in(t, func(t *testing.T, w *world, all *Waiters) {
		run := w.run(store.Running)
		reject := func() { w.set(func() { w.rejected[run.UUID] = store.ErrRejected }) }
		got := awaiting(t.Context(), all, run.UUID, true)
		reject()
		pass(patience * 2 / 3)
		w.set(func() { clear(w.rejected) })
		pass(2 * maxQueryDelay)
		reject()
		if it := <-got; !errors.Is(it.err, store.ErrRejected) || it.at < patience*5/3 {
			t.Errorf("%+v", it)
		}
	})
}

// TestClosedStore checks that everybody gets the error of a store that was closed.
func TestClosedStore(t *testing.T) {
	in(t, func(t *testing.T, w *world, all *Waiters) {
		run := w.run(store.Completed)
		w.set(func() { w.fails = store.ErrClosed })
		for _, outside := range []bool{false, true} {
			if it := <-awaiting(t.Context(), all, run.UUID, outside); !errors.Is(it.err, store.ErrClosed) {
				t.Errorf("%+v", it)
			}
		}
	})
}

// TestAWaiterIsCountedUntilItsResultIsThere: a waiter with a result is no longer counted, also if its goroutine has not continued, and one
// without a result is counted until it leaves.
func TestAWaiterIsCountedUntilItsResultIsThere(t *testing.T) {
	in(t, func(t *testing.T, w *world, all *Waiters) {
		var count Count
		ctx, leave := context.WithCancel(t.Context())
		ended, goesOn := w.run(store.Running), w.run(store.Running)
		go func() { _, _ = all.Await(t.Context(), ended.UUID, true, &count) }()
		go func() { _, _ = all.Await(ctx, goesOn.UUID, true, &count) }()
		synctest.Wait()
		if n, _ := count.Read(); n != 2 {
			t.Errorf("%d of two waiters are counted", n)
		}
		all.Deliver(ended)
		if n, _ := count.Read(); n != 1 {
			t.Errorf("%d waiters are counted after the end of one run of two", n)
		}
		leave()
		synctest.Wait()
		if n, _ := count.Read(); n != 0 {
			t.Errorf("%d waiters are counted after all have left", n)
		}
	})
}
