package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// When runs enter memory, the changes are read again only if the worker was notified of a change meanwhile. Such a further read is no
// notification: with starts that overlap, each read would cause the next.
func TestChangesAreReadAgainOnlyAfterANotification(t *testing.T) {
	w := &worker{ownedRunChangesPending: wakeup.NewChan()}
	before := w.ownedRunChangeHints.Load()
	w.ownedRunChangesPending.Notify()
	<-w.ownedRunChangesPending // the loop has begun to read
	w.rereadChangesOfEnteredRuns(before)
	if len(w.ownedRunChangesPending) != 0 {
		t.Fatal("a read without a hint made the worker read again")
	}
	w.notifyOwnedRunChange()
	<-w.ownedRunChangesPending
	w.rereadChangesOfEnteredRuns(before)
	if len(w.ownedRunChangesPending) != 1 {
		t.Fatal("the worker was notified while a run entered memory, and does not read again")
	}
	<-w.ownedRunChangesPending
	w.rereadChangesOfEnteredRuns(w.ownedRunChangeHints.Load())
	if len(w.ownedRunChangesPending) != 0 {
		t.Fatal("a further read made the worker read again")
	}
}

// The timer of a run's deadline begins before the run enters memory. If the deadline comes in between, the read that follows may not contain
// the run, so the changes are read again when the run has entered. Otherwise the run would expire only after the next renewal of leases.
func TestChangesAreReadAgainAfterADeadlineOfAnEnteringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLoneRun(t, new(slate), store.ClaimedRun{Run: store.Run{Deadline: time.Now().Add(time.Minute)}})
		before := r.w.ownedRunChangeHints.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !r.deadline.hasCome.Load() {
			t.Fatal("the deadline has not come")
		}
		<-r.w.ownedRunChangesPending // the loop has begun to read, without the run
		r.w.rereadChangesOfEnteredRuns(before)
		if len(r.w.ownedRunChangesPending) != 1 {
			t.Error("the deadline of a run came while the run entered memory, and the worker does not read again")
		}
	})
}

// Without notifications, a worker learns of a cancel at the next renewal of leases. If a run enters memory during the read that follows a
// renewal, the changes are read again. Otherwise a cancel of the run would be seen only one renewal later.
func TestChangesAreReadAgainAfterARenewalWhileARunEnters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLoneRun(t, new(slate), store.ClaimedRun{})
		r.w.loadedRuns.remove(r)
		before := r.w.ownedRunChangeHints.Load()
		ctx, stop := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { r.w.renewLeasesLoop(ctx) })
		<-r.w.ownedRunChangesPending // the loop has begun to read, without the run
		r.w.loadedRuns.add(r)
		r.w.rereadChangesOfEnteredRuns(before)
		if len(r.w.ownedRunChangesPending) != 1 {
			t.Error("a run entered memory while the changes were read after a renewal of leases, and the worker does not read again")
		}
		stop()
		loop.Wait()
	})
}
