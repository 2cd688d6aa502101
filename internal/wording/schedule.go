package wording

import (
	"cmp"
	"time"

	"github.com/seed8ec063be/durable"
)

// ScheduleTimes returns when a schedule starts runs.
func ScheduleTimes(s *durable.Schedule) string {
	if s.Every > 0 {
		return "every " + ShortDuration(s.Every)
	}
	return s.Cron + " " + cmp.Or(s.Location, "UTC")
}

// ScheduleState returns the state of a schedule in words. past is how a time that has come is written.
func ScheduleState(past func(time.Time) string, i *durable.ScheduleInfo) string {
	switch {
	case i.DeclaredButDeleted:
		return "deleted, and still declared by the code: durable schedule reset brings it back"
	case i.Problem != "":
		return i.Problem
	case !i.PausedAt.IsZero():
		return WithReason("paused "+past(i.PausedAt), i.PauseReason, i.PausedBy)
	case !i.WaitingAt.IsZero():
		return "waits for the end of the run before"
	}
	return "active"
}
