package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

var errDown = errors.New("pgtest: the server is not running")

// Pid returns the process ID of the postmaster, or 0 while the server is down.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isRunning() {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// isRunning reports whether the postmaster runs. The caller holds s.mu.
func (s *Server) isRunning() bool {
	if s.proc == nil {
		return false
	}
	select {
	case <-s.proc.done:
		return false
	default:
		return true
	}
}

// Restart starts the server again with the same port and data, and returns when it accepts
// connections. If the server still runs, Restart stops it first, in mode Fast.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRunning() {
		if err := s.stopLocked(Fast); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// After Kill9 the backends of the old postmaster use its shared memory until they notice its
	// death, and a new postmaster refuses to start until then. While the server was down, another
	// process may have used its port for a moment.
	for {
		err := s.startPostmaster(ctx)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "shared memory block") && !(s.hasRun && strings.Contains(err.Error(), "could not bind")) {
			return err
		}
		if err := sleepPollInterval(ctx, nil); err != nil {
			return err
		}
	}
}

// startPostmaster starts the postmaster and waits until it is ready.
func (s *Server) startPostmaster(ctx context.Context) error {
	log, err := os.OpenFile(s.logName(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has a descriptor of its own
	from, err := log.Stat()
	if err != nil {
		return err
	}
	cmd := s.command("postgres", "-D", s.dataPath())
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startChild(cmd)
	if err != nil {
		return fmt.Errorf("pgtest: start postgres: %w", err)
	}
	for !s.isReady(cmd.Process.Pid) {
		err := sleepPollInterval(ctx, p.done)
		if err == nil {
			continue
		}
		p.kill()
		text, _ := os.ReadFile(s.logName()) // an error leaves the text empty
		return fmt.Errorf("pgtest: postgres did not start: %w\n%s", err, tail(text[min(int(from.Size()), len(text)):]))
	}
	s.proc, s.hasRun = p, true
	return nil
}

// sleepPollInterval waits for pollEvery. It returns an error if ctx or done ends before.
func sleepPollInterval(ctx context.Context, done <-chan struct{}) error {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return errors.New("the process ended")
	}
}

// isReady reads postmaster.pid as pg_ctl does: line 1 is the process, line 8 its state.
func (s *Server) isReady(pid int) bool {
	text, err := os.ReadFile(s.dataPath("postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

// Stop stops the server and waits for its end. It keeps the data for Restart.
func (s *Server) Stop(mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isRunning() {
		return errDown
	}
	return s.stopLocked(mode)
}

func (s *Server) stopLocked(mode Mode) error {
	if err := s.thawLocked(); err != nil {
		return err
	}
	sig, ok := stopSignals[mode]
	if !ok {
		return fmt.Errorf("pgtest: stop mode %q is not one of smart, fast, immediate", mode)
	}
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("pgtest: stop: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	select {
	case <-s.proc.done:
		s.proc = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pgtest: the server did not stop (%s) within %v:\n%s", mode, stopTimeout, s.Log())
	}
}

// Kill9 kills the postmaster, but not its backends, with SIGKILL. Each backend ends when it notices
// that, so a statement in progress may still commit. Restart waits for the backends.
func (s *Server) Kill9() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isRunning() {
		return errDown
	}
	var orphans []int
	if s.isFrozen { // stopped backends cannot notice the death of the postmaster
		orphans = children(s.proc.cmd.Process.Pid)
	}
	s.proc.kill()
	for _, pid := range orphans {
		_ = killProcess(pid) // fails only if the process has ended
	}
	s.proc, s.isFrozen = nil, false
	return nil
}

// Close stops the server at once and removes its files. It may be called more than once, and on a
// server that is down.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRunning() {
		if err := s.stopLocked(Immediate); err != nil {
			s.proc.kill()
			s.proc = nil
		}
	}
	s.freeSharedMemory()
	return s.folder.remove()
}

// freeSharedMemory removes the small System V segment of a postmaster that was killed and not
// restarted. A postmaster that is stopped removes the segment and its pid file itself.
func (s *Server) freeSharedMemory() {
	text, err := os.ReadFile(s.dataPath("postmaster.pid"))
	if err != nil {
		return
	}
	if lines := strings.Split(string(text), "\n"); len(lines) >= 7 {
		if fields := strings.Fields(lines[6]); len(fields) == 2 {
			exec.Command("ipcrm", "-m", fields[1]).Run() // an error is ignored, because the segment has a few bytes only
		}
	}
}
