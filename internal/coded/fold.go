package coded

import (
	"context"

	"github.com/seed8ec063be/durable/internal/fold"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// ChangeFold implements store.FoldStore.
func (s *Store) ChangeFold(ctx context.Context, c *store.FoldChangeRequest) error {
	return s.ChangeFoldWith(c, func(sealed *store.FoldChangeRequest) error { return s.Store.ChangeFold(ctx, sealed) })
}

// ChangeFoldWith calls change with a FoldChangeRequest that encodes what c plans, and sets the outcome in c. The function change writes it in a
// transaction, which may be the caller's.
func (s *Store) ChangeFoldWith(c *store.FoldChangeRequest, change func(*store.FoldChangeRequest) error) error {
	var planned *store.FoldWrite
	var problem error
	sealed := *c
	sealed.Plan = func(at store.FoldSnapshot) *store.FoldWrite {
		var w *store.FoldWrite
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
	if planned.Start != nil {
		s.setStartOutcome(planned.Start, sealed.AppliedWrite.Start)
	}
	return nil
}

func foldSlot(k store.FoldKey) payload.Slot {
	return payload.Slot{Kind: payload.FoldCall, Name: k.Workflow + "\x00" + k.Kind.String() + "\x00" + k.Key}
}

// openFold returns a decoded copy of the row.
func (s *Store) openFold(row *store.Fold) *store.Fold {
	if row == nil {
		return nil
	}
	plain := *row
	s.open(&plain.Input, payload.Slot{Run: row.WaitingRun.UUID, Kind: payload.Input})
	if state, err := fold.ReplaceCallIDs(row, func(id string) (string, error) { return s.openText(id, foldSlot(row.FoldKey)), nil }); err == nil {
		plain.State = state // otherwise the engine reports that it does not decode
	}
	return &plain
}

// sealFold returns an encoded copy of what is written.
func (s *Store) sealFold(w *store.FoldWrite) (_ *store.FoldWrite, err error) {
	sealed := *w
	if sealed.Row.State, err = fold.ReplaceCallIDs(&w.Row, func(id string) (string, error) { return s.sealText(foldSlot(w.Row.FoldKey), id) }); err != nil {
		return nil, err
	}
	if err := s.sealInput(w.Row.WaitingRun.UUID, &sealed.Row.Input); err != nil {
		return nil, err
	}
	if w.Start != nil {
		starts, err := s.sealStarts([]*store.StartWrite{w.Start})
		if err != nil {
			return nil, err
		}
		sealed.Start = starts[0]
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
