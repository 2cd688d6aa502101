package model_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/schedule"
	"github.com/seed8ec063be/durable/internal/store"
)

// scheduleCheck makes random calls that concern one schedule and its runs.
type scheduleCheck struct {
	*check
	now      time.Time          // of the clock of the database; it may go back
	latest   time.Time          // that the clock has shown
	settings *schedule.Settings // nil: there is no schedule
	paused   bool
	decided  time.Time // every scheduled time up to this has been decided, or passed
	overlaps bool      // several runs may be live: the settings allowed it, or the last run was forgotten
	triggers int
	taken    map[string]bool // IDs that a user has taken
	seen     *scheduleSight
}

const scheduleName = "s"

// A schedule, whatever is done to it and to its runs, through two handles: each time is decided once, starts at most one run, and waits
// no longer than for the end of the run before.
func TestSchedulesDecideEachTimeOnce(t *testing.T) {
	onBeds(t, fewChecks, func(t *rapid.T, b *bed) {
		c := &scheduleCheck{check: newCheck(t, b), now: base, latest: base, taken: make(map[string]bool)}
		c.seen = c.read()
		c.set()
		t.Repeat(map[string]func(*rapid.T){
			"fire":     c.action(c.fire),
			"pass":     c.action(c.pass),
			"set":      c.action(c.set),
			"pause":    c.action(c.pause),
			"trigger":  c.action(func() { c.other(c.trigger()) }),
			"backfill": c.action(c.backfill),
			"delete":   c.action(c.remove),
			"take":     c.action(c.take),
			"run":      c.action(func() { c.other(c.changeRun()) }),
			"claim":    c.action(func() { c.other(c.claim()) }),
			"together": c.action(c.together),
		})
		c.drain()
	})
}

// other makes a call that decides no time.
func (c *scheduleCheck) other(text string, do call) {
	c.must(text, do)
	c.seen = c.read()
}

// change makes a change of the row. refused is the error of the plan.
func (c *scheduleCheck) change(text string, plan func(row *store.Schedule) (*store.ScheduleWrite, error)) (refused error) {
	c.other(text, func(ctx context.Context, s store.Store) error {
		return s.ChangeSchedule(ctx, &store.ScheduleChangeRequest{Name: scheduleName, Plan: func(at store.ScheduleSnapshot) (w *store.ScheduleWrite) {
			w, refused = plan(at.Row)
			return w
		}})
	})
	return refused
}

func (c *scheduleCheck) pass() {
	d := time.Duration(c.dice("pass", 5000)-500) * time.Millisecond
	if c.dice("outage", 8) == 0 {
		d += 15 * time.Second
	}
	if c.now = c.now.Add(d); c.latest.Before(c.now) {
		c.latest = c.now
	}
	c.Logf("it is %s", offset(c.now))
}

// set creates or changes the schedule.
func (c *scheduleCheck) set() {
	s := &schedule.Settings{
		Every: schedule.Duration(time.Duration(1+c.dice("every", 3)) * time.Second), Workflow: "f", Queue: "q", CatchUp: schedule.Duration(10 * time.Second),
		Overlap: pick(c.check, "overlap", []string{schedule.OverlapSkip, schedule.OverlapWait, schedule.OverlapCancel, schedule.OverlapAllow}),
	}
	err := c.change(fmt.Sprintf("every %v, %s", time.Duration(s.Every), s.Overlap), func(row *store.Schedule) (*store.ScheduleWrite, error) {
		return schedule.PlanSet(scheduleName, row, s, c.now, "", "")
	})
	if err != nil {
		c.diverge("Set: %v", err)
	}
	if c.settings == nil || c.settings.Every != s.Every {
		c.decided = c.now
	}
	c.settings, c.overlaps = s, c.overlaps || s.Overlap == schedule.OverlapAllow
}

func (c *scheduleCheck) pause() {
	was := c.paused
	err := c.change(fmt.Sprint("paused: ", !was), func(row *store.Schedule) (*store.ScheduleWrite, error) {
		if was {
			return schedule.PlanResume(scheduleName, row, c.now, "", "")
		}
		return schedule.PlanPause(scheduleName, row, c.now, "", "")
	})
	if (err == nil) != (c.settings != nil) {
		c.diverge("a pause: %v", err)
	}
	if err != nil {
		return
	}
	if c.paused = !was; was && c.decided.Before(c.now) {
		c.decided = c.now
	}
}

func (c *scheduleCheck) remove() {
	if c.dice("deletes", 3) > 0 {
		c.fire()
		return
	}
	err := c.change("delete", func(row *store.Schedule) (*store.ScheduleWrite, error) {
		return schedule.PlanDelete(scheduleName, row, c.now, "", "")
	})
	if (err == nil) != (c.settings != nil) {
		c.diverge("Delete: %v", err)
	}
	c.settings, c.paused, c.overlaps = nil, false, true
	for id := range c.seen.runs { // the schedule has forgotten them
		c.taken[id] = true
	}
}

// newStart returns the start of a run, as an engine does. Stores may call it at the same time.
func (c *scheduleCheck) newStart(name string, s *schedule.Settings, at time.Time) *store.StartWrite {
	id, runName := store.NewRootIdentityAt(schedule.RunID(name, at), base)
	return &store.StartWrite{Run: store.Run{UUID: id, Name: runName, Workflow: s.Workflow, Queue: s.Queue, Status: store.Pending, CreatedAt: c.now, WakeAt: c.now}}
}

func (c *scheduleCheck) firing() schedule.Firing {
	return schedule.Firing{Name: scheduleName, Now: c.now, NewStart: c.newStart}
}

// take starts a run with the ID of one of the next times.
func (c *scheduleCheck) take() {
	at := c.now.Truncate(time.Second).Add(time.Duration(1+c.dice("at", 4)) * time.Second)
	start := c.newStart(scheduleName, &schedule.Settings{Workflow: "f", Queue: "q"}, at)
	c.other("take "+start.Run.Name, func(ctx context.Context, s store.Store) error {
		w := *start
		err := commitNow(ctx, s, &store.Batch{Starts: []*store.StartWrite{&w}}, func() store.WriteOutcome { return w.Outcome })
		if err == nil && w.Outcome == store.Written {
			c.taken[w.Run.Name] = true
		}
		return err
	})
}

// trigger starts a run now.
func (c *scheduleCheck) trigger() (string, call) {
	if c.settings == nil {
		return "nothing", func(context.Context, store.Store) error { return nil }
	}
	c.triggers++
	own := fmt.Sprint("call ", c.triggers)
	f := c.firing()
	return "trigger", func(ctx context.Context, s store.Store) (err error) {
		for range 2 { // the reply to the first may be lost
			var refused error
			err = s.ChangeSchedule(ctx, &store.ScheduleChangeRequest{Name: scheduleName, Plan: func(at store.ScheduleSnapshot) (w *store.ScheduleWrite) {
				w, _, refused = schedule.PlanTrigger(&f, at, own)
				return w
			}})
			if err == nil {
				err = refused
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// backfill starts the runs of past times, each of which then has one.
func (c *scheduleCheck) backfill() {
	if c.settings == nil {
		c.fire()
		return
	}
	from := c.now.Add(-time.Duration(c.dice("from", 20)) * time.Second)
	b := &schedule.Backfill{Firing: c.firing(), Call: c.newID(0).String(), From: from, To: from.Add(time.Duration(c.dice("for", 10)) * time.Second)}
	before := c.seen
	c.other(fmt.Sprintf("backfill from %s to %s", offset(b.From), offset(b.To)), c.backfillCall(b))
	until := before.state.Cursor
	if c.paused {
		until = c.now
	}
	every := time.Duration(c.settings.Every)
	for at := from.Add(-1).Truncate(every).Add(every); at.Before(b.To) && !at.After(until); at = at.Add(every) {
		if !c.seen.runs[schedule.RunID(scheduleName, at)] && !at.Equal(before.row.WaitingAt) {
			c.diverge("the backfill from %s to %s left %s out", offset(b.From), offset(b.To), offset(at))
		}
	}
}

func (c *scheduleCheck) backfillCall(b *schedule.Backfill) call {
	return func(ctx context.Context, s store.Store) error {
		err := s.ChangeSchedule(ctx, &store.ScheduleChangeRequest{Name: scheduleName, TimesToDecide: b.TimesToDecide, Plan: b.Plan})
		if err == nil {
			err = b.Err
		}
		return err
	}
}

// fireCall fires the schedule once if it is due, and cancels the run before if a time waits for its end, as each worker does.
func (c *scheduleCheck) fireCall(more *bool) call {
	return func(ctx context.Context, s store.Store) error {
		due, _, err := s.DueSchedules(ctx, c.now, 10)
		if *more = len(due) > 0; err != nil || len(due) == 0 {
			return err
		}
		f := c.firing()
		var state store.ScheduleSnapshot
		change := &store.ScheduleChangeRequest{Name: due[0], SkipLocked: true, TimesToDecide: f.TimesToDecide, Plan: func(at store.ScheduleSnapshot) *store.ScheduleWrite {
			state = at
			return f.Plan(at)
		}}
		if err := s.ChangeSchedule(ctx, change); err != nil || f.Err != nil {
			return fmt.Errorf("%w; %w", err, f.Err)
		}
		row := state.Row
		if change.AppliedWrite != nil {
			row = &change.AppliedWrite.Row
		}
		if row == nil || !row.CancelsLastRun || !row.LastRun.Valid {
			return nil
		}
		return s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{row.LastRun.UUID}, Now: c.now, Error: []byte("cancelled")})
	}
}

// fire fires the schedule until it is not due, and then checks that all times up to now are decided.
func (c *scheduleCheck) fire() {
	for range 20 {
		var more bool
		c.other(fmt.Sprintf("fire at %s", offset(c.now)), c.fireCall(&more))
		if !more {
			c.checkDecided()
			return
		}
	}
	c.diverge("the schedule is due again and again: %+v", c.seen.row)
}

// together fires and makes another call at the same time, and then goes on firing.
func (c *scheduleCheck) together() {
	var more bool
	text, do := "fire", c.fireCall(new(bool))
	switch c.dice("with", 4) {
	case 0:
		text, do = c.changeRun()
	case 1:
		text, do = c.trigger()
	case 2:
		if c.settings != nil {
			text, do = "backfill", c.backfillCall(&schedule.Backfill{Firing: c.firing(), From: c.now.Add(-8 * time.Second), To: c.now})
		}
	}
	c.Logf("together: fire at %s, and %s", offset(c.now), text)
	var failed [2]error
	var both sync.WaitGroup
	both.Go(func() { failed[0] = c.repeated(c.fireCall(&more), 0) })
	both.Go(func() { failed[1] = c.repeated(do, 1) })
	both.Wait()
	if failed[0] != nil || failed[1] != nil {
		c.diverge("fire, and %s: %v", text, failed)
	}
	c.seen = c.read()
	c.fire()
}
