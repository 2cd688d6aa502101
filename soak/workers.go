package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// workers holds the worker processes by their index. Its methods are safe for concurrent use, but
// only one goroutine at a time may start, stop or kill the worker of an index.
type workers struct {
	place     place
	queues    queueTimes
	mu        sync.Mutex
	processes []*process
	started   []bool  // whether there has been a worker of the index
	errs      []error // of workers that ended by themselves
}

func newWorkers(p place, size int, queues queueTimes) *workers {
	return &workers{place: p, queues: queues, processes: make([]*process, size), started: make([]bool, size)}
}

// startMissing starts a worker for each index that has none.
func (w *workers) startMissing() error {
	for i := range w.processes {
		if w.worker(i) == nil {
			if err := w.start(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *workers) worker(i int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processes[i]
}

// start starts worker i.
func (w *workers) start(i int) error {
	version, poll := firstVersion, 0
	if i%2 == 1 {
		poll = shortPollMs
	}
	if w.mu.Lock(); w.started[i] && i%2 == 1 {
		version = secondVersion
	}
	w.mu.Unlock()
	p, err := startProcess(job{Place: w.place, Queues: w.queues, Version: version, PollMs: poll})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes[i], w.started[i] = p, true
	return nil
}

// kill sends SIGKILL to worker i, and waits for its end.
func (w *workers) kill(i int) {
	p := w.worker(i)
	killed := p.kill()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !killed {
		w.errs = append(w.errs, fmt.Errorf("a worker ended by itself: %w", p.end()))
	}
	w.processes[i] = nil
}

// stop drains all workers. The error names those that did not drain, or that had ended before.
func (w *workers) stop() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := w.errs
	for i, p := range w.processes {
		if p == nil {
			continue
		}
		if err := p.drain(); err != nil {
			errs = append(errs, fmt.Errorf("worker %d failed: %w", i, err))
		}
		w.processes[i] = nil
	}
	return errors.Join(errs...)
}

// end kills the workers that are left.
func (w *workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if p != nil {
			p.kill()
		}
	}
}

// process is a worker process, as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	input  io.Closer
	stderr outputHead
	ended  chan struct{}
	err    error // of its exit; read it after ended is closed
}

func startProcess(j job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), ended: make(chan struct{})}
	// By default the race detector delays every exit by a second.
	p.cmd.Env = append(os.Environ(), jobVariable+"="+string(text), "GORACE=atexit_sleep_ms=0 halt_on_error=1")
	p.cmd.Stderr = &p.stderr
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// kill sends SIGKILL, and reports whether the process ended by it.
func (p *process) kill() bool {
	_ = p.cmd.Process.Kill() // it fails if the process has ended; killed then reports false
	<-p.ended
	return p.wasKilled()
}

func (p *process) wasKilled() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// drain makes the worker shut down, and waits for its end.
func (p *process) drain() error {
	_ = p.input.Close() // the worker shuts down at the end of its input; closing fails if the process has ended
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	select {
	case <-p.ended:
		return p.end()
	case <-limit.C:
		_ = p.signal(syscall.SIGQUIT) // the Go runtime prints the stacks
		<-p.ended
		return fmt.Errorf("it did not drain within 30 s: %w", p.end())
	}
}

// end waits for the end of the process, and returns an error, with the beginning of its output, unless
// it exited with code 0.
func (p *process) end() error {
	<-p.ended
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", p.err, p.stderr.text)
}

// outputHead keeps the first 16 KiB of what a process wrote, where a crash prints its reason.
type outputHead struct{ text []byte }

// Write implements io.Writer.
func (h *outputHead) Write(b []byte) (int, error) {
	h.text = append(h.text, b[:min(len(b), 16<<10-len(h.text))]...)
	if os.Getenv("DURABLE_SOAK_LOG") != "" {
		return os.Stderr.Write(b)
	}
	return len(b), nil
}
