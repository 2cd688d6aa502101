package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// MaxScheduleName is the longest name of a schedule, in bytes. An ID made of it and a time is a valid run ID.
const MaxScheduleName = 480

// KeptFires is how many fires of a schedule a store keeps in full: those of the latest times. For each older time it
// keeps one bit, which tells whether a run was started.
const KeptFires = 1000

// CompactFiresAt is the number of fires at which a store compacts the oldest fires of a schedule into bits, so that KeptFires remain.
const CompactFiresAt = KeptFires + 100

// ScheduleStore keeps the schedules of one database. Every Store implements it.
type ScheduleStore interface {
	// DueSchedules returns the names of up to limit schedules that have something to do at the time now: their NextAt has
	// come, or the wait for their last run is over, or that run is still to be cancelled. next is when the next of the others is due;
	// zero means none is.
	DueSchedules(ctx context.Context, now time.Time, limit int) (due []string, next time.Time, err error)

	// ChangeSchedule locks one schedule, lets u.Plan decide, and writes the result, all in one transaction. It starts the runs,
	// records what happened at each time, and writes the row. It reads the row again if the transaction is retried.
	ChangeSchedule(ctx context.Context, u *ScheduleChangeRequest) error

	// Schedules returns up to limit schedules whose names are after the given one, ordered by name.
	Schedules(ctx context.Context, after string, limit int) ([]Schedule, error)

	// ScheduleByName returns the schedule, or nil if there is none.
	ScheduleByName(ctx context.Context, name string) (*Schedule, error)

	// LatestScheduleFires returns what happened at the latest times of a schedule before the given one, the newest first. A zero time is later than
	// all others.
	LatestScheduleFires(ctx context.Context, schedule string, before time.Time, limit int) ([]ScheduleFire, error)
}

// Schedule is one row of the schedule table. A zero time.Time stands for NULL in the database.
type Schedule struct {
	Name  string
	State []byte // the settings, and what else the engine records; in the engine's encoding, which is a JSON object
	// NextAt is when the next scheduled time is due. It is zero while the schedule is paused or has no further time.
	NextAt    time.Time
	WaitingAt time.Time // the scheduled time that waits for the end of LastRun; zero: none
	LastRun   uuid.NullUUID
	Paused    bool
	// CancelsLastRun reports that LastRun is to be cancelled, because a newer scheduled time waits for its end.
	CancelsLastRun bool
	// FireCount is the number of fires that are kept in full. Stores count them.
	FireCount int
}

// ScheduleChangeRequest changes one schedule.
type ScheduleChangeRequest struct {
	Name string
	// SkipLocked makes ChangeSchedule return without a change if another transaction has locked the row. Otherwise it waits.
	SkipLocked bool
	// TimesToDecide returns the times that Plan decides, and may be nil. ChangeSchedule calls it with the locked row.
	TimesToDecide func(row *Schedule) []time.Time
	// Plan returns the changes to write, or nil if nothing changes. Plan must not wait, and may be called several times. It is called
	// again if ScheduleState.NeedsReplanForTakenID says so.
	Plan func(s ScheduleState) *ScheduleWrite

	// Act is recorded in an event of each run that is started, or of the deletion of the row.
	Act ActorAndReason

	// Found reports whether the row existed. It is also false if the row was locked and SkipLocked is true.
	Found bool
	// AppliedWrite is the ScheduleWrite that Plan returned, with the outcomes of its starts. AppliedWrite is nil if nothing was written.
	AppliedWrite *ScheduleWrite
}

// ScheduleState is the argument of ScheduleChangeRequest.Plan: the rows that it decides about.
type ScheduleState struct {
	Row        *Schedule          // nil: there is none
	FiredTimes map[time.Time]bool // those of the Times at which a run was started, or which wait; keys are in UTC
	// LastStatus and LastControl are the status and the control bits of the run Row.LastRun. They are zero if that run
	// no longer exists.
	LastStatus  Status
	LastControl ControlBits
	// TakenIDs are the runs that have the IDs of runs of this schedule, by the scheduled times. It holds only those that an earlier
	// call of Plan in the same transaction has tried to start; keys are in UTC.
	TakenIDs map[time.Time]uuid.UUID
}

// NeedsReplanForTakenID reports whether Plan must be called again after the starts of w: the run that was to become the last one was not started,
// because its ID is taken, although later fires were decided as if it had been. Stores call it after SetOutcomesFromStarts.
func (s *ScheduleState) NeedsReplanForTakenID(w *ScheduleWrite) bool {
	i := w.LastRunFire
	if i < 0 || i >= len(w.Fires)-1 || w.Fires[i].Outcome != FireFailed || slices.ContainsFunc(w.Fires, func(f ScheduleFire) bool { return f.Start != nil && f.Outcome == FireStarted }) {
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

// ScheduleWrite is what a ScheduleChangeRequest writes.
type ScheduleWrite struct {
	Row    Schedule       // the new row; the store ignores Row.FireCount
	Delete bool           // the row is deleted, with its fires
	Fires  []ScheduleFire // in the order of their times, each time once
	// LastRunFire is an index into Fires. If the store starts the run of the fire at this index, the run becomes Row.LastRun.
	// LastRunFire is -1 if Row.LastRun stays as it is.
	LastRunFire int
}

// FireKind tells why a schedule started a run: at a scheduled time, by a trigger, or by a backfill. The numbers are stored.
type FireKind int16

// The kinds of fires.
const (
	FireScheduled FireKind = 1
	FireTriggered FireKind = 2
	FireBackfill  FireKind = 3
)

// FireOutcome tells what happened at a scheduled time. The numbers are stored.
type FireOutcome int16

// The outcomes of fires.
const (
	FireStarted  FireOutcome = 1
	FireWaiting  FireOutcome = 2 // until the last run has ended
	FireSkipped  FireOutcome = 3 // the last run had not ended
	FireReplaced FireOutcome = 4 // it waited, and a newer time replaced it
	FireMissed   FireOutcome = 5 // it was too long ago; so were the times after it, up to the next fire
	FireFailed   FireOutcome = 6 // the ID of its run was taken
)

var fireOutcomes = [...]string{"unknown", "started", "waiting", "skipped", "replaced", "missed", "failed"}

// String returns the word that views, logs and metrics use.
func (o FireOutcome) String() string {
	if o < 0 || int(o) >= len(fireOutcomes) {
		return fireOutcomes[0]
	}
	return fireOutcomes[o]
}

var fireKinds = [...]string{"unknown", "scheduled", "triggered", "backfill"}

// String returns the word that views and logs use.
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
	// Start is the run to start, for an Outcome of FireStarted. If its ID is taken, the Outcome becomes FireFailed, and Run
	// is the run that has the ID.
	Start *StartWrite

	RunStatus Status // set by Store.Fires; zero: there is no such run any more
}

// SetOutcomesFromStarts sets the outcomes of the fires from those of their starts, Row.LastRun, and Row.FireCount. Stores call it after they have
// inserted the runs. before is the row as it was, or nil if there was none.
func (w *ScheduleWrite) SetOutcomesFromStarts(before *Schedule) {
	w.Row.FireCount = len(w.Fires)
	if before != nil {
		w.Row.FireCount += before.FireCount
	}
	for i := range w.Fires {
		f := &w.Fires[i]
		if f.Start == nil {
			continue
		}
		f.Run = uuid.NullUUID{UUID: f.Start.Run.UUID, Valid: true}
		if f.Start.Outcome == Adopted {
			f.Outcome, f.Run = FireFailed, uuid.NullUUID{UUID: f.Start.Existing.UUID, Valid: true}
		} else if i == w.LastRunFire {
			w.Row.LastRun = f.Run
		}
	}
}

// Events returns the events of an applied write: one for each run that a trigger or a backfill has started, or one for a deletion. There
// are none without an actor and a reason.
func (c *ScheduleChangeRequest) Events(w *ScheduleWrite) (events []Event) {
	types := map[FireKind]EventType{FireTriggered: EventTriggered, FireBackfill: EventBackfilled}
	switch {
	case !c.Act.HasActorOrReason():
	case w.Delete:
		events = append(events, Event{Type: EventScheduleDeleted, Run: NoRun, Old: c.Name})
	default:
		for i := range w.Fires {
			if f := &w.Fires[i]; f.Start != nil && f.Outcome == FireStarted && types[f.Kind] != 0 {
				events = append(events, Event{Type: types[f.Kind], Run: f.Run.UUID, New: c.Name})
			}
		}
	}
	return events
}

// Starts returns the starts of the fires.
func (w *ScheduleWrite) Starts() (starts []*StartWrite) {
	for i := range w.Fires {
		if s := w.Fires[i].Start; s != nil {
			starts = append(starts, s)
		}
	}
	return starts
}

// compactedFiresPeriod is the length of the time that one row of compacted fires describes.
const compactedFiresPeriod = time.Hour

// BitOfFireTime returns the hour that contains a scheduled time, and the index of its bit in the record of that hour. The record
// has one bit for each second of the hour, because scheduled times are whole seconds.
func BitOfFireTime(at time.Time) (hour time.Time, bit int) {
	hour = at.UTC().Truncate(compactedFiresPeriod)
	return hour, int(at.Sub(hour) / time.Second)
}

// CanBeCompacted reports whether the fire is recorded as a bit when it is compacted, because a run was started at a scheduled time.
func (f *ScheduleFire) CanBeCompacted() bool {
	return f.Outcome == FireStarted && f.Kind != FireTriggered
}

// SetBit sets a bit in the record of an hour of compacted fires, and enlarges the record if necessary.
func SetBit(bits []byte, bit int) []byte {
	for len(bits) <= bit/8 {
		bits = append(bits, 0)
	}
	bits[bit/8] |= 1 << (bit % 8)
	return bits
}

// HasBit reports whether a bit is set in the bitmap that records the compacted fires of one hour.
func HasBit(bits []byte, bit int) bool { return bit/8 < len(bits) && bits[bit/8]&(1<<(bit%8)) != 0 }
