package engine

import "time"

// WorkerHealth describes the state of an engine's worker, as this process knows it without a query of the database.
type WorkerHealth struct {
	HasWorkflows  bool      // this engine has workflows
	IsRunning     bool      // Run has been called, and its context has not ended
	LastHeartbeat time.Time // when the last heartbeat was acknowledged, on this process's clock; zero: none was yet
	Lease         time.Duration
	StopError     error // the error with which Run had to stop; nil again once Run is called again
}

// WorkerHealth returns the present state of the worker.
func (e *Engine) WorkerHealth() WorkerHealth {
	e.mu.Lock()
	h := WorkerHealth{HasWorkflows: len(e.workflows) > 0, Lease: e.cfg.Lease, StopError: e.engineRunError}
	var w *worker
	if s := e.lifetime; s != nil {
		h.IsRunning, w = s.usedByEngineRun, s.worker
	}
	e.mu.Unlock()
	if w != nil {
		w.renewalOutage.mu.Lock()
		h.LastHeartbeat = w.renewalOutage.lastReplyAt
		w.renewalOutage.mu.Unlock()
	}
	return h
}
