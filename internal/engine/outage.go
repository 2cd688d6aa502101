package engine

import (
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// outage remembers when this worker could not renew its leases, since leases of others that ended
// then tell nothing of their processes. A death that is seen (see takeoverLoop) counts all the same.
type outage struct {
	mu          sync.Mutex
	good        time.Time // when the latest heartbeat that was answered was sent, on the database's clock
	answered    time.Time // and when its answer came, on this process's
	failed      bool      // one has failed since
	from, until time.Time // the latest outage that is over
}

// beat notes that a heartbeat that was sent at that time was answered now.
func (o *outage) beat(sent, now time.Time, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.out(lease) {
		if o.good.After(o.until) { // else the one before goes on
			o.from = o.good
		}
		// Others may need a moment more: a try of theirs that hangs ends after a third of a lease.
		o.until = now.Add(lease / 2)
	}
	o.good, o.answered, o.failed = sent, time.Now(), false
}

func (o *outage) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = true
}

// out reports whether there is an outage: a heartbeat has failed, or is overdue. o.mu is held.
func (o *outage) out(lease time.Duration) bool {
	return !o.good.IsZero() && (o.failed || time.Since(o.answered) > lease/2)
}

// excuse tells a claim of the outage that there is, or of the latest.
func (o *outage) excuse(q *store.ClaimQuery, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	q.OutageFrom, q.OutageUntil = o.from, o.until
	if o.out(lease) {
		if o.good.After(o.until) {
			q.OutageFrom = o.good
		}
		q.OutageUntil = q.Now
	}
}
