package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A claim that failed may nevertheless have been committed: its reply was lost, or its commit waited for a disk or a standby for
// longer than the timeout of the claim. This worker would then own the claimed runs without executing them, and they would count as
// crashed when their leases end. So the worker searches for runs that carry the nonce of the failed claim, and releases them. It
// repeats the search until their leases end, because the claim may still be in progress. That the worker owns a run and does not have
// it in memory is no reason to release it, because a start commits before its run enters memory.
//
// A start that makes this worker the owner of its runs can fail in the same way, unless its error says that nothing was written. So
// can the transaction with which a run continues as new. The runs of a start have a common nonce too, so the worker searches for them
// as for the runs of a claim.

const (
	firstReleaseRetryDelay = 10 * time.Millisecond // pause after a search that must be repeated; it doubles up to maxReleaseRetryDelay
	maxReleaseRetryDelay   = time.Second
)

// failedClaims holds the queries of failed claims, starts and next generations, whose runs the worker searches for.
type failedClaims struct {
	wakeLoop wakeup.Chan // wakes releaseFailedClaimsLoop

	mu                  sync.Mutex
	queries             []store.ClaimQuery
	unreleasedLeaseEnds []time.Time // when the leases of the latest claims ended whose runs were not released before
}

// maxUnreleasedClaims is how many claims whose runs were not released are remembered.
const maxUnreleasedClaims = 16

// add adds a failed claim.
func (f *failedClaims) add(q store.ClaimQuery) {
	f.mu.Lock()
	f.queries = append(f.queries, q)
	f.mu.Unlock()
	f.wakeLoop.Notify()
}

// all returns the failed claims.
func (f *failedClaims) all() []store.ClaimQuery {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.queries)
}

// remove removes a failed claim.
func (f *failedClaims) remove(q store.ClaimQuery, released bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !released {
		f.unreleasedLeaseEnds = append(f.unreleasedLeaseEnds[max(0, len(f.unreleasedLeaseEnds)-maxUnreleasedClaims+1):], q.LeaseUntil)
	}
	f.queries = slices.DeleteFunc(f.queries, func(u store.ClaimQuery) bool { return u.EpochNonce == q.EpochNonce && u.Now.Equal(q.Now) })
}

// extendOutageByFailedClaims extends the outage in the query by the ends of the leases of failed claims. The runs of these claims were not
// executed, so the ends of their leases show no crash.
func (f *failedClaims) extendOutageByFailedClaims(q *store.ClaimQuery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.unreleasedLeaseEnds {
		q.ExtendOutageToLeaseEnd(at)
	}
	for i := range f.queries {
		q.ExtendOutageToLeaseEnd(f.queries[i].LeaseUntil)
	}
}

// addUncertainStart adds a start that failed with err, if this worker may nevertheless own the runs of the start.
func (w *worker) addUncertainStart(own []*store.StartWrite, err error) {
	if len(own) > 0 {
		w.addUncertainOwnership(&own[0].Run, own[0].Run.StartedAt, err)
	}
}

// addUncertainOwnership adds a write, made at the time now, that makes this worker the owner of the run and of other runs with the same
// nonce, and that has failed with err. If err says that nothing was written, addUncertainOwnership adds nothing.
func (w *worker) addUncertainOwnership(run *store.Run, now time.Time, err error) {
	if !mayHaveCommitted(err) {
		return
	}
	q := w.newClaimQuery()
	q.EpochNonce, q.Now, q.LeaseUntil = run.Epoch.Nonce, now, run.WakeAt
	w.failedClaims.add(q)
}

// releaseFailedClaimsLoop releases the runs that failed claims have taken.
func (w *worker) releaseFailedClaimsLoop(ctx context.Context) {
	for {
		select {
		case <-w.failedClaims.wakeLoop:
		case <-ctx.Done():
			return
		}
		for wait := firstReleaseRetryDelay; w.releaseFailedClaims(ctx); wait = min(2*wait, maxReleaseRetryDelay) {
			if !wakeup.SleepCtx(ctx, wait) {
				return
			}
		}
	}
}

// releaseFailedClaims searches once for the runs of each failed claim, and releases them. It reports whether it must
// be called again.
func (w *worker) releaseFailedClaims(ctx context.Context) (again bool) {
	for _, q := range w.failedClaims.all() {
		over := w.e.clock.Now().After(q.LeaseUntil)
		done, err := w.releaseFailedClaim(ctx, q)
		if err != nil && !over {
			return true // the database is unavailable for the other claims too
		}
		if done || over {
			w.failedClaims.remove(q, done)
		}
	}
	return len(w.failedClaims.all()) > 0
}

// releaseFailedClaim releases the runs that the claim has taken, and reports whether there were any.
func (w *worker) releaseFailedClaim(ctx context.Context, q store.ClaimQuery) (done bool, err error) {
	looking, cancel := context.WithTimeout(ctx, w.e.cfg.Lease/3)
	defer cancel()
	leases, err := w.e.store.LeasesOfClaim(looking, q)
	if err != nil || len(leases) == 0 {
		return false, err
	}
	now := w.e.clock.Now()
	errs := make([]error, len(leases))
	var writes sync.WaitGroup // concurrent, so that the writes share flushes
	for i, l := range leases {
		writes.Go(func() {
			end := &store.OwnershipEnd{UUID: l.Run, Epoch: l.Epoch, Status: store.Pending, WakeAt: now, Now: now}
			errs[i] = w.e.writeWithRetry(ctx, writeOptions{}, nil, func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
				return &end.Outcome, j.WriteOwnershipEnd(ctx, end)
			})
		})
	}
	writes.Wait()
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	w.log.Info("released runs of a claim or another write whose reply was lost", telemetry.KeyCount, len(leases))
	w.wakeLoops()
	return true, nil
}
