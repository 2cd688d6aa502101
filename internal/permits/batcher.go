// Package permits exchanges the permits of a worker's steps with the store.
//
// A limit bounds how many steps, of all workers, execute at the same time. The store grants each attempt of such a step its permit, in the
// order of the line of the step's limit key. The package makes these exchanges few: all steps of a worker share one call at a time, and a
// permit that one step returns goes to the next waiting step in the same call.
//
//   - [Batcher] makes the calls of one worker. Steps call Request, EndWait and Return, and one goroutine executes Loop.
//   - [WaitingSteps] are the waiting steps of one run, and decide which of them request their permits when the run is woken.
//
// When a step waits, and for how long, is up to the caller of Request: package engine, which may unload the run of the step from memory. The
// place of the step in the line is in the database.
//
// Lock order: Batcher.mu, then WaitingSteps.mu. Both are the last locks that are taken.
package permits

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

const (
	maxPermitRequests             = 500                    // requests that one transaction contains at most
	maxLimitKeysPerCall           = 100                    // limit keys that one transaction checks
	limitKeyCheckInterval         = 800 * time.Millisecond // at most, between two checks of all limit keys, while a step waits
	idleTurnsBeforePermitCall     = 3                      // scheduler turns without a further request or return after which a call begins
	permitCallsPerReturnWaitTrial = 16                     // every such call waits for returns, to measure how many come
	permitGatherTime              = time.Millisecond       // how long a call waits at most for requests and returns
	firstPermitRetryDelay         = 20 * time.Millisecond  // first pause after a failed call
	maxPermitRetryDelay           = time.Second            // longest such pause
	permitCallTimeout             = 10 * time.Second       // of one call
)

// Store is what a Batcher calls of the store.
type Store interface {
	GrantAndReturnPermits(ctx context.Context, b *store.PermitBatch) error
	LimitKeysWithWaiters(ctx context.Context, after store.LimitKey, limit int) ([]store.LimitKey, error)
}

// Config is what a Batcher needs of its worker.
type Config struct {
	Store Store
	Clock clock.Clock
	Lease time.Duration // how long a worker that does not renew keeps its runs, and so their permits
	// PollInterval returns the interval of a poll that a lone worker makes once in d: with more workers, each polls less often.
	PollInterval func(d time.Duration) time.Duration
	// OrderedVersion returns the version of the program, or an empty text if it has no place in the order of versions.
	OrderedVersion func() string
	// WorkerStarted returns when the worker started, to be compared with the starts of other workers.
	WorkerStarted func(now time.Time) time.Time
	// LogFailure logs that the loop has failed and tries again.
	LogFailure func(message string, err error, args ...any)
	// WarnOfOlderWorkers is called once, after the first request, and logs if a worker lives that knows no limits.
	WarnOfOlderWorkers func(ctx context.Context)
}

// Batcher exchanges permits with the store for all steps of a worker. One goroutine, which executes Loop, gathers
// what steps request and give back while its last call is in progress.
type Batcher struct {
	cfg      Config
	wakeLoop wakeup.Chan

	mu                   sync.Mutex
	pendingRequests      []*pendingRequest
	pendingReturns       []pendingReturn
	localWaiters         waitersByLimitKey
	nextCheckByLimitKey  map[store.LimitKey]time.Time // when to check limit keys; owned by Loop
	warnedOfOlderWorkers bool                         // Config.WarnOfOlderWorkers was called; owned by Loop
	hasNewWaiter         bool                         // a step has entered a line since the last check of all limit keys was planned; owned by Loop
	grantedByLastCall    int                          // permits that the last call has granted; owned by Loop, as the next two
	returnRate           float64                      // fraction of the granted permits that are returned before the next call; smoothed
	calls                int
}

// NewBatcher returns a Batcher, which makes no call before Loop is called.
func NewBatcher(cfg Config) *Batcher {
	return &Batcher{cfg: cfg, wakeLoop: wakeup.NewChan()}
}

// pendingRequest is a request that waits for its outcome.
type pendingRequest struct {
	*store.PermitRequest
	step *WaitingStep
	ctx  context.Context // ends when the caller no longer waits
	done chan error
}

// pendingReturn is a permit that is to be given back. Once the run has left this process, its permits have
// ended anyway.
type pendingReturn struct {
	store.PermitReturn
	units int
	owned context.Context // ends when this process loses the run
}

// Request requests a permit from the store and sets the outcome of the request. It keeps trying while the database is
// unavailable, until ctx ends.
func (p *Batcher) Request(ctx context.Context, place *WaitingStep, a *store.PermitRequest) error {
	own := *a // the loop may still use it when this caller has left
	q := &pendingRequest{PermitRequest: &own, step: place, ctx: ctx, done: make(chan error, 1)}
	p.mu.Lock()
	p.pendingRequests = append(p.pendingRequests, q)
	p.mu.Unlock()
	p.wakeLoop.Notify()
	select {
	case err := <-q.done:
		*a = own
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Return gives a permit or a place in a line back, soon. The context owned ends when this process loses the run of the step.
func (p *Batcher) Return(owned context.Context, a *store.PermitRequest) {
	p.mu.Lock()
	p.pendingReturns = append(p.pendingReturns, pendingReturn{a.NewPermitReturn(), a.Units, owned})
	p.mu.Unlock()
	p.wakeLoop.Notify()
}

// yieldForMoreRequests lets other goroutines run before a call, so that the call contains more: steps that the last call has granted permits
// return them, and then the first waiting steps of the same limit keys request them. So units go from one step to the next in one call. Without that, the
// store would offer them, which takes two more. If few of the granted permits were returned in time recently, because the steps
// take longer, the call does not wait for them, except before every 16th call, to measure again.
func (p *Batcher) yieldForMoreRequests() {
	began, want := time.Now(), 0
	p.calls++
	if p.grantedByLastCall > 0 && (p.returnRate >= 0.5 || p.calls%permitCallsPerReturnWaitTrial == 0) {
		want = p.grantedByLastCall
	}
	p.yieldUntilEnoughPending(began, want, p.countPendingReturns)
	if p.grantedByLastCall > 0 {
		p.returnRate += (min(1, float64(p.countPendingReturns())/float64(p.grantedByLastCall)) - p.returnRate) / 4
		p.grantedByLastCall = 0
	}
	if woken := p.wakeLocalWaiters(); woken > 0 {
		p.yieldUntilEnoughPending(began, p.countPendingRequests()+woken, p.countPendingRequests)
	}
}

// yieldUntilEnoughPending yields to the scheduler until there are as many requests or returns as wanted, and none has been added in a few turns.
func (p *Batcher) yieldUntilEnoughPending(began time.Time, want int, count func() int) {
	seen := count()
	for still := 0; (still < idleTurnsBeforePermitCall || seen < want) && time.Since(began) < permitGatherTime; still++ {
		runtime.Gosched()
		if now := count(); now != seen {
			seen, still = now, 0
		}
	}
}

// countPendingRequests returns how many requests the next call would contain.
func (p *Batcher) countPendingRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pendingRequests)
}

// countPendingReturns returns how many returns the next call would contain.
func (p *Batcher) countPendingReturns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pendingReturns)
}

// takePending removes the next requests, and everything to give back. It drops the requests whose callers are gone: these
// have given back already what such a request would be granted.
func (p *Batcher) takePending() (requests []*pendingRequest, returns []pendingReturn, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pendingRequests = slices.DeleteFunc(p.pendingRequests, func(a *pendingRequest) bool { return a.ctx.Err() != nil })
	n := min(len(p.pendingRequests), maxPermitRequests)
	requests, returns = slices.Clone(p.pendingRequests[:n]), p.pendingReturns
	p.pendingRequests, p.pendingReturns = slices.Delete(p.pendingRequests, 0, n), nil
	return requests, returns, len(p.pendingRequests) > 0
}

// requeuePending returns what a failed call did not do, except for callers that are gone.
func (p *Batcher) requeuePending(requests []*pendingRequest, returns []pendingReturn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []*pendingRequest
	for _, a := range requests {
		if a.ctx.Err() == nil {
			left = append(left, a)
		}
	}
	p.pendingRequests = append(left, p.pendingRequests...)
	var owed []pendingReturn
	for _, r := range returns {
		if r.owned.Err() == nil {
			owed = append(owed, r)
		}
	}
	p.pendingReturns = append(owed, p.pendingReturns...)
}
