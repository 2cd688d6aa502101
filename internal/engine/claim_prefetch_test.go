package engine

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/slots"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// slate is a store that takes whatever becomes of runs.
type slate struct {
	store.Store
	mu    sync.Mutex
	ends  []store.OwnershipEnd
	pulse store.RenewResult // the result of each renewal
	hangs bool              // a renewal returns when its context ends
}

func (*slate) Now(context.Context) (time.Time, error) { return time.Now(), nil }

func (s *slate) RenewLeases(ctx context.Context, _ store.Heartbeat) (store.RenewResult, error) {
	if s.hangs {
		<-ctx.Done()
		return store.RenewResult{}, ctx.Err()
	}
	p := s.pulse
	p.Now = time.Now()
	return p, nil
}

func (s *slate) Commit(_ context.Context, b *store.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range b.OwnershipEnds {
		w.Outcome = store.Written
		s.ends = append(s.ends, *w)
	}
	return nil
}

func (*slate) GetRunsSelectingPayloads(context.Context, []store.RunRef, store.PayloadSelection) ([]*store.Run, error) {
	return nil, store.ErrUnavailable // nobody tells who has cancelled a run
}

func (s *slate) ended() []store.OwnershipEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]store.OwnershipEnd(nil), s.ends...)
}

// crew is a worker with one slot, which a run has, and a second run that was claimed ahead.
type crew struct {
	*slate
	w     *worker
	began chan string   // the names of runs whose function was called
	free  chan struct{} // lets one of them return
	over  bool          // the worker was let go
}

// recordLog makes the worker log to the returned builder.
func (c *crew) recordLog() *strings.Builder {
	log := new(strings.Builder)
	c.w.log = slog.New(slog.NewTextHandler(log, nil))
	return log
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{slate: new(slate), began: make(chan string, 2), free: make(chan struct{})}
	e := New(c.slate, Config{
		Lease: time.Minute, Concurrency: 1, ParkAfter: time.Second, Grace: time.Second, Telemetry: tel,
		Definitions: []*WorkflowDefinition{{Name: "w", CallFunction: func(s *Scope, _ []byte) ([]byte, *record.Failure) {
			c.began <- s.RunNameOrUUID()
			select {
			case <-c.free:
			case <-s.Context().Done():
			}
			return nil, nil
		}}},
	})
	if err := e.clock.EnsureReading(t.Context(), e.store); err != nil {
		t.Fatal(err)
	}
	c.w = newWorker(e)
	c.w.slots.Open()
	two := c.w.slots.Reserve(2, 0, 1)
	if two.UnassignedSlots() != 1 || two.Capacity() != 2 {
		t.Fatal("there is no slot, or no place ahead of it")
	}
	c.enter("first", &two)
	c.enter("second", &two)
	synctest.Wait()
	if name := <-c.began; name != "first" || len(c.began) > 0 {
		t.Fatalf("%s was executed first, %d after it", name, len(c.began))
	}
	return c
}

func (c *crew) enter(name string, from *slots.Reservation) {
	c.w.startExecution(&store.ClaimedRun{Run: store.Run{UUID: store.NewUUID(0), Name: name, Workflow: "w", Status: store.Running, Epoch: store.Epoch{Count: 1}}}, 0, from)
}

func (c *crew) run(name string) *run {
	for _, r := range c.w.loadedRuns.all() {
		if r.row.Name == name {
			return r
		}
	}
	return nil
}

// ends lets the worker go, if it was not before, and checks that it holds nothing any more.
func (c *crew) ends(t *testing.T) {
	t.Helper()
	if c.over {
		return
	}
	c.over = true
	c.w.slots.Close()
	c.w.suspendRunsAndAwaitReturn()
	c.w.endRunContexts(nil)
	if left := c.w.slots.Counts(); left != (slots.Counts{}) || c.w.loadedRuns.count() != 0 {
		t.Errorf("%+v and %d runs are left", left, c.w.loadedRuns.count())
	}
	if err := c.w.e.journal.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// became checks what was written of the runs, in order.
func (c *crew) became(t *testing.T, want ...store.Status) {
	t.Helper()
	synctest.Wait()
	ends := c.ended()
	if len(ends) != len(want) {
		t.Fatalf("%d writes: %+v", len(ends), ends)
	}
	for i := range want {
		if ends[i].Status != want[i] {
			t.Errorf("write %d is %v, want %v", i, ends[i].Status, want[i])
		}
	}
}

func TestPrefetch(t *testing.T) {
	for name, scene := range map[string]func(*testing.T, *crew){
		"the next slot is its own": func(t *testing.T, c *crew) {
			c.free <- struct{}{}
			c.became(t, store.Completed)
			if name := <-c.began; name != "second" || c.w.slots.Counts() != (slots.Counts{Taken: 1}) {
				t.Errorf("%s was executed next, in %+v", name, c.w.slots.Counts())
			}
			if free := c.w.slots.Reserve(1, 0, 0); free.Capacity() != 0 {
				t.Error("a slot is free beside it")
			}
			c.free <- struct{}{}
			c.became(t, store.Completed, store.Completed)
		},
		"it is given back when none comes free": func(t *testing.T, c *crew) {
			<-time.After(maxPrefetchedSlotWait)
			c.became(t, store.Pending)
			if c.w.slots.Counts().PrefetchPlaces != 0 || c.run("second") != nil {
				t.Error("it still has its place")
			}
			c.free <- struct{}{}
			c.became(t, store.Pending, store.Completed)
		},
		"a pause is heeded": func(t *testing.T, c *crew) {
			c.run("second").suspend(suspensionSpec{cause: ErrPaused, status: store.Pending})
			c.became(t, store.Pending)
		},
		"a cancelled one is executed to its end": func(t *testing.T, c *crew) {
			r := c.run("second")
			r.forceEnd(newCancelledEnd())
			synctest.Wait()
			if r.isSuspended() || c.w.slots.Counts().PrefetchPlaces != 1 {
				t.Error("it has left without being executed")
			}
			c.free <- struct{}{}
			c.became(t, store.Completed, store.Cancelled)
			if name := <-c.began; name != "second" {
				t.Errorf("%s was executed next", name)
			}
		},
		"a drain gives it back": func(t *testing.T, c *crew) {
			c.ends(t)
			c.became(t, store.Pending, store.Pending)
		},
		"one that is claimed while the worker closes leaves at once": func(t *testing.T, c *crew) {
			place := c.w.slots.Reserve(1, 0, 1)
			c.w.slots.Close()
			c.enter("third", &place)
			c.became(t, store.Pending)
			if more := c.w.slots.Reserve(1, 0, 1); more.Capacity() != 0 {
				t.Error("a closed worker claims ahead")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrew(t)
				scene(t, c)
				c.ends(t)
				if len(c.began) > 0 {
					t.Errorf("%s was executed too", <-c.began)
				}
			})
		})
	}
}

// The steps of a run end when its lease is lost, also if this process has claimed the run again.
func TestAReplacedRunLearnsThatItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		old := c.run("first")
		row := old.row
		row.Epoch = row.Epoch.Next(store.NewNonce()) // its lease has expired, and this process has claimed it again
		place := c.w.slots.Reserve(1, 0, 1)
		c.w.startExecution(&store.ClaimedRun{Run: row}, 0, &place)
		synctest.Wait()
		<-time.After(time.Hour) // any number of renewals
		if old.ownedCtx.Err() == nil {
			t.Error("steps of the ownership that was lost go on: their contexts have not ended")
		}
		old.loseOwnership()
		synctest.Wait()
		c.ends(t)
	})
}

// OwnedRunChanges knows of none.
func (*slate) OwnedRunChanges(context.Context, store.UUID, []store.Lease) (store.OwnedRunChanges, error) {
	return store.OwnedRunChanges{}, nil
}
