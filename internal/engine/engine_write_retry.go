package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A step fails only because of a bad value. If the database rejects a write for another reason, or if another transaction blocks it,
// the writer retries the write for Config.Patience. Each retry has a transaction of its own, so that no other write waits with it.
// Meanwhile the worker renews the run's lease. After Config.Patience the run is held: it leaves memory, its row has the reason, and a
// worker claims it again later.

const (
	firstWriteRetryDelay = 20 * time.Millisecond
	maxWriteRetryDelay   = 2 * time.Second
	maxLimitRetryDelay   = 5 * time.Second // longest pause after an exceeded limit, so that a short excess does not fail the step
	maxPayloadLimitTries = 3
	logRetryAfter        = time.Second // a write that is retried for longer than this is logged
	maxReasonBytes       = 1 << 10
)

// WriteError is the error of a failed write; see package journal.
type WriteError = journal.WriteError

// errRowLocked is the error for the outcome store.Locked.
var errRowLocked = &WriteError{Err: store.ErrLocked}

// MaySucceedOnRetry reports whether err means that nothing was written, and that the same write may succeed if it is repeated.
func MaySucceedOnRetry(err error) bool {
	if err == nil || isStoreUnusable(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return !errors.Is(err, store.ErrBadData) && !errors.Is(err, ErrEffectInterrupted)
}

// writeFunc writes one item with the given writer.
type writeFunc func(j journal.CommittingWriter) (*store.WriteOutcome, error)

// writeOptions tells for whom a write is made, and how long it is retried.
type writeOptions struct {
	stopRetrying   <-chan struct{}           // when it is closed, the write is no longer retried; nil: never closed
	wrapAttempt    func(writeFunc) writeFunc // wraps each attempt of the write; nil: no wrapper
	isCalledByUser bool                      // a user of the engine needs the write, not a run: a missing privilege is returned at once
	awaitsDatabase bool                      // retry also while the database is not available, as the journal does
}

// userCaller has the options for writes of users of the engine.
var userCaller = writeOptions{isCalledByUser: true, awaitsDatabase: true}

// workerLoopCaller has the options for a loop of a worker, which repeats its whole call while the database is not available.
var workerLoopCaller = writeOptions{isCalledByUser: true}

// newWriteOptions returns the options for a write of a run, or of a call in it. The write is no longer needed when over is closed.
func newWriteOptions(over <-chan struct{}) writeOptions { return writeOptions{stopRetrying: over} }

// wrapWrite returns the write, wrapped with wrapAttempt if there is such a function.
func (c writeOptions) wrapWrite(write writeFunc) writeFunc {
	if c.wrapAttempt == nil {
		return write
	}
	return c.wrapAttempt(write)
}

// attemptWrite makes one attempt of a write that needs no journal.CommittingWriter.
func (c writeOptions) attemptWrite(commit func() error) error {
	_, err := c.wrapWrite(func(journal.CommittingWriter) (*store.WriteOutcome, error) { return nil, commit() })(nil)
	return err
}

// shouldRetry reports whether the write is retried after err. A write of a run is retried if a privilege is missing, because the
// privilege may be granted later and the run loses only time.
func (c writeOptions) shouldRetry(err error) bool {
	if c.awaitsDatabase && errors.Is(err, store.ErrUnavailable) {
		return true
	}
	return MaySucceedOnRetry(err) && !(c.isCalledByUser && errors.Is(err, store.ErrPermission))
}

// writeWithRetry makes one write: first in a batch with other writes, then, if that fails, in transactions of its own. If it returns
// nil, the outcome is not Locked. It stops when ctx ends. Before the first write in a transaction of its own, writeWithRetry calls
// beforeAlone, which may change the write. It does not call beforeAlone if beforeAlone is nil, or if the write may have been
// committed.
func (e *Engine) writeWithRetry(ctx context.Context, by writeOptions, beforeAlone func(), write writeFunc) error {
	write, by.awaitsDatabase = by.wrapWrite(write), false // the journal has already waited for the database
	outcome, err := write(e.journal)
	if err == nil && *outcome == store.Locked {
		err = errRowLocked
	}
	if !by.shouldRetry(err) {
		return err
	}
	return e.retryWriteInSeparateTx(ctx, by, beforeAlone, write, err)
}

// retryWriteInSeparateTx continues writeWithRetry after the write in a batch has failed with the error last.
func (e *Engine) retryWriteInSeparateTx(ctx context.Context, by writeOptions, beforeAlone func(), write writeFunc, last error) error {
	by.awaitsDatabase = false
	alone := e.journal.NewSeparateTxWriter()
	defer alone.Close()
	doubtful := mayHaveCommitted(last)
	if beforeAlone != nil && !doubtful {
		beforeAlone()
	}
	return e.retryUntilPatienceEnds(ctx, by, func() error {
		if err := last; err != nil {
			last = nil
			return err
		}
		outcome, err := write(alone)
		if err == nil && *outcome == store.Locked {
			err = errRowLocked
		}
		if err != nil && doubtful && !mayHaveCommitted(err) {
			return &WriteError{MayHaveCommitted: true, Err: err}
		}
		doubtful = doubtful || mayHaveCommitted(err)
		return err
	})
}

// commitInSeparateTx calls commit, which writes in a transaction of its own, and retries it for Config.Patience. Therefore the write must
// take effect once if the reply to its commit is lost and commit is called again. It returns ErrClosed, ErrEffectInterrupted, or a
// *WriteError.
func (e *Engine) commitInSeparateTx(ctx context.Context, by writeOptions, commit func() error) error {
	doubtful := false
	err := e.retryUntilPatienceEnds(ctx, by, func() error {
		err := by.attemptWrite(commit)
		doubtful = doubtful || errors.Is(err, store.ErrUnavailable)
		if err != nil && doubtful && by.shouldRetry(err) {
			return &WriteError{MayHaveCommitted: true, Err: err}
		}
		return err
	})
	if err == nil || errors.Is(err, store.ErrClosed) || errors.Is(err, ErrEffectInterrupted) {
		return err
	}
	if _, is := errors.AsType[*WriteError](err); is {
		return err
	}
	return &WriteError{MayHaveCommitted: doubtful || !MaySucceedOnRetry(err) && !errors.Is(err, store.ErrBadData), Err: err}
}

// unwrapWriteError returns the error that a WriteError wraps, or err itself if it is no WriteError.
func unwrapWriteError(err error) error {
	if w, ok := errors.AsType[*WriteError](err); ok {
		return w.Err
	}
	return err
}

func mayHaveCommitted(err error) bool {
	w, ok := errors.AsType[*WriteError](err)
	return ok && w.MayHaveCommitted
}

// retryUntilPatienceEnds calls try until it succeeds or returns an error that is not retried, for at most Config.Patience. If a
// write in a transaction of its own exceeds a limit of the database several times, the value is at fault, and
// retryUntilPatienceEnds returns store.ErrBadData.
func (e *Engine) retryUntilPatienceEnds(ctx context.Context, by writeOptions, try func() error) error {
	began := time.Now()
	logged, limits := false, 0
	var last error
	for wait := firstWriteRetryDelay; ; wait = min(2*wait, maxWriteRetryDelay) {
		err := try()
		if cause := context.Cause(ctx); cause != nil && last == nil && by.isCalledByUser && unwrapWriteError(err) == cause { //nolint:errorlint // the journal returned the cause alone
			return &WriteError{MayHaveCommitted: mayHaveCommitted(err), Err: store.ContextError(ctx)}
		}
		if err != nil && last != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return &WriteError{MayHaveCommitted: mayHaveCommitted(err), Err: fmt.Errorf("%w: %w", store.ContextError(ctx), last)}
		}
		if !by.shouldRetry(err) {
			return err
		}
		last = unwrapWriteError(err)
		if errors.Is(err, store.ErrLimit) {
			if limits++; limits > maxPayloadLimitTries { // the first time, the write may have been in a batch
				return fmt.Errorf("%w: %w", store.ErrBadData, err)
			}
			wait = min(maxLimitRetryDelay, e.Patience()/(maxPayloadLimitTries+1))
		}
		took := time.Since(began)
		if took > e.Patience() {
			return err
		}
		if took > logRetryAfter && !logged {
			logged = true
			defer e.logLongRetry(err)()
		}
		pause := wait/2 + rand.N(wait)
		if errors.Is(err, store.ErrLocked) && wait == firstWriteRetryDelay {
			pause = 0 // perhaps only the row of another write of the batch was locked
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-by.stopRetrying:
			t.Stop()
			return err
		case <-ctx.Done():
			t.Stop()
			return &WriteError{MayHaveCommitted: mayHaveCommitted(err), Err: fmt.Errorf("%w: %w", store.ContextError(ctx), last)}
		}
	}
}

// Patience returns how long the engine retries writes that the database rejects.
func (e *Engine) Patience() time.Duration {
	if e.cfg.Patience > 0 {
		return e.cfg.Patience
	}
	return journal.DefaultPatience
}

// logLongRetry logs that the database rejects a write, unless it has logged this for another write that is
// still being retried. The caller calls over when it stops retrying.
func (e *Engine) logLongRetry(err error) (over func()) {
	if e.counters.retryingWrites.Add(1) == 1 {
		e.telemetry.Log.Warn("the database does not take a write; it is retried, alone, until Patience is over", telemetry.KeyError, err)
	}
	return func() { e.counters.retryingWrites.Add(-1) }
}

// holdWithReason suspends the run because the database rejects what it has to write. After a delay, this or another
// worker claims the run again, and Get shows the reason until then.
func (r *run) holdWithReason(what, name string, err error) {
	r.suspend(suspensionSpec{cause: ErrHeld, status: store.Pending, heldReason: holdReason(what, name, err)})
}

// holdReason returns the reason that Get shows for a run that is held.
func holdReason(what, name string, err error) string {
	reason := what
	if name != "" {
		reason += " " + fmt.Sprintf("%.100q", naming.Display(name))
	}
	return shortenReason(reason + ": " + unwrapWriteError(err).Error())
}

// suspendAfterFailedWrite suspends the run after one of its writes failed although the value was not at fault. If
// nothing can be written at all, it ends the ownership of the run; otherwise it holds the run.
func (r *run) suspendAfterFailedWrite(what, name string, err error) {
	if !isStoreUnusable(err) {
		r.holdWithReason(what, name, err)
		return
	}
	r.logger().Error("a write of a run failed; the run leaves this process", telemetry.KeyReason, what, telemetry.KeyStep, naming.Display(name), telemetry.KeyError, err)
	r.loseOwnership()
}

// logHeld logs what happened to a run that was held.
func (r *run) logHeld(s *suspensionSpec, w *store.OwnershipEnd) {
	text := "the database does not take what a run records; the run "
	switch {
	case s.compensationMissing:
		text = "the code does not register a compensation that a failed run has to execute; the run "
	case s.olderWorker:
		text = "a worker with an older version of durable lives, and a run is to begin its next generation; the run "
	case s.queueMissing:
		text = "a run is to start a child with a group key in a queue without settings; the run "
	case s.unreadable:
		text = "a payload that a run needs cannot be decoded; the run "
	case s.divergence != nil:
		text = "the code does not fit the history of a run; the run "
	}
	switch {
	case w.Outcome == store.Fenced:
	case w.RunState.Status == store.Paused:
		r.logger().Error(text+"was paused", telemetry.KeyReason, s.heldReason)
	default:
		r.logger().Error(text+"was released and will be executed again", telemetry.KeyReason, s.heldReason)
	}
}
