package durable

import (
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Stats is what an engine has done since New, and what it holds now. Counters only grow:
// the difference of two Stats is what happened between them.
type Stats struct {
	Flushes         int64         // transactions of starts, checkpoints, signals and ends that committed
	Writes          int64         // starts, checkpoints, signals and ends in them
	WrittenBytes    int64         // of those, about: payloads, and an allowance for each row
	LargestFlush    int64         // writes of the largest flush
	FlushTime       time.Duration // of all flushes together; two may be under way at once
	RecentFlushTime time.Duration // of one flush, lately: an average in which the last sixteen or so count
	RefusedFlushes  int64         // that the database would not take; they were split, or answered with the error
	ReplayedFlushes int64         // tries again while the database was away
	Queued          int           // calls that wait now for a flush to begin

	StepsWaiting int // steps that wait now, since Config.StepConcurrency others are executed

	Active   int   // runs in this process's memory now
	Entered  int64 // executions of runs that began here
	Ended    int64 // executions that ended in a result, an error or a cancel, and committed it
	Parked   int64 // executions that left memory to wait: for a time, a signal or a child
	Released int64 // executions that were given back, by a shutdown, or set aside by a pause
	Lost     int64 // executions whose end was not written here: another process has the run, or the database was away
	Held     int64 // executions that were released since the database rejected what they recorded; see RunInfo.Reason

	Retrying    int64 // calls whose writes the database has rejected, or another transaction held up, for a second or more, now
	AloneWrites int64 // transactions with the writes of one such call

	TimedOut TimedOut // waits for signals whose time was over

	Claims        int64 // looks for due runs, also those that found none
	Claimed       int64 // runs that they took
	Heartbeats    int64 // of this process's worker
	LeasesRenewed int64 // by those heartbeats
}

// TimedOut counts waits for signals whose time, by [Within], was over, by what followed.
type TimedOut struct {
	Failed    int64 // the receive failed with ErrTimeout
	WentOn    int64 // it returned the value of Else
	Cancelled int64 // the run was cancelled
	Expired   int64 // the run expired
	Escalated int64 // somebody was told, and the wait went on
}

// MeanFlush is how many writes shared one transaction, on average; zero if there was none.
func (s Stats) MeanFlush() float64 {
	if s.Flushes == 0 {
		return 0
	}
	return float64(s.Writes) / float64(s.Flushes)
}

// Stats answers the figures as they are now. It asks no database, and may be called
// often. Each figure is exact; while work goes on, one may be read a moment before another.
func (e *Engine) Stats() Stats {
	s := e.inner.Stats()
	j := s.Journal
	return Stats{
		Flushes: j.Flushes, Writes: j.Items, WrittenBytes: j.Bytes, LargestFlush: j.Largest,
		FlushTime: j.Took, RecentFlushTime: j.Recent, RefusedFlushes: j.Refused, ReplayedFlushes: j.Replays, Queued: j.Waiting,
		StepsWaiting: s.Waiting, Active: s.Active, Entered: s.Entered, Ended: s.Ended, Parked: s.Parked, Released: s.Released, Lost: s.Lost,
		Held: s.Held, Retrying: s.Retrying, AloneWrites: j.Alone,
		TimedOut: TimedOut{
			Failed: s.TimedOut[engine.TimeoutFails], WentOn: s.TimedOut[engine.TimeoutGoesOn], Cancelled: s.TimedOut[engine.TimeoutCancels],
			Expired: s.TimedOut[engine.TimeoutExpires], Escalated: s.TimedOut[engine.TimeoutEscalates],
		},
		Claims: s.Claims, Claimed: s.Claimed, Heartbeats: s.Renewals, LeasesRenewed: s.Leases,
	}
}
