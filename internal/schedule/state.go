package schedule

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// State is what store.Schedule.State holds.
type State struct {
	Declared         *Settings `json:"declared,omitzero"`         // by code
	DeclaredVersion  string    `json:"declared_version,omitzero"` // of the program
	DeclaredAt       time.Time `json:"declared_at,omitzero"`
	DeclarerStarted  time.Time `json:"declarer_started_at,omitzero"` // when the declaring worker started
	DeclaredVersions []string  `json:"declared_versions,omitzero"`   // every version that has declared it, the oldest first

	Operator  *Settings `json:"operator,omitzero"` // by SetSchedule; it applies instead of Declared
	SetAt     time.Time `json:"set_at,omitzero"`
	SetBy     string    `json:"set_by,omitzero"`
	SetReason string    `json:"set_reason,omitzero"`
	Deleted   bool      `json:"deleted,omitzero"` // by DeleteSchedule, although code declares it

	PausedAt    time.Time `json:"paused_at,omitzero"`
	PausedBy    string    `json:"paused_by,omitzero"`
	PauseReason string    `json:"pause_reason,omitzero"`

	Triggers []TriggerCall `json:"triggers,omitempty"` // the latest ones, the last one last; at most mostTriggers

	Backfills []BackfillPart `json:"backfills,omitempty"` // the latest ones, the last one last; at most mostBackfills

	LastChange *store.OperatorChange `json:"last_change,omitzero"` // nil: no operator has changed the schedule

	Cursor   time.Time `json:"cursor,omitzero"`    // every scheduled time up to it has been decided
	NextTime time.Time `json:"next_time,omitzero"` // the next scheduled time; zero: none, or paused
	Problem  string    `json:"problem,omitzero"`   // why the schedule cannot be fired
}

// TriggerCall is one call of TriggerSchedule.
type TriggerCall struct {
	Call string    `json:"call"` // identifies it
	At   time.Time `json:"at"`   // the time of its run
}

// BackfillPart is one transaction of a Backfill.
type BackfillPart struct {
	Call  string `json:"call"`  // identifies it
	Fires int    `json:"fires"` // how many times it fired, whether their IDs were taken or not
}

// mostTriggers and mostBackfills bound State.Triggers and State.Backfills: a call whose reply was lost is recognised unless so many
// others were made before it is tried again.
const (
	mostTriggers  = 32
	mostBackfills = 8
)

// addCall returns the calls with one more, without the oldest if they are more than most.
func addCall[T any](calls []T, c T, most int) []T {
	calls = append(slices.Clone(calls), c)
	return calls[max(0, len(calls)-most):]
}

// mostVersions bounds State.DeclaredVersions.
const mostVersions = 100

// DecodeState returns the state of a row.
func DecodeState(row *store.Schedule) (*State, error) {
	s := new(State)
	if err := json.Unmarshal(row.State, s); err != nil {
		return nil, fmt.Errorf("the row of schedule %q does not decode: %w", row.Name, err)
	}
	return s, nil
}

// ReplaceSettings returns the state of a row after f has changed its settings, for a store that encodes inputs.
func ReplaceSettings(row *store.Schedule, f func(*Settings) error) ([]byte, error) {
	s, err := DecodeState(row)
	if err != nil {
		return row.State, err
	}
	for _, set := range []*Settings{s.Declared, s.Operator} {
		if set == nil {
			continue
		}
		if err := f(set); err != nil {
			return row.State, err
		}
	}
	return json.Marshal(s)
}

// Effective returns the settings that apply, or nil if the schedule is deleted.
func (s *State) Effective() *Settings {
	switch {
	case s.Deleted:
		return nil
	case s.Operator != nil:
		return s.Operator
	default:
		return s.Declared
	}
}

// Paused reports whether the schedule is paused.
func (s *State) Paused() bool { return !s.PausedAt.IsZero() }

// Errors of plans. The root package adds the name and the fix.
var (
	ErrNotFound    = errors.New("there is no such schedule")
	ErrNotDeclared = errors.New("no code declares the schedule")
	ErrNotPaused   = errors.New("the schedule is not paused")
)

// opened is a row that a plan works on.
type opened struct {
	row            store.Schedule
	state          *State
	settingsBefore *Settings // the effective settings before the plan
}

// open returns the row of the schedule, or a new one.
func open(name string, row *store.Schedule) (*opened, error) {
	o := &opened{row: store.Schedule{Name: name}, state: new(State)}
	if row == nil {
		return o, nil
	}
	o.row = *row
	var err error
	if o.state, err = DecodeState(row); err == nil {
		o.settingsBefore = o.state.Effective()
	}
	return o, err
}

// existing is open for a schedule that must exist.
func existing(name string, row *store.Schedule) (*opened, error) {
	o, err := open(name, row)
	if err == nil && o.settingsBefore == nil {
		err = ErrNotFound
	}
	return o, err
}

// newWrite returns the changed row.
func (o *opened) newWrite(fires ...store.ScheduleFire) (*store.ScheduleWrite, error) {
	w := &store.ScheduleWrite{Row: o.row, Fires: fires, LastRunFireIndex: -1}
	effective := o.state.Effective()
	w.Row.Paused = o.state.Paused()
	w.Row.CancelsLastRun = effective != nil && effective.Overlap == OverlapCancel && !o.row.WaitingAt.IsZero() && !o.state.Paused()
	var err error
	w.Row.State, err = json.Marshal(o.state)
	return w, err
}

// recordOperatorChange records what an operator does.
func (o *opened) recordOperatorChange(verb store.OperatorVerb, now time.Time, by, reason string) {
	o.state.LastChange = &store.OperatorChange{Verb: verb, At: now, By: by, Reason: reason}
}

// updateNextTime sets the next time after the settings have changed, or after a pause. If the scheduled times have changed, those up to
// now are passed.
func (o *opened) updateNextTime(now time.Time) error {
	s := o.state.Effective()
	o.row.NextAt, o.state.NextTime, o.state.Problem = time.Time{}, time.Time{}, ""
	if s == nil {
		return nil
	}
	if !sameTimes(o.settingsBefore, s) {
		o.state.Cursor = now
	}
	t, err := s.Timetable(o.row.Name)
	if err != nil {
		return err
	}
	o.setNext(t, t.NextAfter(o.state.Cursor))
	return nil
}

// setNext sets the next scheduled time, and when it is due.
func (o *opened) setNext(t *Timetable, next time.Time) {
	o.state.NextTime, o.row.NextAt = next, t.DueAt(next)
	if o.state.Paused() {
		o.row.NextAt = time.Time{}
	}
}

// PlanSet records the settings of an operator.
func PlanSet(name string, row *store.Schedule, s *Settings, now time.Time, by, reason string) (*store.ScheduleWrite, error) {
	o, err := open(name, row)
	if err != nil {
		return nil, err
	}
	o.state.Operator, o.state.Deleted = s, false
	o.state.SetAt, o.state.SetBy, o.state.SetReason = now, by, reason
	o.recordOperatorChange(store.OperatorSet, now, by, reason)
	if err := o.updateNextTime(now); err != nil {
		return nil, err
	}
	return o.newWrite()
}

// PlanReset removes the settings of an operator, and a deletion, so that the declared settings apply.
func PlanReset(name string, row *store.Schedule, now time.Time, by, reason string) (*store.ScheduleWrite, error) {
	o, err := open(name, row)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, ErrNotFound
	case o.state.Declared == nil:
		return nil, ErrNotDeclared
	}
	o.state.Operator, o.state.Deleted = nil, false
	o.state.SetAt, o.state.SetBy, o.state.SetReason = now, by, reason
	o.recordOperatorChange(store.OperatorReset, now, by, reason)
	if err := o.updateNextTime(now); err != nil {
		return nil, err
	}
	return o.newWrite()
}

// Declaration is what one worker's code declares.
type Declaration struct {
	Settings *Settings
	Version  string
	Started  time.Time       // when the worker started
	Live     map[string]bool // the versions of the other workers that live
}

// replacesRecorded reports whether the declaration replaces the recorded one at the given time. One of the same version does if its worker
// started later, or if the other worker started after that time, by a clock that was set back since. One
// of another version does if that version is new, or if no worker of the recorded version lives. So an old worker that restarts
// during a deployment does not bring its old declaration back, and the workers of a version that was rolled back to do.
func (d *Declaration) replacesRecorded(s *State, now time.Time) bool {
	switch {
	case s.Declared == nil:
		return true
	case d.Version == s.DeclaredVersion:
		return d.Started.After(s.DeclarerStarted) || s.DeclarerStarted.After(now)
	default:
		return !slices.Contains(s.DeclaredVersions, d.Version) || !d.Live[s.DeclaredVersion]
	}
}

// IsRecorded reports whether the recorded declaration is this one.
func (d *Declaration) IsRecorded(s *State) bool {
	if s.Declared == nil || d.Version != s.DeclaredVersion {
		return false
	}
	a, err := s.Declared.Encode()
	b, err2 := d.Settings.Encode()
	return err == nil && err2 == nil && string(a) == string(b)
}

// PlanDeclare records the declaration, unless a newer one is recorded. It returns nil if nothing changes.
func PlanDeclare(name string, row *store.Schedule, d *Declaration, now time.Time) (*store.ScheduleWrite, error) {
	o, err := open(name, row)
	if err != nil || !d.replacesRecorded(o.state, now) || d.IsRecorded(o.state) {
		return nil, err
	}
	o.state.Declared, o.state.DeclaredVersion, o.state.DeclaredAt, o.state.DeclarerStarted = d.Settings, d.Version, now, d.Started
	if !slices.Contains(o.state.DeclaredVersions, d.Version) {
		o.state.DeclaredVersions = append(o.state.DeclaredVersions, d.Version)
	}
	o.state.DeclaredVersions = o.state.DeclaredVersions[max(0, len(o.state.DeclaredVersions)-mostVersions):]
	if o.state.Operator == nil {
		if err := o.updateNextTime(now); err != nil {
			return nil, err
		}
	}
	return o.newWrite()
}

// PlanPause pauses the schedule. It returns nil if the schedule is paused already.
func PlanPause(name string, row *store.Schedule, now time.Time, by, reason string) (*store.ScheduleWrite, error) {
	o, err := existing(name, row)
	if err != nil || o.state.Paused() {
		return nil, err
	}
	o.state.PausedAt, o.state.PausedBy, o.state.PauseReason = now, by, reason
	o.recordOperatorChange(store.OperatorPause, now, by, reason)
	o.row.NextAt = time.Time{}
	return o.newWrite()
}

// PlanResume continues the schedule with the first time after now.
func PlanResume(name string, row *store.Schedule, now time.Time, by, reason string) (*store.ScheduleWrite, error) {
	o, err := existing(name, row)
	switch {
	case err != nil:
		return nil, err
	case !o.state.Paused():
		return nil, ErrNotPaused
	}
	o.state.PausedAt, o.state.PausedBy, o.state.PauseReason = time.Time{}, "", ""
	o.recordOperatorChange(store.OperatorResume, now, by, reason)
	if o.state.Cursor.Before(now) {
		o.state.Cursor = now
	}
	if err := o.updateNextTime(now); err != nil {
		return nil, err
	}
	return o.newWrite()
}

// PlanDelete deletes the schedule. The row of a schedule that code declares stays, so that the next worker does not create it again.
func PlanDelete(name string, row *store.Schedule, now time.Time, by, reason string) (*store.ScheduleWrite, error) {
	o, err := existing(name, row)
	if err != nil {
		return nil, err
	}
	if o.state.Declared == nil {
		return &store.ScheduleWrite{Row: o.row, Delete: true, LastRunFireIndex: -1}, nil
	}
	s := o.state
	s.Operator, s.Deleted, s.SetAt, s.SetBy, s.SetReason = nil, true, now, by, reason
	s.PausedAt, s.PausedBy, s.PauseReason = time.Time{}, "", ""
	o.recordOperatorChange(store.OperatorDelete, now, by, reason)
	var fires []store.ScheduleFire
	if at := o.row.WaitingAt; !at.IsZero() {
		fires = append(fires, store.ScheduleFire{Schedule: name, At: at, FiredAt: now, Kind: store.FireScheduled, Outcome: store.FireSkipped})
		o.row.WaitingAt = time.Time{}
	}
	if err := o.updateNextTime(now); err != nil {
		return nil, err
	}
	return o.newWrite(fires...)
}
