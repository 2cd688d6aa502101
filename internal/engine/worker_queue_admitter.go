package engine

import "github.com/seed8ec063be/durable/internal/queues"

// newQueueAdmitter returns the Admitter that admits runs to queues with settings for this worker. serve executes its loop.
func (w *worker) newQueueAdmitter() *queues.Admitter {
	return queues.NewAdmitter(queues.AdmitterConfig{
		Rows: w.e.queueRows, Store: w.e.store, Clock: w.e.clock, LogFailure: w.logFailure, Lease: w.e.cfg.Lease, PollInterval: w.otherWorkers.PollInterval,
		HintClaim: w.hintClaim, HintClaimOfAdmitted: w.hintClaimOfAdmitted, StopIfFatal: w.stopIfFatal,
	})
}
