package durabletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// action is what happens to a random graph while it runs.
type action uint8

const (
	stopWorker action = iota
	crashBefore
	crashAfter
	crashWithoutAReply
	cancelRun
)

// disturbance is an action at the write with the number, counted from the start of the worker.
type disturbance struct {
	what action
	at   int
}

func drawDisturbances(t *rapid.T) []disturbance {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) disturbance {
		return disturbance{rapid.SampledFrom([]action{stopWorker, crashBefore, crashAfter, crashWithoutAReply, cancelRun}).Draw(t, "what"), rapid.IntRange(1, 40).Draw(t, "at")}
	}), 0, 3).Draw(t, "disturbances")
}

var errStopped = errors.New("the worker was stopped")

// countingStore closes reached after the commit with the number.
type countingStore struct {
	store.Store
	left    atomic.Int32
	reached chan struct{}
}

func (s *countingStore) Commit(ctx context.Context, b *store.Batch) error {
	err := s.Store.Commit(ctx, b)
	if s.left.Add(-1) == 0 {
		close(s.reached)
	}
	return err
}

// graphTrial is one run of a random graph with its disturbances.
type graphTrial struct {
	graph     *randomGraph
	store     store.Store
	client    *durable.Engine // which executes nothing
	harness   *crashTest
	driver    *clockDriver
	recorder  *testRecorder
	cancelled bool  // the cancel was acknowledged
	err       error // of the run
}

// execute lets one worker after the other execute the run, until it has ended.
func (r *graphTrial) execute(ctx context.Context, disturbances []disturbance) error {
	last := disturbance{at: -1}
	for _, d := range append(disturbances, last) {
		when := map[action]crashMoment{crashBefore: crashBeforeWrite, crashAfter: crashAfterCommit, crashWithoutAReply: crashWithoutReply}[d.what]
		process := newSimulatedProcess(d.at, when)
		runs, err := readRunTree(ctx, r.store)
		if err == nil {
			err = r.harness.expireLeases(ctx, r.store, process, r.driver.clock.Now()) // also reads which steps are finished
		}
		if err != nil {
			return fmt.Errorf("take over %d runs: %w", len(runs), err)
		}
		counting := &countingStore{Store: r.store, reached: make(chan struct{})}
		if when == noCrash {
			counting.left.Store(int32(d.at))
		}
		r.harness.start = func(ctx context.Context, e *durable.Engine) (func(context.Context) error, error) {
			run, err := r.graph.workflow.Handle(ctx, e, crashedID)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return r.await(ctx, run, d, counting.reached) }, nil
		}
		switch err := r.harness.runProcess(ctx, counting, r.driver, r.recorder, process); {
		case process.isDead(), errors.Is(err, errStopped):
		default:
			return err
		}
	}
	return errors.New("the last worker left without a result")
}

// await waits for the end of the run, or until the worker is to be stopped.
func (r *graphTrial) await(ctx context.Context, run *durable.Run[int], d disturbance, reached <-chan struct{}) error {
	ended := make(chan error, 1)
	go func() {
		_, err := run.Result(ctx)
		ended <- err
	}()
	select {
	case r.err = <-ended:
		return r.err
	case <-reached:
	}
	if d.what == stopWorker {
		return errStopped // Result returns when runProcess returns, because its context ends
	}
	done, err := r.client.Cancel(ctx, crashedID)
	switch {
	case err == nil: // if the run had ended, only descendants of it were cancelled
		r.cancelled = r.cancelled || slices.Contains(slices.Concat(done.DoneIDs, done.RequestedIDs), run.RunID())
	case !errors.Is(err, durable.ErrState):
		return err
	}
	r.err = <-ended
	return r.err
}

// Random graphs of all kinds of nodes, with all policies, end as the evaluator predicts: also if workers are stopped or killed and the
// run is cancelled meanwhile. No step is executed again after its checkpoint was committed.
func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	var template databaseTemplate
	left := testsize.Of(80, 60)
	check := func(rt *rapid.T) {
		if left--; left < 0 {
			return // rapid counts in the whole binary, so the number of checks is bounded here
		}
		r := &graphTrial{graph: newRandomGraph(drawGraph(rt, 30)), recorder: new(testRecorder)}
		disturbances := drawDisturbances(rt)
		ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
		defer cancel()
		s, remove, err := template.openCopy()
		if err != nil {
			rt.Fatal(err)
		}
		defer remove()
		r.store, r.driver = s, newClockDriver(t, newClock(time.Now()))
		defer r.driver.close()
		r.harness = &crashTest{t: t, settings: newSettings(t, "CrashEverywhere", nil), workflows: []durable.Definition{r.graph.workflow, r.graph.child}}
		client := startEngine(t, s, r.driver, r.recorder, nil, r.harness.settings, nil)
		defer client.Stop()
		r.client = client.Engine
		if _, err := r.graph.workflow.Start(ctx, r.client, 1, durable.ID(crashedID)); err != nil {
			rt.Fatal(err)
		}
		for i := range r.graph.nodes {
			if n := &r.graph.nodes[i]; n.kind == durable.NodeReceive && !n.fails {
				if err := r.client.Signal(ctx, crashedID, n.name(), i); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if err := r.execute(ctx, disturbances); err != nil && !errors.As(err, new(*durable.RunError)) {
			rt.Fatalf("%v", err)
		}
		for _, c := range r.recorder.reruns {
			rt.Errorf("step %q was executed again after its checkpoint was committed", c.Name)
		}
		info, err := r.client.Graph(ctx, crashedID)
		if err != nil {
			rt.Fatal(err)
		}
		var errs differences
		r.graph.check(&errs, info, r.err, r.cancelled)
		if len(errs) > 0 {
			rt.Fatalf("%s\nnodes %+v\ndisturbances %+v", strings.Join(errs, "\n"), r.graph.nodes, disturbances)
		}
	}
	for left > 0 {
		rapid.Check(t, check)
	}
}

// Random graphs without choices end the same after a crash at each write.
func TestRandomGraphsCrashEverywhere(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) []drawnNode {
		nodes := drawGraph(t, 7)
		for i := range nodes {
			if nodes[i].choices = nil; nodes[i].unmet == durable.FailRun {
				nodes[i].unmet = durable.SkipNode // which nodes it ends is a matter of time
			}
			if nodes[i].kind == durable.NodeReceive {
				nodes[i].fails = true // CrashEverywhere sends no signals here
			}
		}
		return nodes
	})
	for seed := range 4 {
		r := newRandomGraph(draw.Example(seed))
		CrashEverywhere(t, r.workflow, 1, Workflows(r.child))
	}
}

// differences collects what check finds.
type differences []string

func (d *differences) Errorf(format string, args ...any) {
	*d = append(*d, fmt.Sprintf(format, args...))
}

// callCounts counts the calls of the functions of nodes.
type callCounts struct {
	mu    sync.Mutex
	calls map[int]int // by node and item, see randomGraph.value
}

func (c *callCounts) add(key int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = make(map[int]int)
	}
	c.calls[key]++
}

func (c *callCounts) of(key int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key]
}
