package coded

import (
	"context"
	"encoding/json/jsontext"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/schedule"
	"github.com/seed8ec063be/durable/internal/store"
)

// ChangeSchedule implements store.ScheduleStore.
func (s *Store) ChangeSchedule(ctx context.Context, c *store.ScheduleChangeRequest) error {
	var planned *store.ScheduleWrite
	var problem error
	sealed := *c
	if c.TimesToDecide != nil {
		sealed.TimesToDecide = func(row *store.Schedule) []time.Time { return c.TimesToDecide(s.openSchedule(row)) }
	}
	sealed.Plan = func(at store.ScheduleSnapshot) *store.ScheduleWrite {
		var w *store.ScheduleWrite
		at.Row = s.openSchedule(at.Row)
		if planned, problem = c.Plan(at), nil; planned != nil {
			w, problem = s.sealSchedule(planned)
		}
		return w
	}
	err := s.Store.ChangeSchedule(ctx, &sealed)
	if err == nil {
		err = problem // then nothing was written
	}
	c.Found, c.AppliedWrite = sealed.Found, nil
	if err != nil || sealed.AppliedWrite == nil {
		return err
	}
	state := planned.Row.State
	planned.Row = sealed.AppliedWrite.Row
	planned.Row.State = state
	for i := range planned.Fires {
		to, from := &planned.Fires[i], &sealed.AppliedWrite.Fires[i]
		to.Outcome, to.Run = from.Outcome, from.Run
		if to.RunToStart != nil {
			s.setStartOutcome(to.RunToStart, from.RunToStart)
		}
	}
	c.AppliedWrite = planned
	return nil
}

// Schedules implements store.ScheduleStore.
func (s *Store) Schedules(ctx context.Context, after string, limit int) ([]store.Schedule, error) {
	rows, err := s.Store.Schedules(ctx, after, limit)
	for i := range rows {
		rows[i] = *s.openSchedule(&rows[i])
	}
	return rows, err
}

// ScheduleByName implements store.ScheduleStore.
func (s *Store) ScheduleByName(ctx context.Context, name string) (*store.Schedule, error) {
	row, err := s.Store.ScheduleByName(ctx, name)
	return s.openSchedule(row), err
}

// openSchedule returns a decoded copy of the row.
func (s *Store) openSchedule(row *store.Schedule) *store.Schedule {
	if row == nil {
		return nil
	}
	plain := *row
	state, err := schedule.ReplaceSettings(row, func(set *schedule.Settings) error {
		if len(set.EncodedInput) == 0 {
			return nil
		}
		b := payload.OpenOrMark(s.codec, scheduleSlot(row.Name), set.EncodedInput)
		if payload.IsEncoded(b) {
			set.UnreadableInput = b
			return nil
		}
		set.Input, set.EncodedInput = b, nil
		return nil
	})
	if err == nil {
		plain.State = state // otherwise the engine reports that it does not decode
	}
	return &plain
}

// sealSchedule returns an encoded copy of what is written.
func (s *Store) sealSchedule(w *store.ScheduleWrite) (_ *store.ScheduleWrite, err error) {
	sealed := *w
	sealed.Row.State, err = schedule.ReplaceSettings(&w.Row, func(set *schedule.Settings) (err error) {
		if set.UnreadableInput != nil { // it stays as it was read
			set.UnreadableInput = nil
			return nil
		}
		if set.Input == nil {
			return nil
		}
		if set.EncodedInput, err = s.seal(scheduleSlot(w.Row.Name), set.Input); err == nil {
			set.Input = jsontext.Value(payload.Shown(set.EncodedInput))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	sealed.Fires = slices.Clone(w.Fires)
	for i := range sealed.Fires {
		f := &sealed.Fires[i]
		if f.RunToStart == nil {
			continue
		}
		starts, err := s.sealStarts([]*store.StartWrite{f.RunToStart})
		if err != nil {
			return nil, err
		}
		f.RunToStart = starts[0]
	}
	return &sealed, nil
}

func scheduleSlot(name string) payload.Slot { return payload.Slot{Kind: payload.Schedule, Name: name} }
