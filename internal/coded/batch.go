package coded

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, b *store.Batch) error {
	sealed, err := s.sealBatch(b)
	if err != nil {
		return err
	}
	if err := s.Store.Commit(ctx, sealed); err != nil {
		return err
	}
	for i, w := range sealed.Starts {
		s.setStartOutcome(b.Starts[i], w)
	}
	for i, w := range sealed.Steps {
		s.setStepOutcome(b.Steps[i], w)
	}
	for i, w := range sealed.Receives {
		to := b.Receives[i]
		to.Outcome, to.RecordedStep, to.RunState = w.Outcome, s.openRecorded(w.RecordedStep), w.RunState
	}
	for i, w := range sealed.Signals {
		s.setSignalOutcome(b.Signals[i], w)
	}
	for i, w := range sealed.OwnershipEnds {
		to := b.OwnershipEnds[i]
		to.Outcome, to.RunState = w.Outcome, w.RunState
	}
	return nil
}

// sealBatch returns a copy of the batch with encoded payloads, in the same order.
func (s *Store) sealBatch(b *store.Batch) (_ *store.Batch, err error) {
	sealed := &store.Batch{ShortLockWait: b.ShortLockWait}
	if sealed.Starts, err = s.sealStarts(b.Starts); err != nil {
		return nil, err
	}
	if sealed.Steps, err = sealCopies(b.Steps, s.sealStepWrite); err != nil {
		return nil, err
	}
	if sealed.Receives, err = sealCopies(b.Receives, func(_, w *store.ReceiveWrite) error { return s.sealStep(&w.Step, new(store.EncodedPayloads)) }); err != nil {
		return nil, err
	}
	if sealed.Signals, err = sealCopies(b.Signals, func(_, w *store.SignalWrite) error { return s.sealSignal(w) }); err != nil {
		return nil, err
	}
	sealed.OwnershipEnds, err = sealCopies(b.OwnershipEnds, s.sealOwnershipEnd)
	return sealed, err
}

// sealCopies returns copies of the items. The function seal encodes the payloads of each copy.
func sealCopies[W any](items []*W, seal func(item, sealed *W) error) ([]*W, error) {
	if len(items) == 0 {
		return nil, nil
	}
	rows, sealed := make([]W, len(items)), make([]*W, len(items))
	for i, item := range items {
		rows[i], sealed[i] = *item, &rows[i]
		if err := seal(item, sealed[i]); err != nil {
			return nil, err
		}
	}
	return sealed, nil
}

func (s *Store) sealStarts(starts []*store.StartWrite) ([]*store.StartWrite, error) {
	return sealCopies(starts, func(_, w *store.StartWrite) error { return s.sealInput(w.Run.UUID, &w.Run.Input) })
}

// sealInput encodes the input of a run.
func (s *Store) sealInput(run uuid.UUID, input *[]byte) (err error) {
	*input, err = s.seal(payload.Slot{Run: run, Kind: payload.Input}, *input)
	return err
}

// setStartOutcome sets the outcome of a start from that of its encoded copy.
func (s *Store) setStartOutcome(to, w *store.StartWrite) {
	s.openRun(w.ExistingRun)
	to.Outcome, to.ExistingRun, to.RunState = w.Outcome, w.ExistingRun, w.RunState
}

// SealStep encodes the payloads of a step that is about to be committed, so that the journal, which writes for all callers, need not do
// it. An error is that of the commit.
func (s *Store) SealStep(w *store.StepWrite) {
	sealed := *w
	_ = s.sealStepWrite(w, &sealed) // Commit tries again
}

func (s *Store) sealStepWrite(w, sealed *store.StepWrite) error {
	if w.Step.Output == nil && w.Step.Error == nil && w.Step.Failures == nil {
		return nil
	}
	if w.Encoded == nil {
		w.Encoded = new(store.EncodedPayloads)
	}
	return s.sealStep(&sealed.Step, w.Encoded)
}

func (s *Store) setStepOutcome(to, w *store.StepWrite) {
	to.Outcome, to.RecordedStep, to.RunState = w.Outcome, s.openRecorded(w.RecordedStep), w.RunState
}

// openRecorded returns the row of another write, decoded.
func (s *Store) openRecorded(row *store.Step) *store.Step {
	if row != nil {
		s.openStep(row, row.Run)
	}
	return row
}

func signalSlot(w *store.SignalWrite) payload.Slot {
	return payload.Slot{Run: w.Run, Kind: payload.Signal, Name: w.Name}
}

func (s *Store) sealSignal(w *store.SignalWrite) (err error) {
	w.Payload, err = s.seal(signalSlot(w), w.Payload)
	return err
}

func (s *Store) setSignalOutcome(to, w *store.SignalWrite) {
	if had := w.ExistingSignal; had != nil {
		s.open(&had.Payload, signalSlot(had))
	}
	to.Outcome, to.ExistingSignal, to.RunState = w.Outcome, w.ExistingSignal, w.RunState
}

func (s *Store) sealOwnershipEnd(w, sealed *store.OwnershipEnd) (err error) {
	if w.HoldsRun {
		return s.sealHoldReason(sealed)
	}
	if w.Output == nil && w.Error == nil {
		return nil
	}
	if w.Encoded == nil {
		w.Encoded = new(store.EncodedPayloads)
	}
	if sealed.Output, err = s.sealOnce(&w.Encoded.Output, payload.Slot{Run: w.UUID, Kind: payload.Output}, w.Output); err != nil {
		return err
	}
	sealed.Error, err = s.sealOnce(&w.Encoded.Error, payload.Slot{Run: w.UUID, Kind: payload.Error}, w.Error)
	return err
}

// sealHoldReason encodes what is said of an error because of which a run is held: a value that does not decode may occur in it.
func (s *Store) sealHoldReason(w *store.OwnershipEnd) (err error) {
	if w.NotCountedAsCrash { // it names a key, a worker or a queue, and quotes no payload
		return nil
	}
	if d := w.Divergence; d != nil {
		own := *d
		if own.Detail, err = s.sealText(divergenceSlot(w.UUID, d), d.Detail); err != nil {
			return err
		}
		w.Divergence = &own
	}
	what, detail, found := strings.Cut(w.HoldReason, ": ")
	if !found {
		return nil
	}
	detail, err = s.sealText(payload.Slot{Run: w.UUID, Kind: payload.Reason}, detail)
	w.HoldReason = what + ": " + detail
	return err
}

func divergenceSlot(run uuid.UUID, d *store.Divergence) payload.Slot {
	return payload.Slot{Run: run, Kind: payload.Divergence, Name: d.Version}
}
