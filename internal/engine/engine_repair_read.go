package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
)

// readRunToRepair reads everything that is needed to plan a run's next generation.
func (p *repairPlanner) readRunToRepair(ctx context.Context, row *store.Run) (s *repair.RunToRepair, err error) {
	history, err := p.e.store.History(ctx, row.UUID)
	if err != nil {
		return nil, err
	}
	if s, err = p.e.newRunToRepair(ctx, row, history); err != nil {
		return nil, err
	}
	if row.Status.IsTerminal() && !row.Deadline.IsZero() {
		details, err := p.e.store.RunProgress(ctx, row.UUID, p.storeRequest.Now)
		if err != nil {
			return nil, err
		}
		s.Timeout = details.Timeout
	}
	tree, err := p.e.store.RunTree(ctx, row.UUID, false)
	if err != nil {
		return nil, err
	}
	for _, c := range tree {
		if c.Parent.Valid && c.Parent.UUID == row.UUID {
			s.Children = append(s.Children, c)
		}
	}
	return s, nil
}

// newRunToRepair returns the run with its history, and with the values that a repair needs from the history and the divergences.
func (e *Engine) newRunToRepair(ctx context.Context, row *store.Run, history []store.Step) (s *repair.RunToRepair, err error) {
	s = &repair.RunToRepair{Run: row, History: history}
	if s.DivergedCalls, err = e.divergedCalls(ctx, row); err != nil {
		return nil, err
	}
	renewal, err := record.FindRenewal(s.History)
	if err != nil && !errors.Is(err, payload.ErrUnreadable) {
		err = fmt.Errorf("%w: %w", payload.ErrUnreadable, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the record of its idempotency keys: %w", err)
	}
	s.Generation = renewal.Generation
	return s, e.addCallsDroppedByRetry(ctx, s, &renewal)
}

// addCallsDroppedByRetry adds the calls that the option RetryRun has dropped to the history of a live run that has made no call since. An
// operator who repairs the run while it waits for its retry sees these calls, and may name them.
func (e *Engine) addCallsDroppedByRetry(ctx context.Context, s *repair.RunToRepair, renewal *record.Renewal) error {
	if renewal.Failure == nil || s.Run.Status.IsTerminal() {
		return nil
	}
	has := make(map[string]bool, len(s.History))
	var began time.Time
	for i := range s.History {
		row := &s.History[i]
		has[row.Name] = true
		if row.Kind == store.KindKeyRenewal {
			began = row.StartedAt
		}
	}
	if slices.ContainsFunc(s.History, func(row store.Step) bool { return row.Kind != store.KindKeyRenewal && !row.StartedAt.Before(began) }) {
		return nil
	}
	failed, err := e.GenerationHistory(ctx, store.GenerationUUID(s.Run.UUID, renewal.Generation-1), s.Run.UUID)
	if err != nil {
		return err
	}
	s.DroppedByRetry = make(map[string]bool)
	for i := range failed {
		row := failed[i]
		if has[row.Name] || row.Kind == store.KindKeyRenewal || row.Kind == store.KindRunEnd || row.Kind == store.KindCompensation {
			continue
		}
		row.Run = s.Run.UUID
		s.History = append(s.History, row)
		s.DroppedByRetry[row.Name] = true
	}
	slices.SortStableFunc(s.History, func(a, b store.Step) int { return cmp.Compare(a.Seq, b.Seq) })
	return nil
}

// divergedCalls returns the calls for which the run is held for drift. It omits calls after whose divergence another version has continued
// the run.
func (e *Engine) divergedCalls(ctx context.Context, row *store.Run) (calls []string, err error) {
	if row.Control&store.HeldForDrift == 0 {
		return nil, nil
	}
	all, err := e.store.Divergences(ctx, row.UUID)
	for i := range all {
		if all[i].ContinuedBy == "" {
			calls = append(calls, all[i].Call)
		}
	}
	return calls, err
}
