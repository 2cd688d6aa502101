package main

import (
	"bytes"
	"context"
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
	runID       = "index"
	poll        = 5 * time.Millisecond // between two looks at the ledger and the database
	serverKills = 2                    // of a server that the example has started

	patienceOfLook = 100 * time.Millisecond // a look at a server that was killed must not delay the next kill
)

// work is the main function of a worker process.
func work(ctx context.Context, where fleet.Place, ledgerName string) error {
	l, err := openLedger(ledgerName)
	if err != nil {
		return err
	}
	ctx, stop := fleet.UntilParentEnds(ctx)
	defer stop()
	store, err := where.Open(ctx)
	for errors.Is(err, durable.ErrUnavailable) && ctx.Err() == nil { // the server was killed while this worker began
		time.Sleep(poll)
		store, err = where.Open(ctx)
	}
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := durable.New(store, durable.Config{Workflows: define(l).all()})
	if err != nil {
		return err
	}
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
	hard := &trial{name: "with kills", where: base.Fresh("killed"), ledger: filepath.Join(folder, "killed.ledger"), source: source, kills: kills, steps: calm.steps}
	if base.OwnsServer() {
		hard.serverKills = serverKills
	}
	if err := hard.execute(ctx); err != nil {
		return fmt.Errorf("the run with kills: %w", err)
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
	wanted := kills + hard.serverKills
	fmt.Printf("\nreport: %s\n", hard.output)
	fmt.Printf("kill -9: %d of workers, %d of the database server; after %v of %d steps\n", hard.killed-hard.killedServers, hard.killedServers, hard.killedAfter, hard.steps)
	fmt.Printf("graph: nodes=%d edges=%d mapped=%d kills=%d rerun=%d skipped=%d equal=%t seconds=%.1f\n",
		len(hard.graph.Nodes), len(hard.graph.Edges), mapped, hard.killed, len(hard.reruns), skipped, equal, time.Since(began).Seconds())
	var wrong []error
	if hard.killed != wanted {
		wrong = append(wrong, fmt.Errorf("%d of %d kills hit the run", hard.killed, wanted))
	}
	if len(hard.reruns) > 0 {
		wrong = append(wrong, fmt.Errorf("steps were executed again after their checkpoint was committed: %q", hard.reruns))
	}
	if hard.steps != calm.steps || mapped != packages || skipped != 1 {
		wrong = append(wrong, fmt.Errorf("%d steps were executed, %d undisturbed; %d of %d packages were read, %d nodes were skipped", hard.steps, calm.steps, mapped, packages, skipped))
	}
	if !equal {
		wrong = append(wrong, fmt.Errorf("the reports differ: %s", calm.output))
	}
	return errors.Join(wrong...)
}

// trial is one run of the graph.
type trial struct {
	name        string
	where       fleet.Place
	ledger      string
	source      Source
	kills       int // how often a worker is to be killed
	serverKills int // how often the server of the database is to be killed
	steps       int // how many steps the graph executes; execute sets it

	workers       []*fleet.Process
	output        []byte
	graph         *durable.GraphInfo
	killed        int
	killedServers int   // of these
	killedAfter   []int // how many steps had begun
	reruns        []string
}

func (t *trial) startWorker() (*fleet.Process, error) {
	return t.where.Start("a worker", nil, nil, "-worker", "-ledger="+t.ledger)
}

// execute starts the run and two workers, kills workers and the server while it is executed, and returns when the run has ended.
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
	defer func() {
		for _, w := range t.workers {
			err = errors.Join(err, w.Stop())
		}
	}()
	for range 2 {
		w, err := t.startWorker()
		if err != nil {
			return err
		}
		t.workers = append(t.workers, w)
	}
	p := newPicture(t.name)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll):
		}
		if err := t.killIfDue(ctx); err != nil {
			return err
		}
		within, cancel := context.WithTimeout(ctx, patienceOfLook)
		ended, err := t.look(within, engine, p)
		cancel()
		switch {
		case errors.Is(err, durable.ErrNoGraph): // no worker has begun yet
		case errors.Is(err, durable.ErrUnavailable), within.Err() != nil && ctx.Err() == nil && !ended: // the server was killed
		case err != nil:
			return err
		case ended:
			return t.audit(ctx, engine)
		}
	}
}

// look reads and draws the state of the graph, and reports whether the run has completed.
func (t *trial) look(ctx context.Context, engine *durable.Engine, p *picture) (ended bool, err error) {
	run, err := engine.Get(ctx, runID)
	if err != nil {
		return false, err
	}
	if t.graph, err = engine.Graph(ctx, runID); err != nil {
		return false, err
	}
	p.show(t.graph, t.killed)
	if ended, err = fleet.JudgeRun(run); ended && err == nil {
		p.end(t.graph, t.killed)
		t.output = run.Output
	}
	return ended, err
}

// audit compares the ledger with what is committed.
func (t *trial) audit(ctx context.Context, engine *durable.Engine) error {
	all, err := readLedger(t.ledger)
	if err != nil {
		return err
	}
	t.steps = countSteps(all)
	t.reruns, err = reruns(ctx, engine, all)
	return err
}

// killIfDue kills a worker or the server if that is due. The kills are distributed over the steps of the graph; every third is one of the
// server.
func (t *trial) killIfDue(ctx context.Context) error {
	wanted := t.kills + t.serverKills
	if t.killed == wanted {
		return nil
	}
	all, err := readLedger(t.ledger)
	if err != nil {
		return err
	}
	begun := countSteps(all)
	hasGoneOn := t.killed == 0 || begun > t.killedAfter[t.killed-1] || begun > t.steps*9/10
	if begun*(wanted+1) < (t.killed+1)*t.steps || !hasGoneOn {
		return nil
	}
	t.killedAfter = append(t.killedAfter, begun)
	t.killed++
	if t.killedServers < t.serverKills && t.killed%3 == 2 {
		t.killedServers++
		return t.where.KillServer(ctx)
	}
	victim := rand.N(len(t.workers))
	if !t.workers[victim].Kill() {
		return fmt.Errorf("the worker ended before it was killed: %w", t.workers[victim].Err())
	}
	t.workers[victim], err = t.startWorker()
	return err
}
