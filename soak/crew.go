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

// crew is the worker processes, each in a place of its own. Its methods are safe for
// concurrent use, but only one goroutine does anything to one worker.
type crew struct {
	place   place
	mu      sync.Mutex
	workers []*process
	errs    []error // of workers that ended by themselves
}

func newCrew(p place, size int) *crew { return &crew{place: p, workers: make([]*process, size)} }

// fill starts a worker wherever there is none.
func (c *crew) fill() error {
	for i := range c.workers {
		if c.worker(i) == nil {
			if err := c.hire(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *crew) worker(i int) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workers[i]
}

// hire starts a worker in place i.
func (c *crew) hire(i int) error {
	p, err := start(job{Place: c.place})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers[i] = p
	return nil
}

// kill does kill -9 to the worker in place i, and waits for its end.
func (c *crew) kill(i int) {
	p := c.worker(i)
	killed := p.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !killed {
		c.errs = append(c.errs, fmt.Errorf("a worker ended by itself: %w", p.end()))
	}
	c.workers[i] = nil
}

// stop has all workers drain. An error says which did not, or had ended before.
func (c *crew) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := c.errs
	for i, p := range c.workers {
		if p == nil {
			continue
		}
		if err := p.drain(); err != nil {
			errs = append(errs, fmt.Errorf("worker %d did not end well: %w", i, err))
		}
		c.workers[i] = nil
	}
	return errors.Join(errs...)
}

// end kills what is left.
func (c *crew) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.workers {
		if p != nil {
			p.kill()
		}
	}
}

// process is a worker as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	input  io.Closer
	stderr lastWords
	ended  chan struct{}
	err    error // its end; read after ended
}

func start(j job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), ended: make(chan struct{})}
	// The race detector would make every exit a second long.
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

// kill is kill -9. It reports whether that was what ended the process.
func (p *process) kill() bool {
	_ = p.cmd.Process.Kill() // one that has ended already is told by how
	<-p.ended
	return p.killed()
}

func (p *process) killed() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// drain asks the worker to end, and waits for it.
func (p *process) drain() error {
	_ = p.input.Close() // that is the request; a process that is gone has closed it already
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	select {
	case <-p.ended:
		return p.end()
	case <-limit.C:
		_ = p.signal(syscall.SIGQUIT) // the Go runtime answers with the stacks
		<-p.ended
		return fmt.Errorf("it did not drain within 30 s: %w", p.end())
	}
}

// end is how the process ended, with its last words. Nil: well.
func (p *process) end() error {
	<-p.ended
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", p.err, p.stderr.text)
}

// lastWords keeps the beginning of what a process wrote, where a crash tells its reason.
type lastWords struct{ text []byte }

// Write implements io.Writer.
func (w *lastWords) Write(b []byte) (int, error) {
	w.text = append(w.text, b[:min(len(b), 16<<10-len(w.text))]...)
	if os.Getenv("DURABLE_SOAK_LOG") != "" {
		return os.Stderr.Write(b)
	}
	return len(b), nil
}
