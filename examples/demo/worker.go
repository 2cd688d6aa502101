package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/seed8ec063be/durable"
)

// work is the worker process: it executes runs until it is killed, or until its
// standard input ends, which is how the parent, or the parent's death, stops it.
func work(ctx context.Context, where place, ledgerName string) error {
	l, err := openLedger(ledgerName)
	if err != nil {
		return err
	}
	store, err := where.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{define(l)}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all there is to learn
		stop()
	}()
	return engine.Run(ctx)
}

// process is a worker process as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	input io.Closer
	ended chan struct{}
	err   error // of the process; read after ended
}

func startWorker(where place, ledgerName string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-worker", "-ledger="+ledgerName, "-store="+where.Store, "-schema="+where.Schema)
	// Not an argument, which other users could read: a URL may hold a password.
	cmd.Env = append(os.Environ(), addressVariable+"="+where.Address)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	p := &process{cmd: cmd, input: input, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// kill is kill -9. It returns when the process is gone, and reports whether it was the
// signal that ended it.
func (p *process) kill() bool {
	err := p.cmd.Process.Kill()
	<-p.ended
	var exit *exec.ExitError
	return err == nil && errors.As(p.err, &exit) && exit.ExitCode() == -1 // no code: ended by a signal
}

// stop asks the worker to drain, and waits for it.
func (p *process) stop() error {
	_ = p.input.Close() // that is the request; a process that is gone has closed it already
	<-p.ended
	return p.err
}
