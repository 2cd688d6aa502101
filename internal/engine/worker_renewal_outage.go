package engine

import (
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// renewalOutage records when this worker could not renew its leases. If leases of other workers ended in that
// time, this does not show that their processes died, so a claim does not count it as a crash. A death that takeoverLoop detects
// still counts as a crash.
type renewalOutage struct {
	mu                      sync.Mutex
	lastSuccessSent         time.Time // when the last successful heartbeat was sent, on the database's clock
	lastReplyAt             time.Time // when the response to that heartbeat arrived, on this process's clock
	isFailing               bool      // a heartbeat has failed since the last success
	outageFrom, outageUntil time.Time // the bounds of the last outage that has ended, on the database's clock
}

// noteHeartbeat records that a heartbeat has succeeded. The arguments sent and now are the times, on the database's clock, at which
// it was sent and its response arrived.
func (o *renewalOutage) noteHeartbeat(sent, now time.Time, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isInOutage(lease) {
		if o.lastSuccessSent.After(o.outageUntil) { // otherwise this outage continues the previous outage
			o.outageFrom = o.lastSuccessSent
		}
		// Other workers may recover later than this one: if one of their renewals hangs, it ends only after a third of a lease.
		o.outageUntil = now.Add(lease / 2)
	}
	o.lastSuccessSent, o.lastReplyAt, o.isFailing = sent, time.Now(), false
}

func (o *renewalOutage) noteFailure() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isFailing = true
}

// isInOutage reports whether there is an outage: the last heartbeat failed, or the next is overdue. o.mu is
// held.
func (o *renewalOutage) isInOutage(lease time.Duration) bool {
	return !o.lastSuccessSent.IsZero() && (o.isFailing || time.Since(o.lastReplyAt) > lease/2)
}

// copyOutageToClaimQuery sets the bounds of the current outage in the claim query or, if there is none, the bounds of the last
// outage.
func (o *renewalOutage) copyOutageToClaimQuery(q *store.ClaimQuery, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	q.OutageFrom, q.OutageUntil = o.outageFrom, o.outageUntil
	if o.isInOutage(lease) {
		if o.lastSuccessSent.After(o.outageUntil) {
			q.OutageFrom = o.lastSuccessSent
		}
		q.OutageUntil = q.Now
	}
}
