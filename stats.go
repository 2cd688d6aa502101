package durable

import (
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Stats holds counters of what an engine has done since [New], and its current state. Counters only grow: subtract two Stats to
// see what happened between them.
type Stats struct {
	// A flush is a transaction that writes starts, checkpoints, signals and ends of runs of many callers together.
	Flushes         int64         // flushes that committed
	Writes          int64         // rows that these flushes wrote
	WrittenBytes    int64         // bytes that they wrote, estimated: the payloads, and an allowance for each row
	LargestFlush    int64         // rows of the largest flush
	FlushTime       time.Duration // duration of all flushes together; two can be under way at once
	RecentFlushTime time.Duration // moving average of the duration of a flush, over about sixteen flushes
	FailedFlushes   int64         // flushes that the database rejected; they were split, or their callers got the error
	FlushRetries    int64         // retries of flushes while the database was not available
	PendingWrites   int           // calls that wait now for their flush to begin

	StepsWaiting int // steps that wait now, because Config.StepConcurrency others are executed

	Active   int   // runs in this process's memory now
	Entered  int64 // executions of runs that began in this process
	Ended    int64 // executions that committed the end of their run
	Parked   int64 // executions that left memory to wait for a time, a signal or a child
	Released int64 // executions that were released by a shutdown or a pause
	Lost     int64 // executions that did not write their end: another process took the run over, or the database was not available
	Held     int64 // executions that were released because the database rejected their writes; see RunInfo.Reason

	Retrying   int64 // calls whose writes are retried now, because the database rejects them or another transaction blocks them, for a second or more
	SoloWrites int64 // transactions that held the writes of a single such call

	TimedOut TimedOut // receives whose time was over

	Claims        int64 // queries for due runs, including those that found none
	Claimed       int64 // runs that they claimed
	Heartbeats    int64 // heartbeats of this process's worker
	LeasesRenewed int64 // leases that the heartbeats renewed
}

// TimedOut counts receives whose time, set by [Within], was over, by what happened then.
type TimedOut struct {
	Failed    int64 // the receive failed with ErrTimeout
	WentOn    int64 // the receive returned the value of Else
	Cancelled int64 // the run was cancelled
	Expired   int64 // the run expired
	Escalated int64 // ElseStart or ElseSignal was executed, and the wait continued
}

// MeanFlush returns the average number of rows of a flush, or zero if there was no flush.
func (s Stats) MeanFlush() float64 {
	if s.Flushes == 0 {
		return 0
	}
	return float64(s.Writes) / float64(s.Flushes)
}

// Stats returns the current figures. It does not query the database, and is cheap. Each figure is exact, but they are not read
// at the same instant.
func (e *Engine) Stats() Stats {
	s := e.inner.Stats()
	j := s.Journal
	return Stats{
		Flushes: j.Flushes, Writes: j.Items, WrittenBytes: j.Bytes, LargestFlush: j.Largest,
		FlushTime: j.TotalTime, RecentFlushTime: j.AverageTime, FailedFlushes: j.Failed, FlushRetries: j.Retries, PendingWrites: j.Pending,
		StepsWaiting: s.Waiting, Active: s.Active, Entered: s.Entered, Ended: s.Ended, Parked: s.Parked, Released: s.Released, Lost: s.Lost,
		Held: s.Held, Retrying: s.Retrying, SoloWrites: j.SoloTransactions,
		TimedOut: TimedOut{
			Failed: s.TimedOut[engine.TimeoutFails], WentOn: s.TimedOut[engine.TimeoutGoesOn], Cancelled: s.TimedOut[engine.TimeoutCancels],
			Expired: s.TimedOut[engine.TimeoutExpires], Escalated: s.TimedOut[engine.TimeoutEscalates],
		},
		Claims: s.Claims, Claimed: s.Claimed, Heartbeats: s.Renewals, LeasesRenewed: s.Leases,
	}
}
