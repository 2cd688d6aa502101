package engine

import (
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Stats counts what an engine has done since New, and describes the engine's present state.
type Stats struct {
	Journal             journal.Stats
	RunsInMemory        int // runs in memory
	StepsWaitingForSlot int // steps that wait for a slot

	StartedExecutions  int64 // executions of a run that began here
	EndedExecutions    int64 // executions that ended in a result, an error or a cancel
	ParkedExecutions   int64 // executions that ended because the run left memory to wait
	ReleasedExecutions int64 // executions that ended because the run was released or paused
	LostExecutions     int64 // executions whose end this process could not write, because it had lost the run
	HeldExecutions     int64 // executions that ended because the database rejected what they recorded
	RetryingWrites     int64 // writes that are retried now, in transactions of their own, for a second or more

	ReceiveTimeouts [timeoutActionCount]int64 // receives that timed out, by TimeoutAction

	SuccessfulClaims int64 // claims that succeeded
	ClaimedRuns      int64 // runs that these claims took
	Heartbeats       int64 // heartbeats that succeeded
	RenewedLeases    int64 // leases that these heartbeats extended
}

// engineCounters holds the counters of Stats. The engine changes them about once for each run, or less often.
// They need no lock.
type engineCounters struct {
	startedExecutions, endedExecutions, parkedExecutions, releasedExecutions, lostExecutions atomic.Int64
	claims, claimedRuns, heartbeats, renewedLeases                                           atomic.Int64
	heldExecutions, retryingWrites                                                           atomic.Int64
	receiveTimeouts                                                                          [timeoutActionCount]atomic.Int64
}

// countExecution counts an execution by its telemetry outcome.
func (c *engineCounters) countExecution(outcome string) {
	switch outcome {
	case telemetry.OutcomeParked:
		c.parkedExecutions.Add(1)
	case telemetry.OutcomeLost:
		c.lostExecutions.Add(1)
	case telemetry.OutcomeHeld:
		c.heldExecutions.Add(1)
	case telemetry.OutcomeReleased, telemetry.OutcomePaused:
		c.releasedExecutions.Add(1)
	default:
		c.endedExecutions.Add(1)
	}
}

// Stats returns the current values of the engine's counters.
func (e *Engine) Stats() Stats {
	c := &e.counters
	s := Stats{
		Journal: e.journal.Stats(), StepsWaitingForSlot: e.stepSlots.WaitingCount(),
		StartedExecutions: c.startedExecutions.Load(), EndedExecutions: c.endedExecutions.Load(), ParkedExecutions: c.parkedExecutions.Load(), ReleasedExecutions: c.releasedExecutions.Load(), LostExecutions: c.lostExecutions.Load(),
		SuccessfulClaims: c.claims.Load(), ClaimedRuns: c.claimedRuns.Load(), Heartbeats: c.heartbeats.Load(), RenewedLeases: c.renewedLeases.Load(),
		HeldExecutions: c.heldExecutions.Load(), RetryingWrites: c.retryingWrites.Load(),
	}
	for i := range s.ReceiveTimeouts {
		s.ReceiveTimeouts[i] = c.receiveTimeouts[i].Load()
	}
	if w := e.worker(); w != nil {
		s.RunsInMemory = w.loadedRuns.count()
	}
	return s
}
