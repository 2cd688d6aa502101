package coded

import (
	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// What is written in a transaction of the user does not pass through Store, but through the functions of a package like postgres. The
// methods of this file encode it.

// CommitStartsWith calls insert, which writes starts in the caller's transaction, with encoded copies, and sets the outcomes.
func (s *Store) CommitStartsWith(starts []*store.StartWrite, insert func([]*store.StartWrite) error) error {
	sealed, err := s.sealStarts(starts)
	if err != nil {
		return err
	}
	err = insert(sealed)
	for i, w := range sealed {
		s.setStartOutcome(starts[i], w)
	}
	return err
}

// CommitSignalWith calls insert, which finds the run of a signal and writes the signal in the caller's transaction, and sets the outcome.
func (s *Store) CommitSignalWith(w *store.SignalWrite, insert func(*store.SignalWrite) error) error {
	sealed := *w
	sealed.Encoder = &signalEncoder{s, w}
	err := insert(&sealed)
	w.Run = sealed.Run
	s.setSignalOutcome(w, &sealed)
	return err
}

type signalEncoder struct {
	s *Store
	w *store.SignalWrite
}

// EncodePayloadFor implements store.PayloadEncoder.
func (x *signalEncoder) EncodePayloadFor(run uuid.UUID) ([]byte, error) {
	return x.s.seal(payload.Slot{Run: run, Kind: payload.Signal, Name: x.w.Name}, x.w.Payload)
}

// EncodeStepOutput returns the output of a step as it is stored, for a step whose checkpoint is written in a transaction of the user.
func (s *Store) EncodeStepOutput(step *store.Step) ([]byte, error) {
	return s.seal(outputSlot(step.Run, step), step.Output)
}

// OpenStep decodes a checkpoint that was read in a transaction of the user.
func (s *Store) OpenStep(step *store.Step) { s.openStep(step, step.Run) }
