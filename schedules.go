package durable

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/schedule"
	"github.com/seed8ec063be/durable/internal/store"
)

// ScheduleInfo describes a schedule. The times in a ScheduleInfo are in UTC.
type ScheduleInfo struct {
	Name string
	// Schedule is the schedule that applies: Set, or Declared if Set is nil. The Input of the Schedule is a [jsontext.Value].
	Schedule Schedule
	// Declared is the schedule that code declares in Config.Schedules. Declared is nil if no code declares the schedule.
	Declared        *Schedule
	DeclaredVersion string // the Config.Version of the code that declares the schedule
	DeclaredAt      time.Time
	// Set is the schedule that [Engine.SetSchedule] has set. Set is nil if SetSchedule has set none.
	Set                *Schedule
	SetAt              time.Time
	SetBy              string
	SetReason          string
	PausedAt           time.Time // zero if the schedule is not paused
	PausedBy           string
	PauseReason        string
	LastChange         *OperatorChange
	Next               []time.Time    // the next scheduled times, at most five; none while the schedule is paused
	WaitingAt          time.Time      // the scheduled time that waits for the end of the previous run, or zero; see OverlapWait
	LastFires          []ScheduleFire // the latest fires, at most five, the newest first
	Problem            string         // why the schedule cannot start runs; empty if it can
	DeclaredButDeleted bool           // DeleteSchedule deleted the schedule, and code still declares it; the schedule does not fire
}

// ScheduleFire records what happened at one scheduled time of a schedule, or at a trigger.
type ScheduleFire struct {
	Cursor    string    // the position of the fire: pass Cursor to ScheduleFires to continue after this fire
	At        time.Time // the scheduled time; for a trigger, the time of the call
	FiredAt   time.Time // when a process decided the outcome
	Kind      FireKind
	Outcome   FireOutcome
	ID        string // the ID of the run; empty if no run was started
	RunStatus Status // empty if no run was started, or the run was deleted
}

// FireKind tells why a schedule fired: at a scheduled time, by a trigger or by a backfill.
type FireKind string

// The values of ScheduleFire.Kind.
const (
	FireScheduled FireKind = "scheduled" // a scheduled time came
	FireTriggered FireKind = "triggered" // [Engine.TriggerSchedule] was called
	FireBackfill  FireKind = "backfill"  // [Engine.Backfill] was called for the scheduled time
)

// FireOutcome tells what happened at a scheduled time of a schedule.
type FireOutcome string

// The values of ScheduleFire.Outcome.
const (
	FireStarted  FireOutcome = "started"
	FireWaiting  FireOutcome = "waiting"  // the run waits for the end of the previous run; see [OverlapWait] and [OverlapCancel]
	FireSkipped  FireOutcome = "skipped"  // the previous run had not ended; see [OverlapSkip]
	FireReplaced FireOutcome = "replaced" // the scheduled time waited, and a newer scheduled time replaced it
	FireMissed   FireOutcome = "missed"   // the scheduled time, and all scheduled times up to the next fire, were longer ago than Schedule.CatchUp
	FireFailed   FireOutcome = "failed"   // no run was started, because another run already had the ID of the scheduled run
)

// maxShownTimes is how many times and fires ScheduleInfo has.
const maxShownTimes = 5

// SetSchedule creates or changes a schedule. The new schedule takes effect within about Config.Poll, and replaces the
// declaration in code until [Engine.ResetSchedule]. If SetSchedule changes the scheduled times, scheduled times before the
// change start no runs, even if they are due.
//
// The options of SetSchedule are [Reason] and [Actor]. SetSchedule returns [ErrInvalidConfig], [ErrInvalidName],
// [ErrNotEncodable] or [ErrPayloadTooLarge] for an invalid schedule; the error names the field and the fix. If this engine
// executes the workflow, SetSchedule also checks that the workflow can decode the input. SetSchedule returns [ErrSchema] while
// a running worker has a version of durable that ignores schedules, and a [*WriteError] as [Workflow.Start] does.
func (e *Engine) SetSchedule(ctx context.Context, s Schedule, opts ...ControlOption) error {
	return e.changeSchedule(ctx, "set", s.Name, opts, func(o *controlOptions) error {
		settings, err := s.toStoredSettings(&e.cfg)
		if err != nil {
			return err
		}
		return e.inner.SetSchedule(ctx, s.Name, settings, o.actor, o.reason)
	})
}

// ResetSchedule removes the schedule that SetSchedule has set, or undoes a deletion by DeleteSchedule, so that the schedule
// that code declares applies. ResetSchedule returns [ErrNotFound] if there is no such schedule, [ErrState] if no code declares
// the schedule, and [ErrSchema] as SetSchedule does. The options of ResetSchedule are [Reason] and [Actor].
func (e *Engine) ResetSchedule(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeSchedule(ctx, "reset", name, opts, func(o *controlOptions) error {
		return e.inner.ResetSchedule(ctx, name, o.actor, o.reason)
	})
}

// PauseSchedule pauses a schedule: until [Engine.ResumeSchedule], only [Engine.TriggerSchedule] and [Engine.Backfill] start
// runs of the schedule. Runs that the schedule has started continue. PauseSchedule does nothing if the schedule is paused.
// PauseSchedule returns [ErrNotFound] if there is no such schedule. The options of PauseSchedule are [Reason] and [Actor].
func (e *Engine) PauseSchedule(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeSchedule(ctx, "pause", name, opts, func(o *controlOptions) error {
		return e.inner.PauseSchedule(ctx, name, o.actor, o.reason)
	})
}

// ResumeSchedule resumes a paused schedule. A resumed schedule starts its next run at the first scheduled time after the
// resume. Scheduled times that came during the pause start no runs, except by [Engine.Backfill]. ResumeSchedule returns
// [ErrNotFound] if there is no such schedule, and [ErrState] if the schedule is not paused. The options of ResumeSchedule are
// [Reason] and [Actor].
func (e *Engine) ResumeSchedule(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeSchedule(ctx, "resume", name, opts, func(o *controlOptions) error {
		return e.inner.ResumeSchedule(ctx, name, o.actor, o.reason)
	})
}

// DeleteSchedule deletes a schedule, and the records of its fires. Runs that the schedule has started continue. If code
// declares the schedule, the schedule stays deleted until [Engine.SetSchedule] or [Engine.ResetSchedule], and the records of
// its fires stay. DeleteSchedule returns [ErrNotFound] if there is no such schedule. The options of DeleteSchedule are [Reason]
// and [Actor].
func (e *Engine) DeleteSchedule(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeSchedule(ctx, "delete", name, opts, func(o *controlOptions) error {
		return e.inner.DeleteSchedule(ctx, name, o.actor, o.reason)
	})
}

// TriggerSchedule starts a run of the schedule now, and returns the ID of the run. TriggerSchedule starts the run even if the
// schedule is paused, and whatever the schedule's Overlap is. The ID of the run contains the time of the call, to the
// microsecond. If you repeat a call whose reply was lost, two runs may be started. TriggerSchedule returns [ErrNotFound] if
// there is no such schedule. The options of TriggerSchedule are [Reason] and [Actor]: with a Reason or an Actor, an [Event] of
// the run records who started it.
func (e *Engine) TriggerSchedule(ctx context.Context, name string, opts ...ControlOption) (id string, err error) {
	err = e.changeSchedule(ctx, "trigger", name, opts, func(o *controlOptions) (err error) {
		id, err = e.inner.TriggerSchedule(ctx, name, o.actorAndReason())
		return err
	})
	return id, err
}

// BackfillResult is the result of [Engine.Backfill].
type BackfillResult struct {
	Started      int // the number of runs that Backfill started
	AlreadyFired int // the number of scheduled times that had already started a run, or whose run waits to start
	IDTaken      int // the number of scheduled times whose run ID belongs to another run
}

// Backfill starts the runs of scheduled times that have not started a run. A scheduled time has started no run if it was
// missed, skipped or replaced, or if it came while the schedule was paused or did not exist yet. Backfill considers the
// scheduled times t with from <= t < to, by the schedule's current settings. A scheduled time whose run was deleted by
// retention counts as started. Backfill skips scheduled times for which the schedule itself has not decided yet whether to
// start a run. Backfill starts its runs at once, 100 per transaction, whatever the schedule's Overlap is. To spread the runs of
// a Backfill, use a queue with settings.
//
// If Backfill returns an error, its result counts the scheduled times that Backfill handled before the error, and Backfill can
// be called again. Backfill returns [ErrNotFound] if there is no such schedule, and [ErrInvalidConfig] if to is not after from.
// The options of Backfill are [Reason] and [Actor]: with a Reason or an Actor, an [Event] of each run records who started it.
func (e *Engine) Backfill(ctx context.Context, name string, from, to time.Time, opts ...ControlOption) (done BackfillResult, err error) {
	err = e.changeSchedule(ctx, "backfill", name, opts, func(o *controlOptions) error {
		if !from.Before(to) || from.IsZero() {
			return fmt.Errorf("%w: Backfill from %v to %v: from must be set, and to must be after it", ErrInvalidConfig, from, to)
		}
		inner, err := e.inner.Backfill(ctx, name, from, to, o.actorAndReason())
		done = BackfillResult(inner)
		return err
	})
	return done, err
}

// changeSchedule checks the arguments, and translates the error.
func (e *Engine) changeSchedule(ctx context.Context, verb, name string, opts []ControlOption, change func(*controlOptions) error) error {
	if err := e.checkUsableOutsideWorkflow(ctx, "a change of a schedule", "a step"); err != nil {
		return fmt.Errorf("%s schedule %q: %w", verb, name, err)
	}
	o, err := applyActorReasonOptions("a change of a schedule", opts)
	if err == nil {
		err = checkScheduleName(name)
	}
	if err == nil {
		err = change(&o)
	}
	return convertScheduleError(verb, name, err)
}

func convertScheduleError(verb, name string, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrInvalidConfig), errors.Is(err, ErrInvalidName):
		return err
	case errors.Is(err, schedule.ErrNotFound):
		return fmt.Errorf("%w: there is no schedule %q in this database", ErrNotFound, name)
	case errors.Is(err, schedule.ErrNotPaused):
		return fmt.Errorf("%w: cannot resume schedule %q: it is not paused", ErrState, name)
	case errors.Is(err, schedule.ErrNotDeclared):
		return fmt.Errorf("%w: cannot reset schedule %q: no code declares it in Config.Schedules: use DeleteSchedule to remove it", ErrState, name)
	}
	return fmt.Errorf("%s schedule %q: %w", verb, name, err)
}

// Schedules returns all schedules, ordered by name, with their next times and latest fires.
func (e *Engine) Schedules(ctx context.Context) ([]ScheduleInfo, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	const page = 500
	var all []ScheduleInfo
	for after := ""; ; {
		rows, err := e.inner.Store().Schedules(ctx, after, page)
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		for i := range rows {
			info, err := e.scheduleInfo(ctx, &rows[i])
			if err != nil {
				return nil, err
			}
			all = append(all, *info)
		}
		if len(rows) < page {
			return all, nil
		}
		after = rows[len(rows)-1].Name
	}
}

// ScheduleFires returns a page of the fires of a schedule before p.Cursor, the newest first. The cursor is the
// [ScheduleFire.Cursor] of a fire; with an empty cursor, ScheduleFires starts at the newest fire. The latest 1000 fires of a
// schedule are kept. Older fires are kept only if they started a run, so that [Engine.Backfill] does not start it again.
//
// ScheduleFires returns [ErrNotFound] if there is no such schedule, [ErrInvalidName], [ErrInvalidCursor] for a text that is no
// cursor, and [ErrInvalidConfig] for a limit that is not from 0 to 1000.
func (e *Engine) ScheduleFires(ctx context.Context, name string, p Page) ([]ScheduleFire, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("fires of schedule %q: %w", name, err)
	}
	if err := checkScheduleName(name); err != nil {
		return nil, err
	}
	limit, err := p.entryLimit()
	if err != nil {
		return nil, err
	}
	var before time.Time
	if p.Cursor != "" {
		if before, err = time.Parse(time.RFC3339Nano, p.Cursor); err != nil || fireCursor(before) != p.Cursor {
			return nil, fmt.Errorf("%w: %.40q: pass the Cursor of a ScheduleFire", ErrInvalidCursor, p.Cursor)
		}
	}
	fires, err := e.readFires(ctx, name, before, limit)
	if err != nil || len(fires) > 0 {
		return fires, err
	}
	row, err := e.inner.Store().ScheduleByName(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("fires of schedule %q: %w", name, err)
	}
	if row == nil {
		return nil, convertScheduleError("", name, schedule.ErrNotFound)
	}
	return fires, nil
}

func (e *Engine) readFires(ctx context.Context, name string, before time.Time, limit int) ([]ScheduleFire, error) {
	rows, err := e.inner.Store().LatestScheduleFires(ctx, name, before, limit)
	if err != nil {
		return nil, fmt.Errorf("fires of schedule %q: %w", name, err)
	}
	fires := make([]ScheduleFire, len(rows))
	for i, f := range rows {
		fires[i] = ScheduleFire{Cursor: fireCursor(f.At), At: f.At, FiredAt: f.FiredAt, Kind: FireKind(f.Kind.String()), Outcome: FireOutcome(f.Outcome.String())}
		if f.Run.Valid {
			fires[i].ID = schedule.RunID(name, f.At)
		}
		if f.RunStatus != 0 {
			fires[i].RunStatus = Status(f.RunStatus.String())
		}
	}
	return fires, nil
}

// fireCursor returns the cursor of a fire, which is its time: a schedule fires at most once at each time.
func fireCursor(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

func (e *Engine) scheduleInfo(ctx context.Context, row *store.Schedule) (*ScheduleInfo, error) {
	s, err := schedule.DecodeState(row)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	info := &ScheduleInfo{
		Name: row.Name, Declared: toPublicSchedule(row.Name, s.Declared), DeclaredVersion: s.DeclaredVersion, DeclaredAt: s.DeclaredAt,
		Set: toPublicSchedule(row.Name, s.Operator), SetAt: s.SetAt, SetBy: s.SetBy, SetReason: s.SetReason,
		PausedAt: s.PausedAt, PausedBy: s.PausedBy, PauseReason: s.PauseReason, LastChange: newOperatorChange(s.LastChange), WaitingAt: row.WaitingAt, Problem: s.Problem, DeclaredButDeleted: s.Deleted,
	}
	if applies := s.Effective(); applies != nil {
		info.Schedule = *toPublicSchedule(row.Name, applies)
		if t, err := applies.Timetable(row.Name); err == nil && !s.Paused() {
			for at := s.NextTime; !at.IsZero() && len(info.Next) < maxShownTimes; at = t.NextAfter(at) {
				info.Next = append(info.Next, at)
			}
		}
	}
	info.LastFires, err = e.readFires(ctx, row.Name, time.Time{}, maxShownTimes)
	return info, err
}

func toPublicSchedule(name string, s *schedule.Settings) *Schedule {
	if s == nil {
		return nil
	}
	return &Schedule{
		Name: name, Cron: s.Cron, Every: time.Duration(s.Every), Location: s.Location, Workflow: s.Workflow, Queue: s.Queue,
		Priority: int(s.Priority), GroupKey: s.GroupKey, Weight: int(s.Weight), Input: jsontext.Value(s.Input), Timeout: time.Duration(s.Timeout), Tags: s.Tags,
		Overlap: Overlap(s.Overlap), CatchUp: time.Duration(s.CatchUp), Jitter: time.Duration(s.Jitter),
	}
}
