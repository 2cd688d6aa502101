package coded

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// ApplyRepair implements store.RepairStore. Checkpoints that are kept stay as they are.
func (s *Store) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	sealed := *r
	sealed.Runs = slices.Clone(r.Runs)
	for i := range sealed.Runs {
		run := &sealed.Runs[i]
		var err error
		if run.NewSteps, err = s.sealSteps(run.Run, run.NewSteps); err != nil {
			return err
		}
		if err := s.sealInput(run.Run, &run.Input); err != nil {
			return err
		}
		if run.FirstInputHash, err = s.seal(firstInputSlot(run.Run), run.FirstInputHash); err != nil {
			return err
		}
	}
	err := s.Store.ApplyRepair(ctx, &sealed)
	r.Outcome = sealed.Outcome
	return err
}

// FirstInputHash implements store.RepairStore. The hash is encoded, because it tells whether a guessed input is right.
func (s *Store) FirstInputHash(ctx context.Context, run uuid.UUID) ([]byte, error) {
	b, err := s.Store.FirstInputHash(ctx, run)
	if err != nil {
		return nil, err
	}
	return payload.Open(s.codec, firstInputSlot(run), b)
}

func firstInputSlot(run uuid.UUID) payload.Slot {
	return payload.Slot{Run: run, Kind: payload.FirstInput}
}

// sealSteps returns encoded copies of checkpoints of the run.
func (s *Store) sealSteps(run uuid.UUID, steps []store.Step) ([]store.Step, error) {
	sealed := slices.Clone(steps)
	for i := range sealed {
		id := sealed[i].Run
		sealed[i].Run = run // a repair need not set it
		if err := s.sealStep(&sealed[i], new(store.EncodedPayloads)); err != nil {
			return nil, err
		}
		sealed[i].Run = id
	}
	return sealed, nil
}

// ForkRun implements store.RepairStore. Everything is encoded for the new run.
func (s *Store) ForkRun(ctx context.Context, f *store.ForkRequest) error {
	sealed := *f
	starts, err := s.sealStarts([]*store.StartWrite{f.Start})
	if err != nil {
		return err
	}
	sealed.Start = starts[0]
	if sealed.Steps, err = s.sealSteps(f.Start.Run.UUID, f.Steps); err != nil {
		return err
	}
	if err := s.Store.ForkRun(ctx, &sealed); err != nil {
		return err
	}
	s.setStartOutcome(f.Start, sealed.Start)
	return nil
}

// SupersededGenerations implements store.RepairStore.
func (s *Store) SupersededGenerations(ctx context.Context, run uuid.UUID, q store.GenerationsQuery) ([]store.SupersededGeneration, error) {
	all, err := s.Store.SupersededGenerations(ctx, run, q)
	for i := range all {
		s.openRun(&all[i].Run)
	}
	return all, err
}
