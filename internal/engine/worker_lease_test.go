package engine

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// A lease whose row others hold is the worker's until it looks again, which is soon; one that is
// renewed is its own for a whole lease; one that is lost ends the run here.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		r := c.run("first")
		for _, step := range []struct {
			what  string
			pulse store.RenewResult
			busy  bool
			left  time.Duration
			gone  bool
		}{
			{"renewed", store.RenewResult{}, false, time.Minute, false},
			{"busy", store.RenewResult{LockedRuns: []uuid.UUID{r.row.UUID}}, true, 20 * time.Second, false},
			{"lost", store.RenewResult{LostRuns: []uuid.UUID{r.row.UUID}}, false, 5 * time.Second, true},
		} {
			r.extendLease(c.w.e.clock.Now().Add(5 * time.Second))
			c.pulse = step.pulse
			busy, err := c.w.renewLeases(t.Context(), []*run{r})
			if err != nil || busy != step.busy {
				t.Errorf("%s: busy %v, %v", step.what, busy, err)
			}
			if left := r.leaseEndTime().Sub(c.w.e.clock.Now()); left != step.left || r.isSuspended() != step.gone {
				t.Errorf("%s: %v are left of the lease, want %v; gone: %v", step.what, left, step.left, r.isSuspended())
			}
		}
		synctest.Wait()
		c.ends(t)
	})
}

// What the store warns of is logged, because its calls succeed.
func TestWarningOfTheStoreIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		log := c.recordLog()
		for _, warning := range []string{"", "no connection left"} {
			c.pulse = store.RenewResult{Warning: warning}
			if _, err := c.w.renewLeases(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if logged := log.String(); strings.Contains(logged, "level=WARN") != (warning != "") || !strings.Contains(logged, warning) {
				t.Errorf("warning %q: logged %q", warning, logged)
			}
		}
		c.ends(t)
	})
}

// If the database does not reply, a run ends when its lease does, and not when the renewal is given up: others
// may claim the run then, and grant what it held.
func TestRunEndsWithItsLeaseAlthoughTheRenewalHangs(t *testing.T) {
	for _, left := range []time.Duration{5 * time.Second, 25 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t)
			c.hangs = true
			r := c.run("first")
			r.extendLease(c.w.e.clock.Now().Add(left))
			ctx, stop := context.WithCancel(t.Context())
			var loop sync.WaitGroup
			loop.Go(func() { c.w.renewLeasesLoop(ctx) })
			time.Sleep(left - time.Millisecond)
			synctest.Wait()
			if r.isSuspended() {
				t.Errorf("the run ended before its lease, which had %v left", left)
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if !r.isSuspended() {
				t.Errorf("the run was executed longer than its lease, which had %v left", left)
			}
			stop()
			loop.Wait()
			c.ends(t)
		})
	}
}

// locking is a store in which another transaction holds a run's row for some tries.
type locking struct {
	*slate
	left int
}

func (s *locking) Commit(ctx context.Context, b *store.Batch) error {
	if s.left > 0 {
		s.left--
		for _, w := range b.OwnershipEnds {
			w.Outcome = store.Locked
		}
		return nil
	}
	return s.slate.Commit(ctx, b)
}

// A run that was parked too early once stays away for ParkAfter, however often its write has to be made again.
func TestARetriedWriteDelaysARunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		l := &locking{slate: c.slate, left: 6}
		c.w.e.journal = journal.New(l.Commit, nil, 0)
		old := c.run("first")
		old.mu.Lock()
		old.suspensionNotices.callBeforeNotice = true
		old.mu.Unlock()
		old.suspend(suspensionSpec{cause: ErrParked, status: store.Waiting})
		<-time.After(10 * time.Second)
		synctest.Wait()
		for _, w := range c.ended() {
			if w.UUID == old.row.UUID {
				if away := w.WakeAt.Sub(w.Now); away > time.Second {
					t.Errorf("parked too early for the first time, it stays away for %v; counted %d times", away, c.w.earlyParks.countByRun[old.row.UUID].times)
				}
			}
		}
		c.ends(t)
	})
}

// together is a store that sends heartbeats together.
type together struct{ store.Store }

func (together) HeartbeatPhase() time.Duration { return 7 * time.Second }

// The workers of a process that have no runs send their heartbeats at the same times, if the store can send them together.
func TestIdleWorkersSendHeartbeatsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		const every = 20 * time.Second
		if got := c.w.timeUntilNextHeartbeat(every, nil); got < every*7/8 || got > every*9/8 {
			t.Errorf("the pause is %v if the store sends each heartbeat alone", got)
		}
		c.w.e.rawStore = together{c.w.e.rawStore}
		for range 8 {
			pause := c.w.timeUntilNextHeartbeat(every, nil)
			if at := time.Now().Add(pause + 7*time.Second); pause < every/4 || pause > every*5/4 || at.UnixNano()%int64(every) != 0 {
				t.Errorf("a pause of %v until %v", pause, at)
			}
			time.Sleep(5 * time.Second)
		}
		r := c.run("first")
		r.extendLease(c.w.e.clock.Now().Add(5 * time.Second))
		if got := c.w.timeUntilNextHeartbeat(every, []*run{r}); got != 5*time.Second {
			t.Errorf("with a lease that ends in 5s, the pause is %v", got)
		}
		c.ends(t)
	})
}
