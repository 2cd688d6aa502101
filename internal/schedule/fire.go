package schedule

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// MostTimes is how many scheduled times one transaction decides at most.
const MostTimes = 100

// Firing decides the times of one schedule that are due.
type Firing struct {
	Name string
	Now  time.Time
	// NewStart returns the start of the run for a scheduled time, and writes nothing.
	NewStart func(name string, s *Settings, at time.Time) *store.StartWrite
	// Check returns why no run can be started with these settings. It does not wait. If the error wraps ErrUnchecked, Plan writes
	// nothing. Nil means a run can always be started.
	Check func(name string, s *Settings) error

	Err error // why the schedule cannot be fired; set by Plan
}

// ErrUnchecked is wrapped by an error of Firing.Check that does not know yet whether runs can be started.
var ErrUnchecked = errors.New("what the schedule needs is not known")

func (f *Firing) check(s *Settings) error {
	if f.Check == nil {
		return nil
	}
	return f.Check(f.Name, s)
}

// problemRetryDelay is how long a schedule that cannot be fired is left alone.
const problemRetryDelay = time.Minute

// due returns the scheduled times that are due, at most MostTimes, and the time after them. missed is the first of the times that
// are too long ago to be made up for; zero means there is none.
func (f *Firing) due(s *Settings, t *Timetable, from time.Time) (times []time.Time, next, missed time.Time) {
	oldest := f.oldest(s, t)
	next = from
	if !next.IsZero() && next.Before(oldest) {
		missed, next = next, t.NextAfter(oldest.Add(-time.Nanosecond))
	}
	for !next.IsZero() && !t.DueAt(next).After(f.Now) && len(times) < MostTimes {
		times = append(times, next)
		next = t.NextAfter(next)
	}
	return times, next, missed
}

// oldest returns the first time that is made up for. The two durations are not added, because the sum may overflow.
func (f *Firing) oldest(s *Settings, t *Timetable) time.Time {
	return f.Now.Add(-time.Duration(s.CatchUp)).Add(-t.jitter)
}

// TimesToDecide implements store.ScheduleChangeRequest.
func (f *Firing) TimesToDecide(row *store.Schedule) []time.Time {
	o, err := existing(f.Name, row)
	if err != nil || o.state.Paused() {
		return nil
	}
	t, err := o.settingsBefore.Timetable(f.Name)
	if err != nil {
		return nil
	}
	times, _, _ := f.due(o.settingsBefore, t, o.state.NextTime)
	return times
}

// Plan implements store.ScheduleChangeRequest.
func (f *Firing) Plan(s store.ScheduleSnapshot) *store.ScheduleWrite {
	f.Err = nil
	o, err := existing(f.Name, s.Row)
	if err == ErrNotFound || err == nil && o.state.Paused() {
		return nil
	}
	if err == nil {
		err = f.check(o.settingsBefore)
	}
	if err == nil {
		var w *store.ScheduleWrite
		if w, err = f.plan(o, s); err == nil {
			return w
		}
	}
	if f.Err = err; errors.Is(err, ErrUnchecked) {
		return nil
	}
	if o.settingsBefore == nil { // the row is not readable, and stays as it is
		w := &store.ScheduleWrite{Row: *s.Row, LastRunFireIndex: -1}
		w.Row.NextAt = f.Now.Add(problemRetryDelay)
		return w
	}
	o.state.Problem, o.row.NextAt = err.Error(), f.Now.Add(problemRetryDelay)
	w, err := o.newWrite()
	if err != nil {
		return nil
	}
	return w
}

func (f *Firing) plan(o *opened, s store.ScheduleSnapshot) (*store.ScheduleWrite, error) {
	t, err := o.settingsBefore.Timetable(f.Name)
	if err != nil {
		return nil, err
	}
	times, next, missed := f.due(o.settingsBefore, t, o.state.NextTime)
	d := firePlanner{f: f, o: o, takenIDs: s.TakenIDs, lastRunIsLive: !s.LastStatus.IsTerminal() && s.LastStatus != 0, lastRunFireIndex: -1}
	if !missed.IsZero() {
		d.add(missed, store.FireMissed)
		o.state.Cursor = f.oldest(o.settingsBefore, t)
	}
	if len(times) == 0 || o.settingsBefore.Overlap != OverlapCancel { // otherwise a newer time replaces it
		d.startWaitingTime()
	}
	more := !next.IsZero() && !t.DueAt(next).After(f.Now) // left to the next transaction
	for i, at := range times {
		if !s.FiredTimes[at.UTC()] {
			d.decide(at, i == len(times)-1 && !more)
		}
		o.state.Cursor = at
	}
	if len(d.fires) == 0 && len(times) == 0 && o.state.Problem == "" && next.Equal(o.state.NextTime) {
		return nil, nil // only a run is to be cancelled
	}
	o.state.Problem = ""
	o.setNext(t, next)
	w, err := o.newWrite(d.fires...)
	if err == nil {
		w.LastRunFireIndex = d.lastRunFireIndex
	}
	return w, err
}

// firePlanner collects the fires of one transaction.
type firePlanner struct {
	f                *Firing
	o                *opened
	fires            []store.ScheduleFire
	takenIDs         map[time.Time]uuid.UUID
	lastRunIsLive    bool // the last run has not ended
	lastRunFireIndex int  // the fire whose run is the last one
}

func (d *firePlanner) add(at time.Time, outcome store.FireOutcome) {
	fire := store.ScheduleFire{Schedule: d.f.Name, At: at, FiredAt: d.f.Now, Kind: store.FireScheduled, Outcome: outcome}
	run, taken := d.takenIDs[at.UTC()]
	switch {
	case outcome == store.FireStarted && taken:
		fire.Outcome, fire.Run = store.FireFailed, uuid.NullUUID{UUID: run, Valid: true}
	case outcome == store.FireStarted:
		fire.RunToStart = d.f.NewStart(d.f.Name, d.o.settingsBefore, at)
		d.lastRunIsLive, d.lastRunFireIndex = true, len(d.fires)
	}
	d.fires = append(d.fires, fire)
}

// startWaitingTime starts the run of the time that waits, if the last run has ended, or if it need not end any more.
func (d *firePlanner) startWaitingTime() {
	if at := d.o.row.WaitingAt; !at.IsZero() && (!d.lastRunIsLive || d.o.settingsBefore.Overlap == OverlapAllow) {
		d.o.row.WaitingAt = time.Time{}
		d.add(at, store.FireStarted)
	}
}

// decide decides one scheduled time. latest tells that no later time is due.
func (d *firePlanner) decide(at time.Time, latest bool) {
	overlap := d.o.settingsBefore.Overlap
	waits := !d.o.row.WaitingAt.IsZero()
	switch {
	case overlap == OverlapCancel && !latest:
		d.add(at, store.FireReplaced) // its run would be cancelled at once
	case overlap == OverlapAllow, !d.lastRunIsLive && !waits:
		d.add(at, store.FireStarted)
	case overlap == OverlapCancel && !d.lastRunIsLive:
		d.replaceWaitingTime()
		d.o.row.WaitingAt = time.Time{}
		d.add(at, store.FireStarted)
	case overlap == OverlapSkip:
		d.add(at, store.FireSkipped)
	default:
		d.replaceWaitingTime()
		d.o.row.WaitingAt = at
		d.add(at, store.FireWaiting)
	}
}

// replaceWaitingTime ends the wait of the time that waits.
func (d *firePlanner) replaceWaitingTime() {
	at := d.o.row.WaitingAt
	if at.IsZero() {
		return
	}
	for i := range d.fires {
		if d.fires[i].At.Equal(at) {
			d.fires[i].Outcome = store.FireReplaced
			return
		}
	}
	d.add(at, store.FireReplaced)
}

// PlanTrigger starts a run at once. It returns the ID of the run. call is a text that no other call has: if the transaction was committed,
// and its reply lost, the same call starts no second run.
func PlanTrigger(f *Firing, s store.ScheduleSnapshot, call string) (*store.ScheduleWrite, string, error) {
	o, err := existing(f.Name, s.Row)
	if err != nil {
		return nil, "", err
	}
	var last time.Time
	for _, t := range o.state.Triggers {
		if last = t.At; t.Call == call {
			return nil, RunID(f.Name, t.At), nil
		}
	}
	if err := f.check(o.settingsBefore); err != nil {
		return nil, "", err
	}
	at := f.Now.UTC().Truncate(time.Microsecond)
	if !at.After(last) && last.Sub(at) < time.Second {
		at = last.Add(time.Microsecond) // two calls at the same moment start two runs
	}
	if at.Equal(at.Truncate(time.Second)) {
		at = at.Add(time.Microsecond) // no scheduled time has a fraction, so their IDs differ
	}
	o.state.Triggers = addCall(o.state.Triggers, TriggerCall{call, at}, mostTriggers)
	w, err := o.newWrite(store.ScheduleFire{
		Schedule: f.Name, At: at, FiredAt: f.Now, Kind: store.FireTriggered, Outcome: store.FireStarted, RunToStart: f.NewStart(f.Name, o.settingsBefore, at),
	})
	return w, RunID(f.Name, at), err
}

// Backfill starts the runs of past times that were not fired, at most MostTimes of them.
type Backfill struct {
	Firing
	From, To time.Time // the times from From on, and before To
	// Call is a text that no other Backfill has: if the transaction was committed, and its reply lost, the same Backfill finds what it did.
	Call string

	AlreadyFired int       // how many of the times had been fired before
	Next         time.Time // where to continue; zero: nothing is left

	fires      int  // how many times the transaction fires
	notFired   int  // of these, how many IDs were taken, if isRepeated
	isRepeated bool // the transaction was committed before
}

// Fired returns how many runs the transaction started, and for how many times the IDs were taken. written is what the store wrote.
func (b *Backfill) Fired(written *store.ScheduleWrite) (started, taken int) {
	taken = b.notFired
	if !b.isRepeated && written != nil {
		for i := range written.Fires {
			if written.Fires[i].Outcome != store.FireStarted {
				taken++
			}
		}
	}
	return b.fires - taken, taken
}

// times returns the times of the next part. Times after the cursor are left to the schedule itself, unless it is paused.
func (b *Backfill) times(o *opened) ([]time.Time, error) {
	t, err := o.settingsBefore.Timetable(b.Name)
	if err != nil {
		return nil, err
	}
	until := o.state.Cursor
	if o.state.Paused() {
		until = b.Now
	}
	var times []time.Time
	b.Next = time.Time{}
	for at := t.NextAfter(b.From.Add(-time.Nanosecond)); !at.IsZero() && at.Before(b.To) && !at.After(until); at = t.NextAfter(at) {
		if len(times) == MostTimes {
			b.Next = at
			break
		}
		times = append(times, at)
	}
	return times, nil
}

// TimesToDecide implements store.ScheduleChangeRequest.
func (b *Backfill) TimesToDecide(row *store.Schedule) []time.Time {
	o, err := existing(b.Name, row)
	if err != nil {
		return nil
	}
	times, _ := b.times(o)
	return times
}

// Plan implements store.ScheduleChangeRequest.
func (b *Backfill) Plan(s store.ScheduleSnapshot) *store.ScheduleWrite {
	var o *opened
	if o, b.Err = existing(b.Name, s.Row); b.Err != nil {
		return nil
	}
	if b.Err = b.check(o.settingsBefore); b.Err != nil {
		return nil
	}
	var times []time.Time
	if times, b.Err = b.times(o); b.Err != nil {
		return nil
	}
	checked := len(times)
	times = slices.DeleteFunc(times, func(at time.Time) bool { return s.FiredTimes[at.UTC()] })
	b.fires, b.notFired, b.isRepeated = len(times), 0, false
	for _, part := range o.state.Backfills {
		if part.Call == b.Call {
			b.fires, b.isRepeated = min(part.Fires, checked), true // fewer are checked if an operator has changed the times since
			b.notFired = min(len(times), b.fires)
		}
	}
	b.AlreadyFired = checked - b.fires
	if b.isRepeated || b.fires == 0 {
		return nil
	}
	fires := make([]store.ScheduleFire, len(times))
	for i, at := range times {
		fires[i] = store.ScheduleFire{
			Schedule: b.Name, At: at, FiredAt: b.Now, Kind: store.FireBackfill, Outcome: store.FireStarted, RunToStart: b.NewStart(b.Name, o.settingsBefore, at),
		}
	}
	o.state.Backfills = addCall(o.state.Backfills, BackfillPart{b.Call, len(fires)}, mostBackfills)
	var w *store.ScheduleWrite
	w, b.Err = o.newWrite(fires...)
	return w
}
