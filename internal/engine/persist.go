package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Only a value fails a step. What the database rejects for another reason, or what another
// transaction holds up, is retried by the one who wants it written, for Config.Patience: in a
// transaction of its own, so that nobody waits with it, while renewals keep the run's lease.
// After that the run is held: it leaves memory with the reason, and comes back later.

const (
	firstRetry  = 20 * time.Millisecond
	longRetry   = 2 * time.Second
	limitRetry  = 5 * time.Second // so that a limit which was exceeded for a moment is not taken for the value's
	limitTries  = 3
	longRefusal = time.Second // after which the log tells of it
	maxReason   = 1 << 10
)

// WriteError is described in package journal.
type WriteError = journal.WriteError

// errRowLocked is the error for Outcome Locked.
var errRowLocked = &WriteError{Err: store.ErrLocked}

// MayPass reports whether nothing was written, and the same write may succeed later.
func MayPass(err error) bool {
	if err == nil || unwritable(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	return !errors.Is(err, store.ErrBadData) && !errors.Is(err, ErrLeft)
}

// writeFunc makes a write by the writer that it is given.
type writeFunc func(j journal.Writer) (*store.Outcome, error)

// caller is the one for whom something is written.
type caller struct {
	over    <-chan struct{}           // when it is closed, the write is not retried any more; nil: never
	around  func(writeFunc) writeFunc // wraps the write; nil: nothing does
	outside bool                      // it is no run: it is told at once that a privilege is missing
}

// outsider is a caller of the engine.
var outsider = caller{outside: true}

// until is a run, or its call, that does not want the write any more when over is closed.
func until(over <-chan struct{}) caller { return caller{over: over} }

// wrap is the write within what stands around it.
func (c caller) wrap(write writeFunc) writeFunc {
	if c.around == nil {
		return write
	}
	return c.around(write)
}

// retries reports whether the write is to be tried again after the error. A missing privilege keeps a
// run waiting, since it may be granted and nothing else is lost than time.
func (c caller) retries(err error) bool {
	return MayPass(err) && !(c.outside && errors.Is(err, store.ErrPermission))
}

// persist makes a write of one caller, first together with others, then alone. It returns
// nil with an outcome other than Locked. The write ends early with ctx. Before it is first made alone, apart, which may be nil, can change
// it; it is not called if the write may have been committed.
func (e *Engine) persist(ctx context.Context, by caller, apart func(), write writeFunc) error {
	write = by.wrap(write)
	outcome, err := write(e.journal)
	if err == nil && *outcome == store.Locked {
		err = errRowLocked
	}
	if !by.retries(err) {
		return err
	}
	return e.persistAlone(ctx, by, apart, write, err)
}

// persistAlone is persist after the first try, which failed with last.
func (e *Engine) persistAlone(ctx context.Context, by caller, apart func(), write writeFunc, last error) error {
	alone := e.journal.NewSoloWriter()
	defer alone.Close()
	doubtful := mayHaveCommitted(last)
	if apart != nil && !doubtful {
		apart()
	}
	return e.patiently(ctx, by, func() error {
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

// cause is the error without what a WriteError says of it.
func cause(err error) error {
	if w, ok := errors.AsType[*WriteError](err); ok {
		return w.Err
	}
	return err
}

func mayHaveCommitted(err error) bool {
	w, ok := errors.AsType[*WriteError](err)
	return ok && w.MayHaveCommitted
}

// patiently calls try until its error is nil or of a kind that does not pass, for
// Config.Patience. A limit that a lone write exceeds time and again is the value's fault.
func (e *Engine) patiently(ctx context.Context, by caller, try func() error) error {
	began := time.Now()
	told, limits := false, 0
	var last error
	for wait := firstRetry; ; wait = min(2*wait, longRetry) {
		err := try()
		if err != nil && last != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return &WriteError{MayHaveCommitted: mayHaveCommitted(err), Err: fmt.Errorf("%w: %w", context.Cause(ctx), last)}
		}
		if !by.retries(err) {
			return err
		}
		last = cause(err)
		if errors.Is(err, store.ErrLimit) {
			if limits++; limits > limitTries { // the first time it was perhaps not alone
				return fmt.Errorf("%w: %w", store.ErrBadData, err)
			}
			wait = min(limitRetry, e.patience()/(limitTries+1))
		}
		took := time.Since(began)
		if took > e.patience() {
			return err
		}
		if took > longRefusal && !told {
			told = true
			defer e.refusing(err)()
		}
		pause := wait/2 + rand.N(wait)
		if errors.Is(err, store.ErrLocked) && wait == firstRetry {
			pause = 0 // it may only have been beside one that was locked
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-by.over:
			t.Stop()
			return err
		case <-ctx.Done():
			t.Stop()
			return &WriteError{MayHaveCommitted: mayHaveCommitted(err), Err: fmt.Errorf("%w: %w", context.Cause(ctx), last)}
		}
	}
}

func (e *Engine) patience() time.Duration {
	if e.cfg.Patience > 0 {
		return e.cfg.Patience
	}
	return journal.DefaultPatience
}

// refusing tells the log that the database does not take a write, unless others wait for the
// same to end. The function returned is called at the end of it.
func (e *Engine) refusing(err error) (over func()) {
	if e.counts.retrying.Add(1) == 1 {
		e.tel.Log.Warn("the database does not take a write; it is retried, alone, until Patience is over", telemetry.KeyError, err)
	}
	return func() { e.counts.retrying.Add(-1) }
}

// hold lets the run leave since the database does not take what it has to write: it comes back
// after a while, for this worker or another, and Get shows the reason until then.
func (r *run) hold(what, name string, err error) {
	r.suspend(suspension{cause: ErrHeld, status: store.Pending, reason: holdReason(what, name, err)})
}

// holdReason is the reason that Get shows of a run that is held.
func holdReason(what, name string, err error) string {
	reason := what
	if name != "" {
		reason += " " + fmt.Sprintf("%.100q", Shown(name))
	}
	reason = tidy(reason + ": " + cause(err).Error())
	if len(reason) > maxReason {
		reason = tidy(reason[:maxReason]) + "..."
	}
	return reason
}

// unwritten lets the run leave after a write of it that failed for another cause than its value.
func (r *run) unwritten(what, name string, err error) {
	if !unwritable(err) {
		r.hold(what, name, err)
		return
	}
	r.logger().Error("a write of a run failed; the run leaves this process", telemetry.KeyReason, what, telemetry.KeyStep, Shown(name), telemetry.KeyError, err)
	r.lose()
}

// released tells the log what became of a run that was held.
func (r *run) released(s *suspension, w *store.RunWrite) {
	text := "the database does not take what a run records; the run "
	if s.lacks {
		text = "the code does not register a compensation that a failed run has to execute; the run "
	}
	switch {
	case w.Outcome == store.Fenced:
	case w.State.Status == store.Paused:
		r.logger().Error(text+"was paused", telemetry.KeyReason, s.reason)
	default:
		r.logger().Error(text+"was released and will be executed again", telemetry.KeyReason, s.reason)
	}
}
