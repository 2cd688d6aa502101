package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/goleak"

	"github.com/seed8ec063be/durable"
)

// jobVariable is the environment variable that makes this program a worker; its value is a job as JSON. It is not
// an argument, which other users could read: an address may hold a password.
const jobVariable = "DURABLE_SOAK_JOB"

// job describes the work of a worker process.
type job struct {
	Place  place
	Killer bool // execute the run that kills its process, and no other
	// Version is the version of the code, firstVersion or secondVersion.
	Version string
	PollMs  int // of Config
	Queues  queueTimes
}

// shortPollMs is the Poll of the workers with odd indexes. The retention of a worker begins every 60 times its Poll.
const shortPollMs = 200

// The versions of the code, which differ in the name and in workflow revised. All workers begin with the first one, so it is seen first. A worker
// with an odd index that is started again has the second one.
const (
	firstVersion  = "first"
	secondVersion = "second"
)

const (
	// lease is short, so that stopped processes lose theirs often.
	lease = 1500 * time.Millisecond
	// parkAfter is short, so that runs are unloaded from memory often.
	parkAfter = 300 * time.Millisecond
	// crashes and killerCrashes are the values of MaxCrashes. No plan kills its process, so only the run
	// that does has the lower one.
	crashes       = 50
	killerCrashes = 3
)

// work is the main function of a worker: it executes runs until its standard input ends.
func work(text string) int {
	if err := runWorker(text); err != nil {
		fmt.Fprintln(os.Stderr, "soak: worker:", err)
		return 1
	}
	return 0
}

func runWorker(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	book, err := j.Place.ledger()
	if err != nil {
		return err
	}
	defer book.close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is the request to shut down
		stop()
	}()
	if err := serve(ctx, &j, book); err != nil {
		return err
	}
	if err := goleak.Find(goleak.IgnoreTopFunction("main.work")); err != nil {
		book.add(entry{Kind: kindLeaked, Err: err.Error()})
	}
	return nil
}

// serve runs one engine until ctx ends.
func serve(ctx context.Context, j *job, book *ledger) error {
	base, tx, err := j.Place.open(ctx)
	for errors.Is(err, durable.ErrUnavailable) && sleepCtx(ctx, 50*time.Millisecond) == nil { // the server is down
		base, tx, err = j.Place.open(ctx)
	}
	if ctx.Err() != nil && err != nil {
		return nil // the worker was shut down before it had connected
	}
	if err != nil {
		return err
	}
	defer base.Close()
	p := newInterpreter(book, j.Place.Folder)
	p.tx = tx
	cfg := durable.Config{
		Workflows: []durable.Definition{p.order, p.changing, collect, limited(book), tick(book), shift(book), brief(book), revised(book, j.Version), queued(book)}, Concurrency: 64, MaxCrashes: crashes,
		Lease: lease, ParkAfter: parkAfter, Grace: time.Second, Logger: j.Place.logger(), Version: j.Version, Poll: time.Duration(j.PollMs) * time.Millisecond, Retention: briefKeep(book),
	}
	f := newFolder(book)
	cfg.Workflows = append(cfg.Workflows, f.definitions()...)
	for _, w := range repaired(book) {
		cfg.Workflows = append(cfg.Workflows, w)
	}
	if j.Killer {
		cfg.Workflows, cfg.MaxCrashes = []durable.Definition{killer(book)}, killerCrashes
	}
	e, err := durable.New(&recordingStore{Store: base, ledger: book, version: j.Version}, cfg)
	if err != nil {
		return err
	}
	f.engine = e
	var changes sync.WaitGroup
	defer changes.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if !j.Killer {
		changes.Go(func() { changeQueues(ctx, e, book, j.Queues) })
	}
	if err := e.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// killer is the workflow of the run that kills its process.
func killer(book *ledger) *durable.Workflow[int, int] {
	return durable.Define(killerID, func(c *durable.Ctx, _ int) (int, error) {
		return 0, c.Do("kill", func(ctx context.Context) error {
			book.add(entry{Kind: kindStepCalled, Run: c.RunID(), Step: "kill", Attempt: durable.Attempt(ctx)})
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			<-ctx.Done() // until the signal takes effect
			return context.Cause(ctx)
		})
	})
}

// killerID is the ID of the run that kills its process, and the name of its workflow.
const killerID = "killer"
