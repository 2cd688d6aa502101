package engine

import (
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Stats is what an engine has done since New, and what it holds now.
type Stats struct {
	Journal journal.Stats
	Active  int // runs in memory
	Waiting int // steps that wait for a slot

	Entered  int64 // executions of a run that began here
	Ended    int64 // ... that ended in a result, an error or a cancel
	Parked   int64 // ... that left memory to wait
	Released int64 // ... that were given back or set aside
	Lost     int64 // ... whose end was no longer this process's to write
	Held     int64 // ... that were released since the database did not take what they recorded
	Retrying int64 // writes that have been retried alone for a second or more, now

	TimedOut [timeouts]int64 // receives whose time was over, by what followed

	Claims   int64 // looks for due runs that were answered
	Claimed  int64 // runs that they took
	Renewals int64 // heartbeats that were answered
	Leases   int64 // that they extended
}

// counts are added to once a run or more rarely, and without a lock.
type counts struct {
	entered, ended, parked, released, lost atomic.Int64
	claims, claimed, renewals, leases      atomic.Int64
	held, retrying                         atomic.Int64
	timedOut                               [timeouts]atomic.Int64
}

// left counts an execution by how it left.
func (c *counts) left(outcome string) {
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

// Stats answers the figures as they are now.
func (e *Engine) Stats() Stats {
	c := &e.counts
	s := Stats{
		Journal: e.journal.Stats(), Waiting: e.steps.waiting(),
		Entered: c.entered.Load(), Ended: c.ended.Load(), Parked: c.parked.Load(), Released: c.released.Load(), Lost: c.lost.Load(),
		Claims: c.claims.Load(), Claimed: c.claimed.Load(), Renewals: c.renewals.Load(), Leases: c.leases.Load(),
		Held: c.held.Load(), Retrying: c.retrying.Load(),
	}
	for i := range s.TimedOut {
		s.TimedOut[i] = c.timedOut[i].Load()
	}
	if w := e.worker(); w != nil {
		s.Active = w.active()
	}
	return s
}

// active is how many runs are in memory.
func (w *worker) active() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}
