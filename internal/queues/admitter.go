package queues

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

// AdmitterConfig is what an Admitter needs of its worker.
type AdmitterConfig struct {
	Rows  *RowCache
	Store store.QueueAdmitter
	Clock clock.Clock
	Lease time.Duration // how long a worker that does not renew keeps its runs
	// PollInterval returns the interval of a poll that a lone worker makes once in d: with more workers, each polls less often.
	PollInterval func(d time.Duration) time.Duration
	// HintClaim tells the worker that a run may be claimable, because the rows of the queues have changed. HintClaimOfAdmitted tells it that
	// runs were admitted, which replace runs that have ended.
	HintClaim, HintClaimOfAdmitted func()
	LogFailure                     func(message string, err error, args ...any) // logs that the loop has failed and tries again
	StopIfFatal                    func(err error)                              // makes the worker stop if the error means that the store will never work again
}

// Admitter gives places to runs in queues with a row. One goroutine, which executes Loop, looks at each queue when
// a run of it has left this process, when another process sends a hint, and from time to time. While no queue
// has a row, it only reads that.
type Admitter struct {
	cfg      AdmitterConfig
	wakeLoop wakeup.Chan
	summary  atomic.Pointer[Summary] // nil: not read yet

	mu                 sync.Mutex
	allQueuesRequested bool            // all queues are to be looked at
	requestedQueues    map[string]bool // those to be looked at; whether a run has left each of them since its last pass ended
	claimedSincePass   map[string]int  // how many runs of each queue were claimed since it was to be looked at
	queueOfCurrentPass string          // the queue of the pass that is in progress; empty: none

	rowsChanged         atomic.Bool   // the rows are to be read again, and all queues to be looked at
	allQueueChecksBegun atomic.Uint64 // how many looks at all queues have begun
	allQueueChecksEnded atomic.Uint64 // number of the latest of them that has ended without an error
}

// NewAdmitter returns an Admitter, which makes no call before Loop is called.
func NewAdmitter(cfg AdmitterConfig) *Admitter {
	return &Admitter{cfg: cfg, wakeLoop: wakeup.NewChan()}
}

// Summary is what a worker needs of the rows of all queues. It does not change.
type Summary struct {
	names                 []string       // of all queues
	UndeletedNames        []string       // of those that are not deleted
	PausedNames           []string       // likewise
	MaxExecutingPerWorker map[string]int // how many runs a worker executes at once, if that is bounded
}

// claimedRunsPerAdmissionPass is after how many claimed runs a queue is looked at. A pass that has admitted store.MaxAdmittedNotClaimed runs continues when
// some of them are claimed. Runs that end have their queue looked at anyway.
const claimedRunsPerAdmissionPass = store.MaxAdmittedNotClaimed / 8

// NoteRunClaimed has the queue looked at, if it has a row and many of its runs were claimed since the last time.
func (a *Admitter) NoteRunClaimed(queue string) {
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

// NoteRunLeftQueue has the queue looked at, if it has a row, because a run of it has ended or waits.
func (a *Admitter) NoteRunLeftQueue(queue string) {
	if !a.queueHasSettings(queue) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requestPassOverQueue(queue, a.queueOfCurrentPass != queue) // the pass in progress may have seen the run
}

// queueHasSettings reports whether the queue has a row.
func (a *Admitter) queueHasSettings(queue string) bool {
	rows := a.summary.Load()
	return rows != nil && slices.Contains(rows.names, queue)
}

// requestPassOverQueue has the queue looked at. a.mu is held.
func (a *Admitter) requestPassOverQueue(queue string, left bool) {
	if a.requestedQueues == nil {
		a.requestedQueues = make(map[string]bool)
	}
	a.requestedQueues[queue] = a.requestedQueues[queue] || left
	delete(a.claimedSincePass, queue)
	a.wakeLoop.Notify()
}

// RequestRowsReread has the rows read again, and all queues looked at.
func (a *Admitter) RequestRowsReread() {
	a.rowsChanged.Store(true)
	a.wakeLoop.Notify()
}

// RequestPassOverAllQueues has all queues looked at.
func (a *Admitter) RequestPassOverAllQueues() {
	if rows := a.summary.Load(); rows == nil || len(rows.names) == 0 {
		return
	}
	a.mu.Lock()
	a.allQueuesRequested = true
	a.mu.Unlock()
	a.wakeLoop.Notify()
}

// takeRequestedQueues removes and returns the queues to be looked at, in any order, those that a run has left, and whether these are all.
// If a request for all queues may not be taken now, it is kept, and kept is true.
func (a *Admitter) takeRequestedQueues(all, mayTakeAll bool) (queues []string, left map[string]bool, every, kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rows := a.summary.Load()
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

// errUnread is returned until the rows of the queues could be read once.
var errUnread = errors.New("durable: the settings of the queues could not be read")

// readQueues reads the rows of all queues, unless this process has done so lately.
func (a *Admitter) readQueues(ctx context.Context) (*Summary, error) {
	byName, known := a.cfg.Rows.ReadRowsIfStale(ctx)
	if !known {
		return nil, errUnread
	}
	rows := &Summary{MaxExecutingPerWorker: make(map[string]int)}
	for name, q := range byName {
		rows.names = append(rows.names, name)
		if q.Deleted {
			continue
		}
		rows.UndeletedNames = append(rows.UndeletedNames, name)
		if !q.PausedAt.IsZero() {
			rows.PausedNames = append(rows.PausedNames, name)
		}
		if q.Settings.MaxExecutingPerWorker > 0 {
			rows.MaxExecutingPerWorker[name] = q.Settings.MaxExecutingPerWorker
		}
	}
	slices.Sort(rows.names)
	slices.Sort(rows.UndeletedNames)
	slices.Sort(rows.PausedNames)
	if before := a.summary.Load(); before != nil && slices.Equal(before.names, rows.names) && slices.Equal(before.UndeletedNames, rows.UndeletedNames) &&
		slices.Equal(before.PausedNames, rows.PausedNames) && maps.Equal(before.MaxExecutingPerWorker, rows.MaxExecutingPerWorker) {
		return before, nil
	}
	a.summary.Store(rows)
	a.cfg.HintClaim() // a queue may have been resumed
	return rows, nil
}

// Loop admits runs until ctx ends. Every worker admits to every queue, also runs that it does not
// execute: the transaction that has locked the queue does the work.
func (a *Admitter) Loop(ctx context.Context) {
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
		next.notifyAtEarliestTime(a.cfg.Clock, again, a.wakeLoop)
		look := false
		select {
		case <-a.wakeLoop:
			if look = a.rowsChanged.Swap(false); look {
				a.cfg.Rows.Invalidate()
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
			var rows *Summary
			if rows, err = a.readQueues(ctx); err == nil && len(rows.names) == 0 {
				every = a.cfg.PollInterval(every) // a notification tells of the first row
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
			if !at.After(a.cfg.Clock.Now()) {
				delete(again, q)
				queues = append(queues, q)
			}
		}
		for _, q := range queues {
			if err != nil || ctx.Err() != nil {
				break
			}
			var at time.Time
			if at, err = a.admitFromQueue(ctx, q, left[q]); !at.IsZero() {
				again[q] = at
			}
		}
		if look && err == nil {
			a.allQueueChecksEnded.Store(number)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			a.cfg.StopIfFatal(err)
			a.cfg.LogFailure("could not admit runs to their queues; trying again", err)
			wakeup.SleepCtx(ctx, wait/2+rand.N(wait))
			wait = min(2*wait, maxAdmissionRetryDelay)
			a.RequestPassOverAllQueues()
		case all && len(queues) > 0 && !look:
			wait = firstAdmissionRetryDelay
			allAfter = time.Now().Add(min(time.Since(began), maxQueuePoll))
		default:
			wait = firstAdmissionRetryDelay
		}
	}
}

// admissionTimer wakes Loop when a queue is to be looked at again. A timer whose time has not changed is kept: a test's clock
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
func (a *Admitter) setQueueOfCurrentPass(queue string) {
	a.mu.Lock()
	a.queueOfCurrentPass = queue
	a.mu.Unlock()
}

// admitFromQueue makes passes over a queue, which a run may just have left. It returns when the queue is to be looked at again, or zero.
func (a *Admitter) admitFromQueue(ctx context.Context, queue string, left bool) (again time.Time, err error) {
	a.setQueueOfCurrentPass(queue)
	defer a.setQueueOfCurrentPass("")
	for range maxConsecutiveAdmissionPasses {
		pass := store.AdmissionRequest{Queue: queue, Now: a.cfg.Clock.Now(), CloseDurationAfterRewind: a.cfg.Lease, WorkIsCertain: left}
		bounded, cancel := context.WithTimeout(ctx, admissionCallTimeout)
		err := a.cfg.Store.AdmitRuns(bounded, &pass)
		cancel()
		switch {
		case err != nil:
			return time.Time{}, err
		case pass.QueueLocked:
			return pass.Now.Add(lockedQueueRecheckDelay), nil
		}
		if pass.AdmittedCount > 0 {
			a.cfg.HintClaimOfAdmitted()
		}
		if !pass.HasMoreWork {
			return pass.NextPassAt, nil
		}
		left = true // there is certainly something to do
	}
	return a.cfg.Clock.Now(), nil
}

// LatestSummary returns the summary of the rows that were read last, or nil if none were read yet.
func (a *Admitter) LatestSummary() *Summary { return a.summary.Load() }

// CountChecks returns how many looks at all queues have begun, and the number of the latest of them that has ended without an error.
func (a *Admitter) CountChecks() (begun, ended uint64) {
	return a.allQueueChecksBegun.Load(), a.allQueueChecksEnded.Load()
}

// SummaryOrRead returns LatestSummary. If no rows were read yet, SummaryOrRead reads them, and returns nil if that fails.
func (a *Admitter) SummaryOrRead(ctx context.Context) *Summary {
	rows := a.summary.Load()
	if rows == nil {
		rows, _ = a.readQueues(ctx)
	}
	return rows
}
