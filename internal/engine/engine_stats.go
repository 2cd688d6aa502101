package engine

import (
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Stats counts what an engine has done since New, and what it holds now.
type Stats struct {
	Journal journal.Stats
	Active  int // runs in memory
	Waiting int // steps that wait for a slot

	Entered  int64 // executions of a run that began here
	Ended    int64 // executions that ended in a result, an error or a cancel
	Parked   int64 // executions that ended because the run left memory to wait
	Released int64 // executions that ended because the run was released or paused
	Lost     int64 // executions whose end this process could not write, because it had lost the run
	Held     int64 // executions that ended because the database rejected what they recorded
	Retrying int64 // writes that are retried now, in transactions of their own, for a second or more

	TimedOut [timeoutActionCount]int64 // receives that timed out, by Timeout

	Claims   int64 // claims that succeeded
	Claimed  int64 // runs that these claims took
	Renewals int64 // heartbeats that succeeded
	Leases   int64 // leases that these heartbeats extended
}

// engineCounters holds the counters of Stats. The engine changes them about once for each run, or less often.
// They need no lock.
type engineCounters struct {
	entered, ended, parked, released, lost atomic.Int64
	claims, claimed, renewals, leases      atomic.Int64
	held, retrying                         atomic.Int64
	timedOut                               [timeoutActionCount]atomic.Int64
}

// countExecution counts an execution by its telemetry outcome.
func (c *engineCounters) countExecution(outcome string) {
	switch outcome {
	case telemetry.OutcomeParked:
		c.parked.Add(1)
	case telemetry.OutcomeLost:
		c.lost.Add(1)
	case telemetry.OutcomeHeld:
		c.held.Add(1)
	case telemetry.OutcomeReleased, telemetry.OutcomePaused:
		c.released.Add(1)
	default:
		c.ended.Add(1)
	}
}

// Stats returns the current values.
func (e *Engine) Stats() Stats {
	c := &e.counts
	s := Stats{
		Journal: e.journal.Stats(), Waiting: e.steps.Waiting(),
		Entered: c.entered.Load(), Ended: c.ended.Load(), Parked: c.parked.Load(), Released: c.released.Load(), Lost: c.lost.Load(),
		Claims: c.claims.Load(), Claimed: c.claimed.Load(), Renewals: c.renewals.Load(), Leases: c.leases.Load(),
		Held: c.held.Load(), Retrying: c.retrying.Load(),
	}
	for i := range s.TimedOut {
		s.TimedOut[i] = c.timedOut[i].Load()
	}
	if w := e.worker(); w != nil {
		s.Active = w.runs.count()
	}
	return s
}
