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

// work is the main function of the worker process. It executes runs until the process is killed, or
// until its standard input ends because the parent has closed it or has died.
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
		_, _ = io.Copy(io.Discard, os.Stdin) // only the end of the input matters
		stop()
	}()
	return engine.Run(ctx)
}

// process is a worker process, as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	input io.Closer
	ended chan struct{}
	err   error // result of the process; read it after ended is closed
}

func startWorker(where place, ledgerName string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-worker", "-ledger="+ledgerName, "-store="+where.Store, "-schema="+where.Schema)
	// The address is not an argument, which other users could read: a URL may contain a password.
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

// kill sends SIGKILL and waits for the end of the process. It reports whether the signal ended the
// process.
func (p *process) kill() bool {
	err := p.cmd.Process.Kill()
	<-p.ended
	var exit *exec.ExitError
	return err == nil && errors.As(p.err, &exit) && exit.ExitCode() == -1 // without an exit code, a signal ended the process
}

// stop drains the worker, and waits for the end of the process.
func (p *process) stop() error {
	_ = p.input.Close() // the worker drains at the end of its input; if the process has ended, the pipe is closed already
	<-p.ended
	return p.err
}
