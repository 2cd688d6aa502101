package engine

import (
	"testing"

	"github.com/seed8ec063be/durable/internal/wakeup"
)

// When runs enter memory, the changes are read again only if the worker was notified of a change meanwhile. A read of another reason, such as
// the renewal of leases or such a further read, is none: with starts that overlap, each read would cause the next.
func TestChangesAreReadAgainOnlyAfterANotification(t *testing.T) {
	w := &worker{ownedRunChangesPending: wakeup.NewChan()}
	before := w.ownedRunChangeHints.Load()
	w.ownedRunChangesPending.Notify()
	<-w.ownedRunChangesPending // the loop has begun to read
	w.rereadChangesOfEnteredRuns(before)
	if len(w.ownedRunChangesPending) != 0 {
		t.Fatal("a read that no change has caused made the worker read again")
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
