package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/schedule"
	"github.com/seed8ec063be/durable/internal/store"
)

// SetSchedule records the settings that an operator gives a schedule.
func (e *Engine) SetSchedule(ctx context.Context, name string, s *schedule.Settings, by, reason string) error {
	if err := e.checkNoOlderWorkers(ctx, userCaller, "schedules"); err != nil {
		return err
	}
	if err := e.newScheduleSettingsCheck(ctx)(name, s); err != nil {
		return err
	}
	return e.changeScheduleAsOperator(ctx, name, store.OperatorChange{Verb: store.OperatorSet, By: by, Reason: reason}, func(at store.ScheduleSnapshot) (*store.ScheduleWrite, error) {
		return schedule.PlanSet(name, at.Row, s, e.clock.Now(), by, reason)
	})
}

// newScheduleSettingsCheck does the same as newScheduleSettingsCheckFromCache, but first reads the rows of the queues.
func (e *Engine) newScheduleSettingsCheck(ctx context.Context) func(name string, s *schedule.Settings) error {
	now := time.Now()
	e.queueRows.RowsReadSince(ctx, now)
	return e.newScheduleSettingsCheckFromCache(now)
}

// ResetSchedule removes the settings that an operator has given a schedule.
func (e *Engine) ResetSchedule(ctx context.Context, name, by, reason string) error {
	if err := e.checkNoOlderWorkers(ctx, userCaller, "schedules"); err != nil {
		return err
	}
	return e.changeScheduleAsOperator(ctx, name, store.OperatorChange{Verb: store.OperatorReset, By: by, Reason: reason}, func(at store.ScheduleSnapshot) (*store.ScheduleWrite, error) {
		return schedule.PlanReset(name, at.Row, e.clock.Now(), by, reason)
	})
}

// PauseSchedule pauses a schedule.
func (e *Engine) PauseSchedule(ctx context.Context, name, by, reason string) error {
	return e.changeScheduleAsOperator(ctx, name, store.OperatorChange{Verb: store.OperatorPause, By: by, Reason: reason}, func(at store.ScheduleSnapshot) (*store.ScheduleWrite, error) {
		return schedule.PlanPause(name, at.Row, e.clock.Now(), by, reason)
	})
}

// ResumeSchedule resumes a schedule.
func (e *Engine) ResumeSchedule(ctx context.Context, name, by, reason string) error {
	return e.changeScheduleAsOperator(ctx, name, store.OperatorChange{Verb: store.OperatorResume, By: by, Reason: reason}, func(at store.ScheduleSnapshot) (*store.ScheduleWrite, error) {
		return schedule.PlanResume(name, at.Row, e.clock.Now(), by, reason)
	})
}

// DeleteSchedule deletes a schedule and the record of its fires.
func (e *Engine) DeleteSchedule(ctx context.Context, name, by, reason string) error {
	return e.changeScheduleAsOperator(ctx, name, store.OperatorChange{Verb: store.OperatorDelete, By: by, Reason: reason}, func(at store.ScheduleSnapshot) (*store.ScheduleWrite, error) {
		return schedule.PlanDelete(name, at.Row, e.clock.Now(), by, reason)
	})
}

// TriggerSchedule starts a run of the schedule now, and returns the run's ID.
func (e *Engine) TriggerSchedule(ctx context.Context, name string, act store.ActorAndReason) (id string, err error) {
	call, check := uuid.NewString(), e.newScheduleSettingsCheck(ctx)
	err = e.changeSchedule(ctx, name, act, func(at store.ScheduleSnapshot) (w *store.ScheduleWrite, err error) {
		w, id, err = schedule.PlanTrigger(&schedule.Firing{Name: name, Now: e.clock.Now(), NewStart: e.newScheduleStart, Check: check}, at, call)
		return w, err
	})
	return id, err
}

// BackfillResult counts what happened at the scheduled times of a backfill.
type BackfillResult struct {
	Started      int
	AlreadyFired int // times that had been fired before
	IDTaken      int // times whose ID was taken
}

// Backfill starts runs for past times of a schedule that were not fired, in several transactions.
func (e *Engine) Backfill(ctx context.Context, name string, from, to time.Time, act store.ActorAndReason) (done BackfillResult, err error) {
	for !from.IsZero() {
		if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
			return done, err
		}
		firing := schedule.Firing{Name: name, Now: e.clock.Now(), NewStart: e.newScheduleStart, Check: e.newScheduleSettingsCheck(ctx)}
		b := &schedule.Backfill{Firing: firing, From: from, To: to, Call: uuid.NewString()}
		change := &store.ScheduleChangeRequest{Name: name, TimesToDecide: b.TimesToDecide, Plan: b.Plan, ActorAndReason: act}
		if err := e.commitScheduleChange(ctx, change); err != nil {
			return done, err
		}
		if b.Err != nil {
			return done, b.Err
		}
		started, taken := b.Fired(change.AppliedWrite)
		done.Started, done.AlreadyFired, done.IDTaken = done.Started+started, done.AlreadyFired+b.AlreadyFired, done.IDTaken+taken
		from = b.Next
		if err := ctx.Err(); err != nil {
			return done, store.ContextError(ctx)
		}
	}
	return done, nil
}
