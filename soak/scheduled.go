package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// The schedules whose runs take longer than the time between two scheduled times.
const (
	skippingSchedule  = "skipping"
	waitingSchedule   = "waiting"
	cancelingSchedule = "canceling"
	pausedSchedule    = "paused" // waits, and is paused and resumed
)

const (
	shiftName     = "shift"     // the workflow of these schedules
	shiftEvery    = time.Second // of these schedules
	longestShift  = 2500 * time.Millisecond
	endlessEvery  = 4 // one scheduled time of so many of schedule canceling starts a run that only a cancel ends
	shiftStep     = "prepare"
	shiftUndoStep = "undo"
)

// shiftSchedules are the schedules, and what each does if the previous run has not ended.
var shiftSchedules = map[string]durable.Overlap{
	skippingSchedule: durable.OverlapSkip, waitingSchedule: durable.OverlapWait, cancelingSchedule: durable.OverlapCancel, pausedSchedule: durable.OverlapWait,
}

// shift returns the workflow of the schedules. A cancelled run compensates its step.
func shift(book *ledger) *durable.Workflow[string, string] {
	return durable.Define(shiftName, func(c *durable.Ctx, name string) (string, error) {
		at := durable.ScheduledAt(c)
		book.add(entry{Kind: kindShiftBegun, Run: c.RunID(), Exec: rand.Text(), Step: name, Value: at.Format(time.RFC3339Nano)})
		if err := c.Do(shiftStep, func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		if err := c.Compensate(shiftUndoStep, func(context.Context) error { return nil }, durable.Retry(retryPolicy)); err != nil {
			return "", err
		}
		if err := c.Sleep("work", shiftDuration(name, at)); err != nil {
			return "", err
		}
		return c.ID(), nil
	})
}

// shiftDuration returns how long the run of a time takes. Triggers have times with a fraction, and short runs.
func shiftDuration(name string, at time.Time) time.Duration {
	switch {
	case at.Nanosecond() != 0:
		return time.Duration(at.Nanosecond()/1000%300) * time.Millisecond
	case isEndless(name, at):
		return 24 * time.Hour
	}
	return time.Duration(at.Unix()*7919%int64(longestShift/time.Millisecond)) * time.Millisecond
}

// isEndless reports whether only a cancel ends the run of a scheduled time.
func isEndless(name string, at time.Time) bool {
	return name == cancelingSchedule && at.Nanosecond() == 0 && at.Unix()%endlessEvery == 0
}

// shiftRunID returns the ID of the run of a time.
func shiftRunID(name string, at time.Time) string {
	return name + "@" + at.UTC().Format(time.RFC3339Nano)
}

// parseShift returns the schedule and the time of a run with the ID.
func parseShift(id string) (name string, at time.Time, err error) {
	name, text, _ := strings.Cut(id, "@")
	if at, err = time.Parse(time.RFC3339Nano, text); err == nil && shiftRunID(name, at) != id {
		err = fmt.Errorf("the ID %q is not in its normal form", id)
	}
	return name, at, err
}
