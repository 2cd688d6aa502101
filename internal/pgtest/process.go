package pgtest

import (
	"os/exec"
	"runtime"
)

// Goroutine is the function in which one goroutine waits for each running server,
// for goleak.IgnoreAnyFunction.
const Goroutine = "github.com/seed8ec063be/durable/internal/pgtest.wait"

// process is a child with its one waiter.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended
	err  error         // its end; read after done
}

// own starts the child on a thread of its own and keeps that thread until the child
// has ended: the kernel's parent-death signal is sent when the starting thread dies,
// and Go ends idle threads whenever it likes.
func own(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go wait(p, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func wait(p *process, started chan<- error) {
	runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill() // fails only if it has ended
	<-p.done
}
