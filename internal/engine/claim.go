package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const (
	maxClaim  = 256                    // runs taken by one claim, unless Config.ClaimLimit says otherwise
	basePoll  = 20 * time.Millisecond  // the shortest pause between two claims that found nothing
	gather    = 2 * time.Millisecond   // slots that come free within are filled by one claim,
	gathered  = 4                      // unless one in so many is free before
	spared    = 8                      // one slot in so many is left to starts of this process
	firstWait = 50 * time.Millisecond  // after a failed claim
	presence  = 250 * time.Millisecond // to be seen by others, before the first claim
	longWait  = 2 * time.Second
)

// claimLoop takes due runs while there are slots. Hints wake it; polling with
// decorrelated jitter is the truth, so that a lost hint costs time and nothing else.
//
// A claim holds its slots until it is answered. Unless there is enough to take for all of them,
// it leaves some to starts of this process, which would otherwise have to wait for a claim.
func (w *worker) claimLoop(ctx context.Context) {
	busy := false // all slots are taken, or the last claim filled all that it had
	poll, failed, most := basePoll, firstWait, w.e.cfg.ClaimLimit
	// The first hint says that others see this worker; one that claimed before and died
	// would be missed only when its leases expire.
	w.awaitWork(ctx, presence, time.Time{})
	for ctx.Err() == nil {
		leave, ahead := 0, 0
		if !busy {
			leave = max(1, w.e.cfg.Concurrency/spared)
		} else if ahead = w.awaitSlots(ctx); ctx.Err() != nil {
			return
		}
		slots := w.acquire(most, leave)
		ahead = w.takePlaces(min(ahead, most-slots))
		if slots+ahead == 0 {
			busy = true
			continue
		}
		taken, more, next, err := w.claim(slots, ahead)
		busy = more
		switch {
		case err != nil:
			w.stopFor(err)
			w.log.Warn("could not claim runs; trying again", telemetry.KeyError, err)
			if !pause(ctx, failed/2+rand.N(failed)) {
				return
			}
			failed = min(2*failed, longWait)
			most = max(1, min(most, slots+ahead)/2) // what was to come may have been too much for the time
			continue
		case more:
			most = min(2*most, w.e.cfg.ClaimLimit)
			poll, failed = basePoll, firstWait
		default:
			most = min(2*most, w.e.cfg.ClaimLimit)
			failed = firstWait
			if taken > 0 {
				poll = basePoll
			} else {
				poll = min(w.e.cfg.Poll, basePoll+rand.N(3*poll))
			}
			w.awaitWork(ctx, poll, next)
		}
	}
}

// claim takes runs for the slots that the caller acquired, and for the places ahead that it took,
// and enters them. It also says whether there may be more.
func (w *worker) claim(slots, ahead int) (taken int, more bool, next time.Time, err error) {
	// Not the loop's context: a claim given up in flight may have taken runs.
	ctx, cancel := context.WithTimeout(w.ctx, w.e.cfg.Lease/2)
	defer cancel()
	q := w.query()
	q.Limit, q.Suspects = slots+ahead, w.suspects()
	if q.Limit == 1 { // suspects, of which there may be many, do not always go first then
		q.Suspects = min(q.Suspects, rand.IntN(2))
	}
	claims, err := w.take(ctx, q)
	if err != nil {
		w.unanswer(q)
		w.release(slots, ahead)
		return 0, false, time.Time{}, err
	}
	for i := range claims.Runs {
		c := &claims.Runs[i]
		if c.Run.Status == store.Paused {
			w.reportPause(&c.Run, q.Now)
			continue
		}
		w.enter(c, w.late(&c.Run, q.Now), taken >= slots)
		taken++
	}
	w.release(max(slots-taken, 0), min(slots+ahead-taken, ahead))
	return len(claims.Runs), len(claims.Runs) == q.Limit, claims.Next, nil
}

// take asks the store.
func (w *worker) take(ctx context.Context, q store.ClaimQuery) (store.Claims, error) {
	claims, err := w.e.store.Claim(ctx, q)
	if err == nil {
		w.e.counts.claims.Add(1)
		w.e.counts.claimed.Add(int64(len(claims.Runs)))
	}
	return claims, err
}

// late is the schedule latency of a claim: how long ago its run was made claimable,
// as far as the row still tells.
func (w *worker) late(r *store.Run, now time.Time) time.Duration {
	if r.Epoch.Count > 1 {
		return 0
	}
	return max(0, now.Sub(r.CreatedAt))
}

// awaitSlots waits for a slot, and a moment more for others, if others are taken: a claim costs
// as much as ten steps, however few runs it takes. It answers how many runs to claim ahead of further
// slots; while enough of them come free, those are what it waits for.
func (w *worker) awaitSlots(ctx context.Context) (ahead int) {
	var enough <-chan time.Time // nil: no slot is free
	for {
		free, room := w.vacancies()
		if gathered*free >= w.e.cfg.Concurrency || room > 0 {
			return room
		} else if free > 0 && enough == nil {
			t := time.NewTimer(gather)
			defer t.Stop()
			enough = t.C
		}
		select {
		case <-w.freed:
		case <-enough:
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}

// awaitWork waits for a hint, for the next due time, or for the poll.
func (w *worker) awaitWork(ctx context.Context, poll time.Duration, next time.Time) {
	if !next.IsZero() {
		if left := w.e.clock.until(next); left < poll-time.Millisecond { // it may be the longest there is
			poll = left + time.Millisecond
		}
	}
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case <-w.hints:
	case <-t.C:
	case <-ctx.Done():
	}
}
