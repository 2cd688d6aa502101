package coded

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	claimed, err := s.Store.Claim(ctx, q)
	for i := range claimed.Runs {
		s.openRun(&claimed.Runs[i].Run)
		s.openSteps(claimed.Runs[i].History)
	}
	return claimed, err
}

// ClaimRunHeldForDrift implements store.DivergenceStore.
func (s *Store) ClaimRunHeldForDrift(ctx context.Context, run *store.Run, diverged store.DivergedVersions, q store.ClaimQuery) (*store.Run, error) {
	claimed, err := s.Store.ClaimRunHeldForDrift(ctx, run, diverged, q)
	s.openRun(claimed)
	return claimed, err
}

// GetRuns implements store.Store.
func (s *Store) GetRuns(ctx context.Context, refs []store.RunRef) ([]*store.Run, error) {
	runs, err := s.Store.GetRuns(ctx, refs)
	s.openRuns(runs)
	return runs, err
}

// GetRunsSelectingPayloads implements store.Store.
func (s *Store) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	runs, err := s.Store.GetRunsSelectingPayloads(ctx, refs, with)
	s.openRuns(runs)
	return runs, err
}

// ListRuns implements store.Store.
func (s *Store) ListRuns(ctx context.Context, f store.Filter, before uuid.UUID, limit int) ([]*store.Run, error) {
	runs, err := s.Store.ListRuns(ctx, f, before, limit)
	s.openRuns(runs)
	return runs, err
}

// RunTree implements store.Store.
func (s *Store) RunTree(ctx context.Context, run uuid.UUID, allGenerations bool) ([]*store.Run, error) {
	runs, err := s.Store.RunTree(ctx, run, allGenerations)
	s.openRuns(runs)
	return runs, err
}

// FailureGroups implements store.OverviewStore.
func (s *Store) FailureGroups(ctx context.Context, f store.Filter, examine, limit int) ([]store.FailureGroup, error) {
	all, err := s.Store.FailureGroups(ctx, f, examine, limit)
	for i := range all {
		s.openRun(&all[i].Newest)
	}
	return all, err
}

// History implements store.Store. For the checkpoints of a superseded generation, use HistoryOf.
func (s *Store) History(ctx context.Context, run uuid.UUID) ([]store.Step, error) {
	return s.HistoryOf(ctx, run, run)
}

// HistoryOf returns the checkpoints with the run ID archive: those of a superseded generation of the run origin, or, if both are
// equal, those of the run.
func (s *Store) HistoryOf(ctx context.Context, archive, origin uuid.UUID) ([]store.Step, error) {
	steps, err := s.Store.History(ctx, archive)
	for i := range steps {
		s.openStep(&steps[i], origin)
	}
	return steps, err
}

// HistoryOutline implements store.Store. For the checkpoints of a superseded generation, use HistoryOutlineOf.
func (s *Store) HistoryOutline(ctx context.Context, run uuid.UUID) ([]store.Step, error) {
	return s.HistoryOutlineOf(ctx, run, run)
}

// HistoryOutlineOf is HistoryOutline for the arguments of HistoryOf.
func (s *Store) HistoryOutlineOf(ctx context.Context, archive, origin uuid.UUID) ([]store.Step, error) {
	steps, err := s.Store.HistoryOutline(ctx, archive)
	for i := range steps {
		s.openStep(&steps[i], origin)
	}
	return steps, err
}

// CheckpointsByName implements store.Store. For the checkpoints of a superseded generation, use CheckpointsOf.
func (s *Store) CheckpointsByName(ctx context.Context, run uuid.UUID, names []string, maxOutput int) ([]store.SizedStep, error) {
	return s.CheckpointsOf(ctx, run, run, names, maxOutput)
}

// CheckpointsOf is CheckpointsByName for the arguments of HistoryOf.
func (s *Store) CheckpointsOf(ctx context.Context, archive, origin uuid.UUID, names []string, maxOutput int) ([]store.SizedStep, error) {
	steps, err := s.Store.CheckpointsByName(ctx, archive, names, maxOutput)
	for i := range steps {
		s.openStep(&steps[i].Step, origin)
	}
	return steps, err
}

// HistoryFrom implements store.Store.
func (s *Store) HistoryFrom(ctx context.Context, run uuid.UUID, from string, bytes int) ([]store.Step, store.UnreadHistory, error) {
	steps, rest, err := s.Store.HistoryFrom(ctx, run, from, bytes)
	s.openSteps(steps)
	return steps, rest, err
}

// Histories implements store.DivergenceStore.
func (s *Store) Histories(ctx context.Context, runs []uuid.UUID) ([]store.Step, error) {
	steps, err := s.Store.Histories(ctx, runs)
	s.openSteps(steps)
	return steps, err
}

// RunProgress implements store.Store.
func (s *Store) RunProgress(ctx context.Context, run uuid.UUID, now time.Time) (store.RunProgress, error) {
	details, err := s.Store.RunProgress(ctx, run, now)
	s.openSteps(details.OpenCalls)
	s.openSteps(details.Choices)
	return details, err
}

// Divergences implements store.DivergenceStore.
func (s *Store) Divergences(ctx context.Context, run uuid.UUID) ([]store.Divergence, error) {
	all, err := s.Store.Divergences(ctx, run)
	for i := range all {
		all[i].Detail = s.openText(all[i].Detail, divergenceSlot(run, &all[i]))
	}
	return all, err
}

// Events implements store.Store.
func (s *Store) Events(ctx context.Context, after string, limit int) ([]store.Event, error) {
	events, err := s.Store.Events(ctx, after, limit)
	s.openEvents(events)
	return events, err
}

// EventsBefore implements store.Store.
func (s *Store) EventsBefore(ctx context.Context, before string, limit int) ([]store.Event, error) {
	events, err := s.Store.EventsBefore(ctx, before, limit)
	s.openEvents(events)
	return events, err
}

// openEvents decodes the reasons of holds; see sealHoldReason.
func (s *Store) openEvents(events []store.Event) {
	for i := range events {
		if e := &events[i]; e.Type == store.EventPaused {
			slot := payload.Slot{Run: e.Run, Kind: payload.Reason}
			e.Reason, e.NewValue = s.openText(e.Reason, slot), s.openText(e.NewValue, slot)
		}
	}
}
