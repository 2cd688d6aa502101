package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// MaxScheduleName is the maximal length of a schedule's name, in bytes. A run ID that consists of such a name and a time is short enough to
// be valid.
const MaxScheduleName = 480

// FiresKeptInFull is how many fires of a schedule, beginning with the latest, a store keeps in full. For each older fire, the store keeps one
// bit, which tells whether a run was started.
const FiresKeptInFull = 1000

// CompactFiresAtCount is the number of fires at which a store compacts the oldest fires of a schedule into bits, so that FiresKeptInFull
// remain.
const CompactFiresAtCount = FiresKeptInFull + 100

// ScheduleStore keeps the schedules of one database. Every Store is also a ScheduleStore.
type ScheduleStore interface {
	// DueSchedules returns the names of up to limit schedules that are due at the time now. A schedule is due if its NextAt has come, if it
	// waits for the end of its last run and that run has ended, or if its last run is still to be cancelled. The result next is the
	// earliest NextAt of the other schedules, or zero if no other schedule has a NextAt.
	DueSchedules(ctx context.Context, now time.Time, limit int) (due []string, next time.Time, err error)

	// ChangeSchedule locks one schedule, calls u.Plan, and writes what Plan returns, all in one transaction. ChangeSchedule starts runs,
	// records what happened at each scheduled time, and writes the row of the schedule. ChangeSchedule reads the row again if the
	// transaction is retried.
	ChangeSchedule(ctx context.Context, u *ScheduleChangeRequest) error

	// Schedules returns up to limit schedules, ordered by name, beginning after the given name.
	Schedules(ctx context.Context, after string, limit int) ([]Schedule, error)

	// ScheduleByName returns the schedule with the given name, or nil if there is none.
	ScheduleByName(ctx context.Context, name string) (*Schedule, error)

	// LatestScheduleFires returns the latest fires of a schedule before the given time, newest first. If the given time is zero, it returns
	// the latest of all fires.
	LatestScheduleFires(ctx context.Context, schedule string, before time.Time, limit int) ([]ScheduleFire, error)
}

// Schedule is one row of the schedule table. In a Schedule, a zero time.Time stands for NULL in the database.
type Schedule struct {
	Name  string
	State []byte // the settings, and what else the engine records; in the engine's encoding, which is a JSON object
	// NextAt is when the schedule is due next. NextAt is zero while the schedule is paused, or if the schedule has no further
	// scheduled time.
	NextAt    time.Time
	WaitingAt time.Time // the scheduled time that waits for the end of LastRun; zero: none
	LastRun   uuid.NullUUID
	Paused    bool
	// CancelsLastRun says that LastRun is to be cancelled, because the start for a newer scheduled time waits for the end of LastRun.
	CancelsLastRun bool
	// FireCount is the number of fires of the schedule that the store has not compacted into bits yet; see CompactFiresAtCount. Only stores
	// set FireCount.
	FireCount int
}

// ScheduleChangeRequest changes one schedule.
type ScheduleChangeRequest struct {
	Name string
	// SkipLocked makes ChangeSchedule return without a change if another transaction has locked the schedule's row. If SkipLocked is false,
	// ChangeSchedule waits for the lock.
	SkipLocked bool
	// TimesToDecide returns the scheduled times about which Plan decides. TimesToDecide may be nil. ChangeSchedule calls TimesToDecide with
	// the locked row.
	TimesToDecide func(row *Schedule) []time.Time
	// Plan returns the changes to write, or nil if nothing changes. Plan must not wait, and may be called several times. ChangeSchedule
	// calls Plan again if ScheduleSnapshot.NeedsReplanForTakenID reports true.
	Plan func(s ScheduleSnapshot) *ScheduleWrite

	// ActorAndReason is recorded in the event of each run that the change starts, or in the event of the deletion of the schedule.
	ActorAndReason ActorAndReason

	// Found reports whether the schedule's row existed. Found is also false if SkipLocked is true and the row was locked.
	Found bool
	// AppliedWrite is the ScheduleWrite that Plan returned, with the outcomes of its starts. AppliedWrite is nil if ChangeSchedule has
	// written nothing.
	AppliedWrite *ScheduleWrite
}

// ScheduleSnapshot is the argument of ScheduleChangeRequest.Plan, and holds the rows that Plan needs for its decision.
type ScheduleSnapshot struct {
	Row        *Schedule          // nil: there is none
	FiredTimes map[time.Time]bool // those times of TimesToDecide for which a run was started or a start waits; keys are in UTC
	// LastStatus and LastControl are the status and the control bits of the run Row.LastRun. LastStatus and LastControl are zero if that
	// run no longer exists.
	LastStatus  Status
	LastControl ControlBits
	// TakenIDs maps a scheduled time in UTC to the UUID of the existing run that already has the ID of the run to start at that time.
	// TakenIDs contains only scheduled times for which an earlier call of Plan in the same transaction has tried to start a run.
	TakenIDs map[time.Time]uuid.UUID
}

// NeedsReplanForTakenID reports whether Plan must be called again after the starts of w. Plan assumes that the run of w.LastRunFireIndex is
// started and becomes LastRun, and decides the fires after it on this assumption. If that run was not started, because its ID is taken,
// these decisions are wrong, and Plan must be called again, unless another run of w was started. Stores call NeedsReplanForTakenID after
// SetOutcomesFromStarts.
func (s *ScheduleSnapshot) NeedsReplanForTakenID(w *ScheduleWrite) bool {
	i := w.LastRunFireIndex
	if i < 0 || i >= len(w.Fires)-1 || w.Fires[i].Outcome != FireFailed || slices.ContainsFunc(w.Fires, func(f ScheduleFire) bool { return f.RunToStart != nil && f.Outcome == FireStarted }) {
		return false
	}
	at := w.Fires[i].At.UTC()
	if _, known := s.TakenIDs[at]; known {
		return false
	}
	if s.TakenIDs == nil {
		s.TakenIDs = make(map[time.Time]uuid.UUID)
	}
	s.TakenIDs[at] = w.Fires[i].Run.UUID
	return true
}

// ScheduleWrite holds what a ScheduleChangeRequest writes.
type ScheduleWrite struct {
	Row    Schedule       // the new row; the store ignores Row.FireCount
	Delete bool           // the row is deleted, with its fires
	Fires  []ScheduleFire // in the order of their times; no two fires have the same time
	// LastRunFireIndex is an index into Fires. If the store starts the run of the fire with the index LastRunFireIndex, that run becomes
	// Row.LastRun. LastRunFireIndex is -1 if Row.LastRun stays as it is.
	LastRunFireIndex int
}

// FireKind tells why a schedule started a run: at a scheduled time, by a trigger, or by a backfill. The database stores the numbers of
// FireKind constants.
type FireKind int16

// The kinds of fires.
const (
	FireScheduled FireKind = 1
	FireTriggered FireKind = 2
	FireBackfill  FireKind = 3
)

// FireOutcome tells what happened at a scheduled time. The database stores the numbers of FireOutcome constants.
type FireOutcome int16

// The outcomes of fires.
const (
	FireStarted  FireOutcome = 1
	FireWaiting  FireOutcome = 2 // until the last run has ended
	FireSkipped  FireOutcome = 3 // the last run had not ended
	FireReplaced FireOutcome = 4 // it waited, and a newer time replaced it
	FireMissed   FireOutcome = 5 // it was too long ago, and so were the scheduled times between it and the next fire
	FireFailed   FireOutcome = 6 // the ID of its run was taken
)

var fireOutcomes = [...]string{"unknown", "started", "waiting", "skipped", "replaced", "missed", "failed"}

// String returns the word for the outcome that views, logs and metrics use.
func (o FireOutcome) String() string {
	if o < 0 || int(o) >= len(fireOutcomes) {
		return fireOutcomes[0]
	}
	return fireOutcomes[o]
}

var fireKinds = [...]string{"unknown", "scheduled", "triggered", "backfill"}

// String returns the word for the kind that views and logs use.
func (k FireKind) String() string {
	if k < 0 || int(k) >= len(fireKinds) {
		return fireKinds[0]
	}
	return fireKinds[k]
}

// ScheduleFire records what happened at one time of a schedule.
type ScheduleFire struct {
	Schedule string
	At       time.Time // the scheduled time, or when the trigger was called
	FiredAt  time.Time // when it was decided
	Kind     FireKind
	Outcome  FireOutcome
	Run      uuid.NullUUID // the run that was started, or that has its ID
	// RunToStart is the run to start if Outcome is FireStarted. If the ID of that run is taken, Outcome becomes FireFailed, and Run is the
	// existing run that has the ID.
	RunToStart *StartWrite

	RunStatus Status // set by LatestScheduleFires; zero: the run does not exist any more
}

// SetOutcomesFromStarts sets the outcome of each fire from the outcome of its start, and also sets Row.LastRun and Row.FireCount. Stores
// call SetOutcomesFromStarts after they have inserted the runs. The argument before is the row before the change, or nil if there was none.
func (w *ScheduleWrite) SetOutcomesFromStarts(before *Schedule) {
	w.Row.FireCount = len(w.Fires)
	if before != nil {
		w.Row.FireCount += before.FireCount
	}
	for i := range w.Fires {
		f := &w.Fires[i]
		if f.RunToStart == nil {
			continue
		}
		f.Run = uuid.NullUUID{UUID: f.RunToStart.Run.UUID, Valid: true}
		if f.RunToStart.Outcome == AlreadyRecorded {
			f.Outcome, f.Run = FireFailed, uuid.NullUUID{UUID: f.RunToStart.ExistingRun.UUID, Valid: true}
		} else if i == w.LastRunFireIndex {
			w.Row.LastRun = f.Run
		}
	}
}

// Events returns the events of an applied write: one for each run that a trigger or a backfill has started, or one for a deletion. Events
// returns no events if the change has neither an actor nor a reason.
func (c *ScheduleChangeRequest) Events(w *ScheduleWrite) (events []Event) {
	types := map[FireKind]EventType{FireTriggered: EventTriggered, FireBackfill: EventBackfilled}
	switch {
	case !c.ActorAndReason.HasActorOrReason():
	case w.Delete:
		events = append(events, Event{Type: EventScheduleDeleted, Run: NoRun, OldValue: c.Name})
	default:
		for i := range w.Fires {
			if f := &w.Fires[i]; f.RunToStart != nil && f.Outcome == FireStarted && types[f.Kind] != 0 {
				events = append(events, Event{Type: types[f.Kind], Run: f.Run.UUID, NewValue: c.Name})
			}
		}
	}
	return events
}

// Starts returns the StartWrite of each fire that has a run to start.
func (w *ScheduleWrite) Starts() (starts []*StartWrite) {
	for i := range w.Fires {
		if s := w.Fires[i].RunToStart; s != nil {
			starts = append(starts, s)
		}
	}
	return starts
}

// compactedFiresPeriod is the length of the time that one row of compacted fires describes.
const compactedFiresPeriod = time.Hour

// HourAndBitOfFireTime returns the hour that contains a scheduled time, and the index of the time's bit in the record of that hour. The record of
// an hour has one bit for each second, because scheduled times are whole seconds.
func HourAndBitOfFireTime(at time.Time) (hour time.Time, bit int) {
	hour = at.UTC().Truncate(compactedFiresPeriod)
	return hour, int(at.Sub(hour) / time.Second)
}

// CanBeCompacted reports whether a store may replace the row of the fire by a bit, because a run was started at a scheduled time.
func (f *ScheduleFire) CanBeCompacted() bool {
	return f.Outcome == FireStarted && f.Kind != FireTriggered
}

// SetBit sets a bit in the bitmap that records the compacted fires of one hour, and enlarges the bitmap if necessary.
func SetBit(bits []byte, bit int) []byte {
	for len(bits) <= bit/8 {
		bits = append(bits, 0)
	}
	bits[bit/8] |= 1 << (bit % 8)
	return bits
}

// HasBit reports whether a bit is set in the bitmap that records the compacted fires of one hour.
func HasBit(bits []byte, bit int) bool { return bit/8 < len(bits) && bits[bit/8]&(1<<(bit%8)) != 0 }
