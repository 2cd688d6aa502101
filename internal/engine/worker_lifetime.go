package engine

import "context"

// workerLifetime is the life of one worker. It begins when the first user needs a worker. It ends, drained, when
// the context of Run ends, or when the last user leaves. The users are Run and each caller of KeepWorkerActive. They can come and go
// in any order.
type workerLifetime struct {
	worker          *worker
	cancel          context.CancelFunc
	done            chan struct{} // closed after the drain
	workerFailed    chan struct{} // closed before done if err is not nil
	err             error         // why the worker could not begin, or had to stop; to be read after done is closed
	users           int
	usedByEngineRun bool // Run is among the users
}

// Run executes runs until ctx ends; it then waits until the worker has drained, and returns. Run returns an error only if the worker could
// not begin, or if the database is permanently lost. Callers that wait for runs (see KeepWorkerActive) keep waiting after Run has returned,
// because other processes may still record the results.
func (e *Engine) Run(ctx context.Context) error {
	s := e.joinWorkerLifetime(true)
	if s == nil {
		return ErrRunning
	}
	select {
	case <-ctx.Done():
		e.stopWorkerLifetime(s)
	case <-s.done:
	}
	e.leaveWorkerLifetime(s, true)
	<-s.done
	return s.err
}

// KeepWorkerActive keeps a worker active until detach is called. If Run was stopped, the result executed is false, and this process
// executes no runs until Run is called again. If no other user of the worker is left, detach waits until the worker has drained. The
// channel failed is closed if the worker could not begin, or had to stop; detach then returns the reason.
//
// If ctx is the context of a step that this engine executes, KeepWorkerActive does nothing: the worker already stays active until the
// step ends.
func (e *Engine) KeepWorkerActive(ctx context.Context) (executed bool, failed <-chan struct{}, detach func() error) {
	if t, ok := ctx.Value(attemptContextKey{}).(*stepTask); ok && t.r.e == e {
		return true, nil, func() error { return nil }
	}
	s := e.joinWorkerLifetime(false)
	if s == nil {
		return false, nil, func() error { return nil }
	}
	return true, s.workerFailed, func() error {
		last := e.leaveWorkerLifetime(s, false)
		select {
		case <-s.workerFailed:
			last = true // done is about to be closed
		default:
		}
		if !last {
			return nil
		}
		<-s.done
		return s.err
	}
}

// joinWorkerLifetime enters the current lifetime, or begins a lifetime if there is none. The goroutine of the lifetime ends with its
// worker. joinWorkerLifetime returns nil for a second Run, and for other users if Run was stopped.
func (e *Engine) joinWorkerLifetime(isRun bool) *workerLifetime {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !isRun && e.engineRunStopped {
		return nil
	}
	s := e.lifetime
	if s == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s = &workerLifetime{worker: newWorker(e), cancel: cancel, done: make(chan struct{}), workerFailed: make(chan struct{})}
		e.lifetime = s
		go func() {
			defer close(s.done)
			if s.err = s.worker.serve(ctx); s.err != nil {
				close(s.workerFailed)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if s.usedByEngineRun {
				e.engineRunError = s.err
			}
			if e.lifetime == s {
				e.lifetime = nil // the worker could not begin, or had to stop
			}
		}()
	}
	if isRun && s.usedByEngineRun {
		return nil
	}
	if isRun {
		s.usedByEngineRun, e.engineRunStopped, e.engineRunError = true, false, nil
	}
	s.users++
	return s
}

// stopWorkerLifetime ends the lifetime of Run even if it has other users, and prevents a new lifetime until Run is called
// again.
func (e *Engine) stopWorkerLifetime(s *workerLifetime) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.engineRunStopped = true
	e.endWorkerLifetime(s)
}

// endWorkerLifetime ends the lifetime. e.mu is held.
func (e *Engine) endWorkerLifetime(s *workerLifetime) {
	if e.lifetime == s {
		e.lifetime = nil
	}
	s.cancel()
}

// leaveWorkerLifetime leaves the lifetime, and ends it if it has no other users. It reports whether the caller must wait
// for the drain.
func (e *Engine) leaveWorkerLifetime(s *workerLifetime, isRun bool) (mustAwaitDrain bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.users--
	stopped := e.lifetime != s // Run waits for the drain
	if isRun {
		s.usedByEngineRun = false
	}
	if s.users > 0 {
		return false
	}
	e.endWorkerLifetime(s)
	return !stopped
}

// worker returns the active worker, or nil.
func (e *Engine) worker() *worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lifetime == nil {
		return nil
	}
	return e.lifetime.worker
}
