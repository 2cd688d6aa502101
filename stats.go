package durable

import (
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Stats holds counters of what an engine has done since [New], and its current state. The counters only increase. To see what
// happened in a period, subtract the Stats at the beginning of the period from the Stats at its end.
type Stats struct {
	// A flush is a transaction that writes starts, checkpoints, signals and ends of runs of many callers together. Engines of
	// one process that use the same [Store] share their flushes, unless they have a codec, or differ in Patience or
	// MeterProvider. If engines share flushes, the figures of flushes and SoloWrites count the writes of all these engines.
	Flushes          int64         // the number of flushes that committed
	WrittenRows      int64         // the number of rows that the committed flushes wrote
	WrittenBytes     int64         // the estimated number of bytes that the committed flushes wrote: the payloads, and an allowance for each row
	LargestFlushRows int64         // the number of rows of the largest flush
	TotalFlushTime   time.Duration // the sum of the durations of all flushes; two flushes can be under way at once
	AverageFlushTime time.Duration // moving average of the duration of a flush, over about sixteen flushes
	FailedFlushes    int64         // the number of flushes that the database rejected; a rejected flush is split, or its callers get the error
	FlushRetries     int64         // the number of retries of flushes while the database was not available
	PendingWrites    int           // the number of calls that now wait for their flush to begin

	StepsWaitingForSlot int // the number of steps that now wait, because the process executes as many functions as Config.StepConcurrency allows

	RunsInMemory       int   // runs in this process's memory now
	StartedExecutions  int64 // the number of executions of runs that began in this process
	EndedExecutions    int64 // executions that committed the end of their run
	ParkedExecutions   int64 // executions that were unloaded from memory to wait for a time, a signal or a child
	ReleasedExecutions int64 // executions that were released by a shutdown or a pause
	LostExecutions     int64 // executions that did not write their end, because another process took the run over, or the database was not available
	HeldExecutions     int64 // executions that were released because the database rejected their writes; see RunInfo.Reason

	RetryingWrites int64 // calls whose writes are being retried now, and have been for a second or more, because the database rejects them or another transaction blocks them
	SoloWrites     int64 // transactions with the writes of a single call whose writes were retried

	ReceiveTimeouts ReceiveTimeouts // receives whose time was over

	ClaimQueries  int64 // queries for due runs, including queries that found none; one engine also sends the queries of engines that share its store
	ClaimedRuns   int64 // runs that the claim queries claimed
	Heartbeats    int64 // heartbeats of this process's worker
	RenewedLeases int64 // leases that the heartbeats renewed
}

// ReceiveTimeouts counts the receives whose time, set by [Within], was over, by what happened then.
type ReceiveTimeouts struct {
	Failed       int64 // the receive failed with ErrTimeout
	ReturnedElse int64 // the receive returned the value of Else
	Cancelled    int64 // the run was cancelled
	Expired      int64 // the run expired
	Escalated    int64 // ElseStart or ElseSignal was executed, and the wait continued
}

// MeanFlushRows returns the average number of rows of a flush, or zero if there was no flush.
func (s Stats) MeanFlushRows() float64 {
	if s.Flushes == 0 {
		return 0
	}
	return float64(s.WrittenRows) / float64(s.Flushes)
}

// Stats returns the current figures of the engine. Stats is cheap, and does not query the database. Each figure of Stats is
// exact, but not all figures are read at the same instant.
func (e *Engine) Stats() Stats {
	s := e.inner.Stats()
	j := s.Journal
	return Stats{
		Flushes: j.Flushes, WrittenRows: j.WrittenRows, WrittenBytes: j.WrittenBytes, LargestFlushRows: j.LargestFlushRows,
		TotalFlushTime: j.TotalFlushTime, AverageFlushTime: j.AverageFlushTime, FailedFlushes: j.FailedFlushes, FlushRetries: j.FlushRetries, PendingWrites: j.PendingEntries,
		StepsWaitingForSlot: s.StepsWaitingForSlot, RunsInMemory: s.RunsInMemory, StartedExecutions: s.StartedExecutions, EndedExecutions: s.EndedExecutions, ParkedExecutions: s.ParkedExecutions, ReleasedExecutions: s.ReleasedExecutions, LostExecutions: s.LostExecutions,
		HeldExecutions: s.HeldExecutions, RetryingWrites: s.RetryingWrites, SoloWrites: j.SeparateTransactions,
		ReceiveTimeouts: ReceiveTimeouts{
			Failed: s.ReceiveTimeouts[engine.TimeoutFails], ReturnedElse: s.ReceiveTimeouts[engine.TimeoutReturnsValue], Cancelled: s.ReceiveTimeouts[engine.TimeoutCancels],
			Expired: s.ReceiveTimeouts[engine.TimeoutExpires], Escalated: s.ReceiveTimeouts[engine.TimeoutEscalates],
		},
		ClaimQueries: s.SuccessfulClaims, ClaimedRuns: s.ClaimedRuns, Heartbeats: s.Heartbeats, RenewedLeases: s.RenewedLeases,
	}
}
