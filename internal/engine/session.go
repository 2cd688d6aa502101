package engine

import "context"

// session is the life of one worker: it begins with the first who needs a worker and
// ends, drained, when Run's context ends, or else when the last has left. Run is one of them, and each caller who
// wants a run executed in this process is another, so that both may come and go in
// any order.
type session struct {
	w      *worker
	cancel context.CancelFunc
	done   chan struct{} // closed after the drain
	failed chan struct{} // closed before done if there is an error
	err    error         // why it could not begin, or had to stop; read after done
	users  int
	run    bool // Run is among the users
}

// Run executes runs until ctx ends, then drains and returns. It returns an error only
// if it could not begin, or if the database is lost for good. Others who wait for runs (see Attach) go on waiting, for
// results from other processes.
func (e *Engine) Run(ctx context.Context) error {
	s := e.join(true)
	if s == nil {
		return ErrRunning
	}
	select {
	case <-ctx.Done():
		e.stop(s)
	case <-s.done:
	}
	e.part(s, true)
	<-s.done
	return s.err
}

// Attach makes sure that a worker is active until the returned function is called, unless Run was stopped: then this
// process executes nothing until Run is called again, and executed is false. The last to call the function waits for
// the drain. The channel is closed if the worker could not begin, or had to stop; then the function returns why.
//
// In a step of this engine it does nothing: the step is executed by a worker that waits for its end.
func (e *Engine) Attach(ctx context.Context) (executed bool, failed <-chan struct{}, detach func() error) {
	if t, ok := ctx.Value(attemptKey{}).(*task); ok && t.r.e == e {
		return true, nil, func() error { return nil }
	}
	s := e.join(false)
	if s == nil {
		return false, nil, func() error { return nil }
	}
	return true, s.failed, func() error {
		last := e.part(s, false)
		select {
		case <-s.failed:
			last = true // at any moment
		default:
		}
		if !last {
			return nil
		}
		<-s.done
		return s.err
	}
}

// join enters the current session, or begins one. It returns nil if Run is asked for
// twice, and to others if Run was stopped.
func (e *Engine) join(run bool) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !run && e.stopped {
		return nil
	}
	s := e.session
	if s == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s = &session{w: newWorker(e), cancel: cancel, done: make(chan struct{}), failed: make(chan struct{})}
		e.session = s
		go func() {
			defer close(s.done)
			if s.err = s.w.serve(ctx); s.err != nil {
				close(s.failed)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.session == s {
				e.session = nil // it could not begin, or had to stop
			}
		}()
	}
	if run && s.run {
		return nil
	}
	if run {
		s.run, e.stopped = true, false
	}
	s.users++
	return s
}

// stop ends the session of Run, whoever else is in it, and has no other begin before Run is called again.
func (e *Engine) stop(s *session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	e.end(s)
}

// end ends the session. e.mu is held.
func (e *Engine) end(s *session) {
	if e.session == s {
		e.session = nil
	}
	s.cancel()
}

// part leaves the session, and ends it if nobody else is in it. It reports whether the caller is to wait for that.
func (e *Engine) part(s *session, run bool) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.users--
	stopped := e.session != s // Run waits for its end
	if run {
		s.run = false
	}
	if s.users > 0 {
		return false
	}
	e.end(s)
	return !stopped
}

// worker is the active one, or nil.
func (e *Engine) worker() *worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil {
		return nil
	}
	return e.session.w
}
