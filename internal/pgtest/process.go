package pgtest

import (
	"os/exec"
	"runtime"
)

// Goroutine names the function of the goroutines that wait for running servers. Tests pass it to
// goleak.IgnoreAnyFunction.
const Goroutine = "github.com/seed8ec063be/durable/internal/pgtest.wait"

// process is a child process, for which one goroutine waits.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended
	err  error         // the result of cmd.Wait; read it after done is closed
}

// startChild starts the child on a thread of its own, and keeps that thread until the child has ended.
// The kernel sends the parent-death signal when the starting thread dies, and Go may end idle threads
// at any time.
func startChild(cmd *exec.Cmd) (*process, error) {
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
	p.cmd.Process.Kill() // fails only if the child has ended
	<-p.done
}
