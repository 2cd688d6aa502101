package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/seed8ec063be/durable"
)

// work is the worker process: it executes orders until it is killed, or until its
// standard input ends, which is how the parent, or the parent's death, stops it.
func work(ctx context.Context, where place, shop client) error {
	store, err := where.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := durable.New(store, durable.Config{
		Name: shop.worker, Workflows: []durable.Definition{defineCheckout(shop), defineShip(shop)},
		MaxCrashes: 100, // it is not the orders that kill their workers, several in a second
	})
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
	name  string
	cmd   *exec.Cmd
	input io.Closer
	asked atomic.Bool // to end, in whatever way
	ended chan struct{}
	err   error // of the process; read after ended
}

// startWorker calls fail if the process ends and nobody asked it to.
func startWorker(where place, name, shop string, fail func(error)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-worker="+name, "-shop="+shop, "-store="+where.Store, "-schema="+where.Schema)
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
	p := &process{name: name, cmd: cmd, input: input, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		if p.err = cmd.Wait(); !p.asked.Load() {
			fail(fmt.Errorf("%s ended by itself: %w", name, cmp.Or(p.err, errors.New("without an error"))))
		}
	}()
	return p, nil
}

// kill is kill -9. It returns when the process is gone, and reports whether it was the
// signal that ended it.
func (p *process) kill() bool {
	p.asked.Store(true)
	err := p.cmd.Process.Kill()
	<-p.ended
	var exit *exec.ExitError
	return err == nil && errors.As(p.err, &exit) && exit.ExitCode() == -1 // no code: ended by a signal
}

// stop asks the worker to drain, and waits for it.
func (p *process) stop() error {
	p.asked.Store(true)
	_ = p.input.Close() // that is the request; a process that is gone has closed it already
	<-p.ended
	return p.err
}
