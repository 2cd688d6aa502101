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

// Pid is the postmaster's process ID, 0 while the server is down.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// running is asked with mu held.
func (s *Server) running() bool {
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

// Restart starts the server again, on the same port and data, and answers when it
// accepts connections. One that still runs is stopped first, fast.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		if err := s.stop(Fast); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// After Kill9 the orphans of the old postmaster hold its shared memory until each
	// notices; the new one refuses to start before that. While the server was down, another process may
	// have been given its port for a moment.
	for {
		err := s.run(ctx)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "shared memory block") && !(s.ran && strings.Contains(err.Error(), "could not bind")) {
			return err
		}
		if err := pause(ctx, nil); err != nil {
			return err
		}
	}
}

// run starts the postmaster and waits until it says that it is ready.
func (s *Server) run(ctx context.Context) error {
	log, err := os.OpenFile(s.logName(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	from, err := log.Stat()
	if err != nil {
		return err
	}
	cmd := s.command("postgres", "-D", s.data())
	cmd.Stdout, cmd.Stderr = log, log
	p, err := own(cmd)
	if err != nil {
		return fmt.Errorf("pgtest: start postgres: %w", err)
	}
	for !s.ready(cmd.Process.Pid) {
		err := pause(ctx, p.done)
		if err == nil {
			continue
		}
		p.kill()
		text, _ := os.ReadFile(s.logName()) // an error leaves the text empty
		return fmt.Errorf("pgtest: postgres did not start: %w\n%s", err, tail(text[min(int(from.Size()), len(text)):]))
	}
	s.proc, s.ran = p, true
	return nil
}

// pause waits one poll, less if ctx or done ends.
func pause(ctx context.Context, done <-chan struct{}) error {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return errors.New("it ended")
	}
}

// ready reads postmaster.pid as pg_ctl does: line 1 is the process, line 8 its state.
func (s *Server) ready(pid int) bool {
	text, err := os.ReadFile(s.data("postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

// Stop asks the server to stop and waits until it has. The data stay, for Restart.
func (s *Server) Stop(mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return errDown
	}
	return s.stop(mode)
}

func (s *Server) stop(mode Mode) error {
	if err := s.thaw(); err != nil {
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

// Kill9 kills the postmaster, and it alone, with SIGKILL. Its backends end as each
// notices, so that a statement in flight may still commit; Restart waits for them.
func (s *Server) Kill9() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return errDown
	}
	var orphans []int
	if s.frozen { // they could not notice
		orphans = children(s.proc.cmd.Process.Pid)
	}
	s.proc.kill()
	for _, pid := range orphans {
		_ = killProcess(pid) // one that has ended is what is wanted
	}
	s.proc, s.frozen = nil, false
	return nil
}

// Close stops the server at once and removes all that it wrote. It may be called
// again, and on a server that is down.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		if err := s.stop(Immediate); err != nil {
			s.proc.kill()
			s.proc = nil
		}
	}
	s.freeSharedMemory()
	return s.folder.remove()
}

// freeSharedMemory removes the small System V segment of a postmaster that was killed
// and not restarted; every other end removes it, and the pid file that names it, itself.
func (s *Server) freeSharedMemory() {
	text, err := os.ReadFile(s.data("postmaster.pid"))
	if err != nil {
		return
	}
	if lines := strings.Split(string(text), "\n"); len(lines) >= 7 {
		if fields := strings.Fields(lines[6]); len(fields) == 2 {
			exec.Command("ipcrm", "-m", fields[1]).Run() // a few bytes: not worth failing for
		}
	}
}
