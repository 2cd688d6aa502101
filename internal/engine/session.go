package engine

import "context"

// session is the life of one worker: it begins with the first who needs a worker and
// ends, drained, when the last has left. Run is one of them, and each caller who
// wants a run executed in this process is another, so that both may come and go in
// any order.
type session struct {
	w      *worker
	cancel context.CancelFunc
	done   chan struct{} // closed after the drain
	err    error         // why it could not begin, or had to stop; read after done
	users  int
	run    bool // Run is among the users
}

// Run executes runs until ctx ends, then drains and returns. It returns an error only
// if it could not begin, or if the database is lost for good. While others still wait for runs executed here (see Attach),
// it returns after them.
func (e *Engine) Run(ctx context.Context) error {
	s := e.join(true)
	if s == nil {
		return ErrRunning
	}
	select {
	case <-ctx.Done():
	case <-s.done:
	}
	e.part(s, true)
	<-s.done
	return s.err
}

// Attach makes sure that a worker is active until the returned function is called. The
// last to call it waits for the drain. The channel is closed if the worker ends before
// that; then the function answers why.
func (e *Engine) Attach() (ended <-chan struct{}, detach func() error) {
	s := e.join(false)
	return s.done, func() error {
		if last := e.part(s, false); last {
			<-s.done
		}
		select {
		case <-s.done:
			return s.err
		default:
			return nil
		}
	}
}

// join enters the current session, or begins one. It answers nil if Run is asked for
// twice.
func (e *Engine) join(run bool) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.session
	if s == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s = &session{w: newWorker(e), cancel: cancel, done: make(chan struct{})}
		e.session = s
		go func() {
			defer close(s.done)
			s.err = s.w.serve(ctx)
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
	s.run = s.run || run
	s.users++
	return s
}

// part leaves the session, and ends it if nobody else is in it.
func (e *Engine) part(s *session, run bool) (last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.users--
	if run {
		s.run = false
	}
	if s.users > 0 {
		return false
	}
	if e.session == s {
		e.session = nil
	}
	s.cancel()
	return true
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
