package engine

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// Signal sends the signal s to the run that ref names. The caller sets Name, Key and Payload of the signal.
func (e *Engine) Signal(ctx context.Context, ref string, s *store.SignalWrite) error {
	if err := e.CheckOutsideTx(ctx, "a signal"); err != nil {
		return err
	}
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return err
	}
	return e.sendSignal(ctx, userCaller, ref, s, time.Time{})
}

// sendSignal does the same as Signal, with the given options. The time of the signal is later than the argument after.
func (e *Engine) sendSignal(ctx context.Context, by writeOptions, ref string, s *store.SignalWrite, after time.Time) error {
	row, err := e.runToChange(ctx, by, ref)
	if err != nil {
		return err
	}
	s.Run = row.UUID
	e.setSignalIDAndTimes(s, after)
	write := func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
		return &s.Outcome, j.WriteSignal(ctx, s)
	}
	if s.ActorAndReason.HasActorOrReason() { // a batch holds one such signal for each run
		err = e.retryWriteInSeparateTx(ctx, by, nil, by.wrapWrite(write), nil)
	} else {
		err = e.writeWithRetry(ctx, by, nil, write)
	}
	if err != nil {
		return fmt.Errorf("signal run %q: %w", ref, err)
	}
	if err := e.SignalOutcomeError(ref, s); err != nil {
		return err
	}
	if w := e.worker(); w != nil {
		w.wakeRun(row.UUID)
	}
	return nil
}

// StampSignal sets the ID and the time of a signal. The time is later than that of the previous signal of this engine, even if the engine
// has corrected its estimate of the database's clock in between. Because of StampSignal, the signals of one sender keep their order.
func (e *Engine) StampSignal(s *store.SignalWrite) { e.setSignalIDAndTimes(s, time.Time{}) }

// setSignalIDAndTimes does the same as StampSignal, with a time that is also later than the argument after. So the signals of a run
// keep their order even when the run continues in another process, whose estimate of the database's clock is behind.
func (e *Engine) setSignalIDAndTimes(s *store.SignalWrite, after time.Time) {
	s.CreatedAt = e.signalTimeGenerator.nextTime(e.clock.Now(), after)
	s.ArrivedAt = e.clock.RowTimeOverride()
	s.ID = store.NewUUIDAt(0, s.CreatedAt)
	s.ActorAndReason.At = s.CreatedAt
}

// increasingTimeGenerator generates strictly increasing times.
type increasingTimeGenerator struct {
	mu   sync.Mutex
	last time.Time
}

func (s *increasingTimeGenerator) nextTime(now, after time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after.After(s.last) {
		s.last = after
	}
	if !now.After(s.last) {
		now = s.last.Add(time.Microsecond)
	}
	s.last = now
	return now
}

// SignalOutcomeError returns the error that corresponds to the outcome of a committed signal, or nil.
func (e *Engine) SignalOutcomeError(ref string, s *store.SignalWrite) error {
	switch {
	case s.Outcome == store.Written:
		return nil
	case s.Outcome == store.AlreadyRecorded:
		had := s.ExistingSignal
		if err := payload.Problem(had.Payload); err != nil {
			return fmt.Errorf("signal run %q: a signal with this key exists, and its payload cannot be compared: %w", ref, err)
		}
		if had.Name != s.Name || !bytes.Equal(had.Payload, s.Payload) {
			return &ConflictError{Text: fmt.Sprintf("durable: signal %q with key %q was sent to run %q before with another name or payload: use another key, or the same signal",
				naming.DisplaySignal(s.Name), naming.DisplaySignal(s.Key), ref)}
		}
		return nil
	case !s.RunState.Found:
		return notFoundError(ref)
	default:
		return &StateError{Ref: ref, Verb: "signal", Status: s.RunState.Status, Control: s.RunState.Control}
	}
}

// wakeRun makes a run in memory check the database for events. If the run is not in memory, it makes the
// claim loop check for due runs.
func (w *worker) wakeRun(id uuid.UUID) {
	if r := w.loadedRuns.get(id); r != nil {
		r.recheckWaits()
		return
	}
	w.wakeLoops()
}
