package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

const (
	treeID          = "source-tree"
	readingInterval = 3 * time.Millisecond  // between two readings of the ledger
	queryInterval   = 50 * time.Millisecond // between two queries of the database
)

// trial is one run from its start to its end, executed by one worker process after the other.
type trial struct {
	name   string
	where  fleet.Place
	folder string // for the ledger
	root   string // of the source
	steps  int    // number of steps of the run
	plan   []int  // the worker is killed when this many steps have begun

	engine    *durable.Engine // a client: it executes nothing
	worker    *fleet.Process
	audit     *auditor
	bar       *bar
	killed    time.Time // when the last worker was killed; zero once its successor executes steps
	takeovers []time.Duration

	output     []byte // the recorded report
	completed  int    // checkpoints at the end
	reexecuted int
	offenders  []string // names of the re-executed steps
}

// plan distributes the kills over the work: each kill is at a random point of its own part of the
// work.
func plan(steps, kills int) []int {
	at := make([]int, kills)
	for i := range at {
		part := 0.9 / float64(kills)
		at[i] = int(float64(steps) * (0.04 + part*(float64(i)+0.8*rand.Float64())))
	}
	return at
}

func (t *trial) ledgerName() string { return filepath.Join(t.folder, t.name+".ledger") }

func (t *trial) startWorker() (*fleet.Process, error) {
	return t.where.Start("the worker", nil, nil, "-worker", "-ledger="+t.ledgerName())
}

// execute starts the run, and ensures that a worker lives until the run has ended.
func (t *trial) execute(ctx context.Context) (err error) {
	store, err := t.where.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(), t.where.Remove()) }()
	if t.engine, err = durable.New(store, durable.Config{}); err != nil {
		return err
	}
	if _, err = define(nil).Start(ctx, t.engine, Source{t.root}, durable.ID(treeID)); err != nil {
		return err
	}
	if t.audit, err = newAuditor(t.ledgerName()); err != nil {
		return err
	}
	defer t.audit.file.Close()
	t.bar = newBar(t.name, t.steps)
	defer t.bar.end()
	if t.worker, err = t.startWorker(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.worker.Stop()) }()
	if err := t.watch(ctx); err != nil {
		return err
	}
	return t.conclude(ctx)
}

// watch reads the ledger, kills and restarts workers according to the plan, and returns when the
// run has ended.
func (t *trial) watch(ctx context.Context) error {
	looks, asks := time.NewTicker(readingInterval), time.NewTicker(queryInterval)
	defer looks.Stop()
	defer asks.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.worker.Ended():
			return fmt.Errorf("the worker process ended by itself: %w", t.worker.Err())
		case <-asks.C:
			run, err := t.engine.Get(ctx, treeID)
			if err != nil {
				return err
			}
			if ended, err := fleet.JudgeRun(run); ended || err != nil {
				return err
			}
		case <-looks.C:
			before := t.audit.process
			if err := t.audit.read(); err != nil {
				return err
			}
			t.bar.show(len(t.audit.begun))
			works := t.audit.process != before
			if works && !t.killed.IsZero() {
				t.takeovers = append(t.takeovers, time.Since(t.killed))
				t.killed = time.Time{}
			}
			if len(t.plan) > 0 && len(t.audit.begun) >= t.plan[0] && t.killed.IsZero() {
				if err := t.killWorker(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// killWorker kills the worker with SIGKILL at a random moment. It checks that the run was being
// executed, records the checkpoints that are committed now, and starts another worker.
func (t *trial) killWorker(ctx context.Context) error {
	t.plan = t.plan[1:]
	time.Sleep(rand.N(15 * time.Millisecond)) // makes the moment random
	if !t.worker.Kill() {
		return fmt.Errorf("the worker ended before it was killed: %w", t.worker.Err())
	}
	t.killed = time.Now()
	run, err := t.engine.Get(ctx, treeID)
	if err != nil {
		return err
	}
	names, err := t.checkpoints(ctx)
	if err != nil {
		return err
	}
	interrupted, err := t.audit.commit(names)
	if err != nil {
		return err
	}
	if run.Status != durable.StatusRunning || run.Owner == "" || len(names) == 0 || len(names) >= t.steps {
		return fmt.Errorf("a kill missed: the run was %s with %d of %d steps checkpointed", run.Status, len(names), t.steps)
	}
	t.bar.say("kill -9 of the worker: %d of %d steps are checkpointed, %d interrupted", len(names), t.steps, interrupted)
	t.worker, err = t.startWorker()
	return err
}

// checkpoints returns the names of the steps whose outcome is recorded.
func (t *trial) checkpoints(ctx context.Context) ([]string, error) {
	history, err := t.engine.History(ctx, treeID)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range history {
		if c.Status == "completed" || c.Status == "failed" {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

// conclude stores the results of the run in the trial.
func (t *trial) conclude(ctx context.Context) error {
	if err := t.audit.read(); err != nil {
		return err
	}
	names, err := t.checkpoints(ctx)
	if err != nil {
		return err
	}
	run, err := t.engine.Get(ctx, treeID)
	if err != nil {
		return err
	}
	for name := range t.audit.reexecuted {
		t.offenders = append(t.offenders, name)
	}
	slices.Sort(t.offenders)
	t.output, t.completed, t.reexecuted = run.Output, len(names), len(t.offenders)
	t.bar.show(t.steps)
	if len(t.takeovers) > 0 {
		t.bar.say("the next worker was at work %s after a kill, at worst", slices.Max(t.takeovers).Round(time.Millisecond))
	}
	return nil
}
