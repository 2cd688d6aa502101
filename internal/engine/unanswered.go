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
)

// A claim that failed may have been committed all the same: its answer was lost, or waited for a
// disk or a standby for longer than the claim may take. Its runs would then be owned by this worker,
// executed by nobody, and taken for a crash's when their leases end. So the worker looks for runs that
// carry the nonce of such a claim, and gives them back. It looks again until their leases end, since the
// claim may be under way still. Runs that are owned and not in memory are not given back for that alone:
// a start commits before its run is entered.
//
// The same holds for a start that makes its runs this worker's, and that fails without saying that nothing was
// written. Its runs have one nonce too, so it is looked for as a claim is.

const (
	firstGiveBack = 10 * time.Millisecond // after a claim failed
	slowGiveBack  = time.Second
)

// unanswer notes a claim that failed.
func (w *worker) unanswer(q store.ClaimQuery) {
	w.mu.Lock()
	w.unanswered = append(w.unanswered, q)
	w.mu.Unlock()
	w.failed.poke()
}

// unanswerStart notes a start that failed with err, and that may have made these runs this worker's all the
// same.
func (w *worker) unanswerStart(own []*store.Start, err error) {
	if len(own) == 0 || !mayHaveCommitted(err) {
		return
	}
	q := w.query()
	first := &own[0].Run
	q.Nonce, q.Now, q.LeaseUntil, q.Pairs = first.Epoch.Nonce, first.StartedAt, first.WakeAt, nil
	for _, s := range own {
		if pair := (store.Pair{Queue: s.Run.Queue, Workflow: s.Run.Workflow}); !slices.Contains(q.Pairs, pair) {
			q.Pairs = append(q.Pairs, pair)
		}
	}
	w.unanswer(q)
}

// giveBackLoop gives back what failed claims have taken.
func (w *worker) giveBackLoop(ctx context.Context) {
	for {
		select {
		case <-w.failed:
		case <-ctx.Done():
			return
		}
		for wait := firstGiveBack; w.giveBack(ctx); wait = min(2*wait, slowGiveBack) {
			if !pause(ctx, wait) {
				return
			}
		}
	}
}

// giveBack looks for what each failed claim has taken, once, and reports whether it has to look again.
func (w *worker) giveBack(ctx context.Context) (again bool) {
	w.mu.Lock()
	claims := slices.Clone(w.unanswered)
	w.mu.Unlock()
	for _, q := range claims {
		over := w.e.clock.now().After(q.LeaseUntil)
		done, err := w.giveBackClaim(ctx, q)
		if err != nil && !over {
			return true // the database is away for the others too
		}
		if done || over {
			w.mu.Lock()
			w.unanswered = slices.DeleteFunc(w.unanswered, func(u store.ClaimQuery) bool { return u.Nonce == q.Nonce && u.Now.Equal(q.Now) })
			w.mu.Unlock()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.unanswered) > 0
}

// giveBackClaim reports whether the claim was found to have taken runs, which are then given back.
func (w *worker) giveBackClaim(ctx context.Context, q store.ClaimQuery) (done bool, err error) {
	looking, cancel := context.WithTimeout(ctx, w.e.cfg.Lease/3)
	defer cancel()
	leases, err := w.e.store.ClaimedLeases(looking, q)
	if err != nil || len(leases) == 0 {
		return false, err
	}
	now := w.e.clock.now()
	errs := make([]error, len(leases))
	var writes sync.WaitGroup // at the same time, so that they share flushes
	for i, l := range leases {
		writes.Go(func() {
			end := &store.RunWrite{ID: l.Run, Epoch: l.Epoch, Status: store.Pending, WakeAt: now, Now: now}
			errs[i] = w.e.persist(ctx, caller{}, nil, func(j journal.Writer) (*store.Outcome, error) { return &end.Outcome, j.Run(ctx, end) })
		})
	}
	writes.Wait()
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	w.log.Info("gave back runs of a claim or a start whose answer was lost", telemetry.KeyCount, len(leases))
	w.hint()
	return true, nil
}
