package engine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

const (
	maxQueuePoll                  = time.Second           // the longest time between two looks at the queues with a row
	lockedQueueRecheckDelay       = 50 * time.Millisecond // when a queue is looked at again that another process has locked
	firstAdmissionRetryDelay      = 20 * time.Millisecond // first pause after a failed call
	maxAdmissionRetryDelay        = time.Second           // longest such pause
	admissionCallTimeout          = 10 * time.Second      // of one call
	maxConsecutiveAdmissionPasses = 20                    // passes over one queue before others get their turn
)

// queueAdmitter gives places to runs in queues with a row. One goroutine, admissionLoop, looks at each queue when
// a run of it has left this process, when another process sends a hint, and from time to time. While no queue
// has a row, it only reads that.
type queueAdmitter struct {
	wakeLoop  wakeup.Chan
	queueRows atomic.Pointer[queueRowSummary] // nil: not read yet

	mu                 sync.Mutex
	allQueuesRequested bool            // all queues are to be looked at
	requestedQueues    map[string]bool // those to be looked at; whether a run has left each of them since its last pass ended
	claimedSincePass   map[string]int  // how many runs of each queue were claimed since it was to be looked at
	queueOfCurrentPass string          // the queue of the pass that is in progress; empty: none

	lastClaimRules lastClaimQueueRules // owned by claimLoop

	queueRowsChanged    atomic.Bool   // the rows are to be read again, and all queues to be looked at
	allQueueChecksBegun atomic.Uint64 // how many looks at all queues have begun
	allQueueChecksEnded atomic.Uint64 // number of the latest of them that has ended without an error
}

// queueRowSummary is what the worker needs of the rows of all queues. It does not change.
type queueRowSummary struct {
	names                 []string       // of all queues
	undeletedNames        []string       // of those that are not deleted
	pausedNames           []string       // likewise
	maxExecutingPerWorker map[string]int // how many runs a worker executes at once, if that is bounded
}

// lastClaimQueueRules holds the rules for queues that the last claim had, and what they were made from.
type lastClaimQueueRules struct {
	rows                    *queueRowSummary
	fullQueues              []string
	rules                   *store.QueueClaimRules
	skippedPartlyFullQueues bool // it left out queues from which it might have taken some runs
}

// claimedRunsPerAdmissionPass is after how many claimed runs a queue is looked at. A pass that has admitted store.MaxAdmittedNotClaimed runs continues when
// some of them are claimed. Runs that end have their queue looked at anyway.
const claimedRunsPerAdmissionPass = store.MaxAdmittedNotClaimed / 8

// noteRunClaimed has the queue looked at, if it has a row and many of its runs were claimed since the last time.
func (a *queueAdmitter) noteRunClaimed(queue string) {
	if !a.queueHasSettings(queue) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.claimedSincePass == nil {
		a.claimedSincePass = make(map[string]int)
	}
	if a.claimedSincePass[queue]++; a.claimedSincePass[queue] >= claimedRunsPerAdmissionPass {
		a.requestPassOverQueue(queue, false)
	}
}

// noteRunLeftQueue has the queue looked at, if it has a row, because a run of it has ended or waits.
func (a *queueAdmitter) noteRunLeftQueue(queue string) {
	if !a.queueHasSettings(queue) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requestPassOverQueue(queue, a.queueOfCurrentPass != queue) // the pass in progress may have seen the run
}

// queueHasSettings reports whether the queue has a row.
func (a *queueAdmitter) queueHasSettings(queue string) bool {
	rows := a.queueRows.Load()
	return rows != nil && slices.Contains(rows.names, queue)
}

// requestPassOverQueue has the queue looked at. a.mu is held.
func (a *queueAdmitter) requestPassOverQueue(queue string, left bool) {
	if a.requestedQueues == nil {
		a.requestedQueues = make(map[string]bool)
	}
	a.requestedQueues[queue] = a.requestedQueues[queue] || left
	delete(a.claimedSincePass, queue)
	a.wakeLoop.Notify()
}

// requestQueueRowsReread has the rows read again, and all queues looked at.
func (a *queueAdmitter) requestQueueRowsReread() {
	a.queueRowsChanged.Store(true)
	a.wakeLoop.Notify()
}

// requestPassOverAllQueues has all queues looked at.
func (a *queueAdmitter) requestPassOverAllQueues() {
	if rows := a.queueRows.Load(); rows == nil || len(rows.names) == 0 {
		return
	}
	a.mu.Lock()
	a.allQueuesRequested = true
	a.mu.Unlock()
	a.wakeLoop.Notify()
}

// takeRequestedQueues removes and returns the queues to be looked at, in any order, those that a run has left, and whether these are all.
// If a request for all queues may not be taken now, it is kept, and kept is true.
func (a *queueAdmitter) takeRequestedQueues(all, mayTakeAll bool) (queues []string, left map[string]bool, every, kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rows := a.queueRows.Load()
	every = all || a.allQueuesRequested && mayTakeAll
	kept = a.allQueuesRequested && !every
	switch {
	case rows == nil:
	case every:
		queues = slices.Clone(rows.names)
	default:
		for q := range a.requestedQueues {
			queues = append(queues, q)
		}
	}
	a.allQueuesRequested = kept
	left, a.requestedQueues = a.requestedQueues, nil
	rand.Shuffle(len(queues), func(i, j int) { queues[i], queues[j] = queues[j], queues[i] })
	return queues, left, every, kept
}

// errQueuesUnread is returned until the rows of the queues could be read once.
var errQueuesUnread = errors.New("durable: the settings of the queues could not be read")

// readQueues reads the rows of all queues, unless this process has done so lately.
func (w *worker) readQueues(ctx context.Context) (*queueRowSummary, error) {
	byName, known := w.e.queueRows.ReadRowsIfStale(ctx)
	if !known {
		return nil, errQueuesUnread
	}
	rows := &queueRowSummary{maxExecutingPerWorker: make(map[string]int)}
	for name, q := range byName {
		rows.names = append(rows.names, name)
		if q.Deleted {
			continue
		}
		rows.undeletedNames = append(rows.undeletedNames, name)
		if !q.PausedAt.IsZero() {
			rows.pausedNames = append(rows.pausedNames, name)
		}
		if q.Settings.MaxExecutingPerWorker > 0 {
			rows.maxExecutingPerWorker[name] = q.Settings.MaxExecutingPerWorker
		}
	}
	slices.Sort(rows.names)
	slices.Sort(rows.undeletedNames)
	slices.Sort(rows.pausedNames)
	if before := w.queueAdmitter.queueRows.Load(); before != nil && slices.Equal(before.names, rows.names) && slices.Equal(before.undeletedNames, rows.undeletedNames) &&
		slices.Equal(before.pausedNames, rows.pausedNames) && maps.Equal(before.maxExecutingPerWorker, rows.maxExecutingPerWorker) {
		return before, nil
	}
	w.queueAdmitter.queueRows.Store(rows)
	w.hintClaim() // a queue may have been resumed
	return rows, nil
}

// admissionLoop admits runs until ctx ends. Every worker admits to every queue, also runs that it does not
// execute: the transaction that has locked the queue does the work.
func (w *worker) admissionLoop(ctx context.Context) {
	a := &w.queueAdmitter
	poll := time.NewTimer(0)
	defer poll.Stop()
	again := make(map[string]time.Time)
	wait := firstAdmissionRetryDelay
	var allAfter time.Time        // hints about all queues may follow each other without a pause
	postponed := time.NewTimer(0) // requests about all queues that came too early
	defer postponed.Stop()
	next := admissionTimer{timer: clock.NoTimer{}}
	defer func() { next.timer.Stop() }()
	for {
		next.notifyAtEarliestTime(w.e.clock, again, a.wakeLoop)
		look := false
		select {
		case <-a.wakeLoop:
			if look = a.queueRowsChanged.Swap(false); look {
				w.e.queueRows.Invalidate()
			}
		case <-poll.C:
			look = true
		case <-postponed.C:
		case <-ctx.Done():
			return
		}
		var err error
		number := uint64(0)
		if look {
			number = a.allQueueChecksBegun.Add(1)
			every := maxQueuePoll/2 + rand.N(maxQueuePoll/2)
			var rows *queueRowSummary
			if rows, err = w.readQueues(ctx); err == nil && len(rows.names) == 0 {
				every = w.otherWorkers.PollInterval(every) // a notification tells of the first row
			}
			poll.Reset(every)
		}
		began := time.Now()
		queues, left, all, kept := a.takeRequestedQueues(look, !time.Now().Before(allAfter))
		if kept {
			postponed.Reset(time.Until(allAfter))
		}
		if all {
			clear(again)
		}
		for q, at := range again {
			if !at.After(w.e.clock.Now()) {
				delete(again, q)
				queues = append(queues, q)
			}
		}
		for _, q := range queues {
			if err != nil || ctx.Err() != nil {
				break
			}
			var at time.Time
			if at, err = w.admitFromQueue(ctx, q, left[q]); !at.IsZero() {
				again[q] = at
			}
		}
		if look && err == nil {
			a.allQueueChecksEnded.Store(number)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			w.stopIfFatal(err)
			w.log.Warn("could not admit runs to their queues; trying again", telemetry.KeyError, err)
			wakeup.SleepCtx(ctx, wait/2+rand.N(wait))
			wait = min(2*wait, maxAdmissionRetryDelay)
			a.requestPassOverAllQueues()
		case all && len(queues) > 0 && !look:
			wait = firstAdmissionRetryDelay
			allAfter = time.Now().Add(min(time.Since(began), maxQueuePoll))
		default:
			wait = firstAdmissionRetryDelay
		}
	}
}

// admissionTimer wakes admissionLoop when a queue is to be looked at again. A timer whose time has not changed is kept: a test's clock
// stands still while timers change.
type admissionTimer struct {
	timer clock.Timer
	at    time.Time
	fired *atomic.Bool
}

// notifyAtEarliestTime makes the timer notify wanted at the first of the times.
func (p *admissionTimer) notifyAtEarliestTime(c clock.Clock, again map[string]time.Time, wanted wakeup.Chan) {
	var first time.Time
	for _, at := range again {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if p.at.Equal(first) && (first.IsZero() || !p.fired.Load()) {
		return
	}
	p.timer.Stop()
	p.timer, p.at = clock.NoTimer{}, first
	if first.IsZero() {
		return
	}
	fired := new(atomic.Bool)
	p.fired = fired
	p.timer = c.CallAt(first, func() {
		fired.Store(true)
		wanted.Notify()
	})
}

// setQueueOfCurrentPass records which queue a pass is in progress over.
func (a *queueAdmitter) setQueueOfCurrentPass(queue string) {
	a.mu.Lock()
	a.queueOfCurrentPass = queue
	a.mu.Unlock()
}

// admitFromQueue makes passes over a queue, which a run may just have left. It returns when the queue is to be looked at again, or zero.
func (w *worker) admitFromQueue(ctx context.Context, queue string, left bool) (again time.Time, err error) {
	w.queueAdmitter.setQueueOfCurrentPass(queue)
	defer w.queueAdmitter.setQueueOfCurrentPass("")
	for range maxConsecutiveAdmissionPasses {
		pass := store.AdmissionRequest{Queue: queue, Now: w.e.clock.Now(), CloseDurationAfterRewind: w.e.cfg.Lease, WorkIsCertain: left}
		bounded, cancel := context.WithTimeout(ctx, admissionCallTimeout)
		err := w.e.store.AdmitRuns(bounded, &pass)
		cancel()
		switch {
		case err != nil:
			return time.Time{}, err
		case pass.QueueLocked:
			return pass.Now.Add(lockedQueueRecheckDelay), nil
		}
		if pass.AdmittedCount > 0 {
			w.hintClaimOfAdmitted()
		}
		if !pass.HasMoreWork {
			return pass.NextPassAt, nil
		}
		left = true // there is certainly something to do
	}
	return w.e.clock.Now(), nil
}

// lastReadQueues returns the rows of all queues, or nil if they could not be read since the process began.
func (w *worker) lastReadQueues(ctx context.Context) *queueRowSummary {
	rows := w.queueAdmitter.queueRows.Load()
	if rows == nil {
		rows, _ = w.readQueues(ctx)
	}
	return rows
}

// hasQueuesLimitedPerWorker reports whether a worker may execute only some runs of a queue at once.
func (w *worker) hasQueuesLimitedPerWorker(ctx context.Context) bool {
	rows := w.lastReadQueues(ctx)
	return rows != nil && len(rows.maxExecutingPerWorker) > 0
}

// setQueueRulesOfClaim sets which queues a claim leaves out, and bounds its limit, so that the worker executes no more runs of
// a queue than it may. Runs that pass are not left out, and do not count. It reports whether the claim leaves out queues from
// which it could take fewer runs than its limit. The next claim takes from them. Nothing of a paused queue begins.
func (w *worker) setQueueRulesOfClaim(ctx context.Context, q *store.ClaimQuery) (skipsPartlyFullQueues bool) {
	a := &w.queueAdmitter
	rows := w.lastReadQueues(ctx)
	if rows == nil || len(rows.undeletedNames) == 0 {
		return false // if the rows are not known, runs without a place are adopted later
	}
	var full, few []string
	least := q.Limit
	if len(rows.maxExecutingPerWorker) > 0 {
		executing := make(map[string]int)
		for _, r := range w.loadedRuns.all() {
			if !r.bypassesQueue {
				executing[r.row.Queue]++
			}
		}
		for name, most := range rows.maxExecutingPerWorker {
			switch left := most - executing[name]; {
			case left <= 0:
				full = append(full, name)
			case left < q.Limit:
				few = append(few, name)
				least = min(least, left)
			}
		}
	}
	if skipsPartlyFullQueues = len(few) > 0 && !a.lastClaimRules.skippedPartlyFullQueues; skipsPartlyFullQueues {
		full = append(full, few...)
	} else {
		q.Limit = least
	}
	slices.Sort(full)
	if a.lastClaimRules.rows != rows || !slices.Equal(a.lastClaimRules.fullQueues, full) {
		a.lastClaimRules.rows, a.lastClaimRules.fullQueues, a.lastClaimRules.rules = rows, full, store.NewQueueClaimRules(rows.undeletedNames, full, rows.pausedNames)
	}
	a.lastClaimRules.skippedPartlyFullQueues = skipsPartlyFullQueues
	q.QueueRules = a.lastClaimRules.rules
	return skipsPartlyFullQueues
}
