package coded

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// UpdateStartKeyRow implements store.StartKeyStore.
func (s *Store) UpdateStartKeyRow(ctx context.Context, c *store.StartKeyChangeRequest) error {
	return s.UpdateStartKeyRowWith(c, func(sealed *store.StartKeyChangeRequest) error { return s.Store.UpdateStartKeyRow(ctx, sealed) })
}

// StartKeyOfWaitingRun implements store.StartKeyStore.
func (s *Store) StartKeyOfWaitingRun(ctx context.Context, run uuid.UUID) (*store.StartKeyRow, error) {
	row, err := s.Store.StartKeyOfWaitingRun(ctx, run)
	return s.openFold(row), err
}

// UpdateStartKeyRowWith calls change with a StartKeyChangeRequest that encodes what c plans, and sets the outcome in c. The function change
// writes it in a transaction, which may be the caller's.
func (s *Store) UpdateStartKeyRowWith(c *store.StartKeyChangeRequest, change func(*store.StartKeyChangeRequest) error) error {
	var planned *store.StartKeyWrite
	var problem error
	sealed := *c
	sealed.Plan = func(at store.StartKeySnapshot) *store.StartKeyWrite {
		var w *store.StartKeyWrite
		at.Row = s.openFold(at.Row)
		s.openRun(at.RunWithName)
		if planned, problem = c.Plan(at), nil; planned != nil {
			w, problem = s.sealFold(planned)
		}
		return w
	}
	err := change(&sealed)
	if err == nil {
		err = problem // then nothing was written
	}
	if c.AppliedWrite = nil; err != nil || sealed.AppliedWrite == nil {
		return err
	}
	c.AppliedWrite = planned
	if planned.RunToCreate != nil {
		s.setStartOutcome(planned.RunToCreate, sealed.AppliedWrite.RunToCreate)
	}
	return nil
}

func foldSlot(k store.StartKey) payload.Slot {
	return payload.Slot{Kind: payload.FoldCall, Name: k.Workflow + "\x00" + k.Kind.String() + "\x00" + k.Key}
}

// openFold returns a decoded copy of the row.
func (s *Store) openFold(row *store.StartKeyRow) *store.StartKeyRow {
	if row == nil {
		return nil
	}
	plain := *row
	s.open(&plain.WaitingInput, payload.Slot{Run: row.WaitingRun.UUID, Kind: payload.Input})
	if state, err := startkey.ReplaceCallIDs(row, func(id string) (string, error) { return s.openText(id, foldSlot(row.StartKey)), nil }); err == nil {
		plain.State = state // otherwise the engine reports that it does not decode
	}
	return &plain
}

// sealFold returns an encoded copy of what is written.
func (s *Store) sealFold(w *store.StartKeyWrite) (_ *store.StartKeyWrite, err error) {
	sealed := *w
	if sealed.Row.State, err = startkey.ReplaceCallIDs(&w.Row, func(id string) (string, error) { return s.sealText(foldSlot(w.Row.StartKey), id) }); err != nil {
		return nil, err
	}
	if err := s.sealInput(w.Row.WaitingRun.UUID, &sealed.Row.WaitingInput); err != nil {
		return nil, err
	}
	if w.RunToCreate != nil {
		starts, err := s.sealStarts([]*store.StartWrite{w.RunToCreate})
		if err != nil {
			return nil, err
		}
		sealed.RunToCreate = starts[0]
	}
	if w.Release != nil {
		release := *w.Release
		if err := s.sealInput(release.RunUUID, &release.Input); err != nil {
			return nil, err
		}
		sealed.Release = &release
	}
	return &sealed, nil
}
