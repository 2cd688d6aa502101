package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
)

// Process is a process of the example, as its parent sees it.
type Process struct {
	Name  string
	cmd   *exec.Cmd
	input io.Closer
	asked atomic.Bool // Kill or Stop was called
	ended chan struct{}
	err   error // result of the process; it is set before ended is closed
}

// Start executes this program again with other arguments. If fail is not nil, Start calls it when the process
// ends before Kill or Stop is called. Standard output goes to out; nil discards it.
func (p Place) Start(name string, out io.Writer, fail func(error), args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return p.StartProgram(self, name, out, fail, args...)
}

// StartProgram does what Start does, with another program.
func (p Place) StartProgram(program, name string, out io.Writer, fail func(error), args ...string) (*Process, error) {
	cmd := exec.Command(program, append(args, "-store="+p.Store, "-schema="+p.Schema)...)
	cmd.Env = append(os.Environ(), addressVariable+"="+p.Address)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	process := &Process{Name: name, cmd: cmd, input: input, ended: make(chan struct{})}
	go func() {
		defer close(process.ended)
		if process.err = cmd.Wait(); fail != nil && !process.asked.Load() {
			fail(fmt.Errorf("%s ended by itself: %w", name, cmp.Or(process.err, errors.New("without an error"))))
		}
	}()
	return process, nil
}

// Kill sends SIGKILL and waits for the end of the process. It reports whether the signal ended the
// process.
func (p *Process) Kill() bool {
	p.asked.Store(true)
	err := p.cmd.Process.Kill()
	<-p.ended
	var exit *exec.ExitError
	return err == nil && errors.As(p.err, &exit) && exit.ExitCode() == -1 // without an exit code, a signal ended the process
}

// Stop drains the process, and waits for its end.
func (p *Process) Stop() error {
	p.asked.Store(true)
	_ = p.input.Close() // the process drains at the end of its input; if the process has ended, the pipe is closed already
	return p.Err()
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err waits for the end of the process, and returns its error.
func (p *Process) Err() error {
	<-p.ended
	return p.err
}

// UntilParentEnds returns a context that ends when the parent has closed the standard input of this process,
// or has died.
func UntilParentEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only the end of the input matters
		stop()
	}()
	return ctx, stop
}
