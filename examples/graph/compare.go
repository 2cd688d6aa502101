package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

const (
	runID = "index"
	poll  = 20 * time.Millisecond // between two queries of the database
)

// work is the main function of a worker process.
func work(ctx context.Context, where fleet.Place, ledgerName string) error {
	l, err := openLedger(ledgerName)
	if err != nil {
		return err
	}
	store, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := durable.New(store, durable.Config{Workflows: define(l).all()})
	if err != nil {
		return err
	}
	ctx, stop := fleet.UntilParentEnds(ctx)
	defer stop()
	return engine.Run(ctx)
}

// compare executes the graph twice, undisturbed and with kills, and compares the reports.
func compare(ctx context.Context, store string, kills, packages int) (err error) {
	began := time.Now()
	folder, err := os.MkdirTemp("", "durable-graph-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	base, done, err := fleet.Provide("graph", store, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("ask go for GOROOT: %w", err)
	}
	source := Source{filepath.Join(strings.TrimSpace(string(out)), "src"), packages}
	calm := &trial{name: "undisturbed", where: base.Fresh("calm"), ledger: filepath.Join(folder, "calm.ledger"), source: source}
	if err := calm.execute(ctx); err != nil {
		return fmt.Errorf("the undisturbed run: %w", err)
	}
	hard := &trial{name: "with killed workers", where: base.Fresh("killed"), ledger: filepath.Join(folder, "killed.ledger"), source: source, kills: kills}
	if err := hard.execute(ctx); err != nil {
		return fmt.Errorf("the run whose workers are killed: %w", err)
	}
	mapped, skipped := 0, 0
	for _, n := range hard.graph.Nodes {
		if n.Items != nil {
			mapped += n.Items.Completed
		}
		if n.State == durable.NodeSkipped {
			skipped++
		}
	}
	equal := bytes.Equal(calm.output, hard.output)
	fmt.Printf("\nreport: %s\n", hard.output)
	fmt.Printf("graph: nodes=%d edges=%d mapped=%d kills=%d rerun=%d skipped=%d equal=%t seconds=%.1f\n",
		len(hard.graph.Nodes), len(hard.graph.Edges), mapped, hard.killed, len(hard.reruns), skipped, equal, time.Since(began).Seconds())
	var wrong []error
	if hard.killed != kills {
		wrong = append(wrong, fmt.Errorf("%d of %d kills hit the run", hard.killed, kills))
	}
	if len(hard.reruns) > 0 {
		wrong = append(wrong, fmt.Errorf("steps were executed again after their checkpoint was committed: %q", hard.reruns))
	}
	if !equal {
		wrong = append(wrong, fmt.Errorf("the reports differ: %s", calm.output))
	}
	return errors.Join(wrong...)
}

// trial is one run of the graph.
type trial struct {
	name   string
	where  fleet.Place
	ledger string
	source Source
	kills  int // how often a worker is to be killed

	output []byte
	graph  *durable.GraphInfo
	killed int
	reruns []string
}

func (t *trial) startWorker(name string) (*fleet.Process, error) {
	return t.where.Start(name, nil, nil, "-worker", "-ledger="+t.ledger)
}

// execute starts the run and two workers, kills the first worker while children are left to read, and returns when the run has ended.
func (t *trial) execute(ctx context.Context) (err error) {
	store, err := t.where.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(), t.where.Remove()) }()
	engine, err := durable.New(store, durable.Config{})
	if err != nil {
		return err
	}
	if _, err := define(nil).index.Start(ctx, engine, t.source, durable.ID(runID)); err != nil {
		return err
	}
	if _, err := openLedger(t.ledger); err != nil {
		return err
	}
	victim, err := t.startWorker("a worker")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, victim.Stop()) }()
	other, err := t.startWorker("the other worker")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Stop()) }()
	a := &audit{t.ledger, make(map[string]int)}
	p := newPicture(t.name)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll):
		}
		run, err := engine.Get(ctx, runID)
		if err != nil {
			return err
		}
		if err := a.note(ctx, engine, runID); err != nil {
			return err
		}
		t.graph, err = engine.Graph(ctx, runID)
		switch {
		case errors.Is(err, durable.ErrNoGraph):
			continue // no worker has begun yet
		case err != nil:
			return err
		}
		p.show(t.graph, t.killed)
		switch run.Status {
		case durable.StatusCompleted:
			p.end(t.graph, t.killed)
			t.output = run.Output
			t.reruns, err = a.reruns()
			return err
		case durable.StatusFailed, durable.StatusCancelled, durable.StatusExpired:
			return run.Err
		case durable.StatusPaused:
			return fmt.Errorf("the run was paused: %s", run.Reason)
		}
		if t.killed < t.kills && t.isDue() {
			time.Sleep(rand.N(15 * time.Millisecond)) // makes the moment random
			if !victim.Kill() {
				return fmt.Errorf("the worker ended before it was killed: %w", victim.Err())
			}
			t.killed++
			if victim, err = t.startWorker("a worker"); err != nil {
				return err
			}
		}
	}
}

// isDue reports whether the next kill is due: the kills are distributed over the packages that are read.
func (t *trial) isDue() bool {
	for _, n := range t.graph.Nodes {
		if n.Items != nil {
			return (n.Items.Completed+n.Items.Running)*(t.kills+1) >= t.killed*t.source.Packages && n.State == durable.NodeRunning
		}
	}
	return false
}

func packagesOf(output []byte) (list []Package, err error) {
	return list, json.Unmarshal(output, &list)
}
