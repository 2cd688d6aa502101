package wording

import (
	"time"

	"github.com/seed8ec063be/durable"
)

// IsWorkerDead reports whether a worker counts as dead at the time, by the database's clock: its lease is over without another heartbeat.
func IsWorkerDead(now time.Time, w *durable.WorkerInfo) bool { return !now.Before(w.DeadAt) }

// WorkerState returns the state of a worker in words, as in "running, quiet". A dead worker has recorded the state of its last heartbeat.
func WorkerState(now time.Time, w *durable.WorkerInfo) string {
	state := string(w.State)
	if IsWorkerDead(now, w) {
		state = "dead"
	}
	return state + textIf(w.Quiet, ", quiet")
}
