package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

func init() {
	// race starts the same IDs as another process does at the same moment.
	scenarios["race"] = func(ctx context.Context, j *job, s durable.Store) error {
		w := calm(j.Ledger)
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		if _, err := e.Workers(ctx); err != nil { // the connections are there
			return err
		}
		say("ready")
		if err := awaitFile(j.File); err != nil {
			return err
		}
		var all sync.WaitGroup
		for i := range j.Runs {
			if j.N > 0 { // the other way round
				i = j.Runs - 1 - i
			}
			all.Go(func() {
				run, err := w.Start(ctx, e, i, durable.ID(fmt.Sprint("r", i)))
				if err != nil {
					say("error", err)
					return
				}
				v, err := run.Result(ctx)
				say("run", i, run.RunID(), v, err)
			})
		}
		all.Wait()
		say("all")
		return <-ended
	}
}

// Row 25: two processes start the same IDs at the same moment: one run each, executed
// once, and both get its result. The same ID with another input or workflow is refused.
func TestRow25_TwoProcessesStartOneID(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const runs = 60
		l, file := newLedger(t), filepath.Join(t.TempDir(), "go")
		s := db.openIn(t)
		var ps []*process
		for i := range 2 {
			ps = append(ps, spawn(t, job{Scenario: "race", DB: db, Ledger: l, File: file, Runs: runs, N: int64(i)}))
		}
		for _, p := range ps {
			p.expect("ready")
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		answers := make(map[string]int)
		for _, p := range ps {
			p.expect("all")
			p.signal(syscall.SIGTERM)
			p.mustEndWell()
			for _, line := range p.seen {
				if strings.HasPrefix(line, "run ") {
					answers[line]++
				}
			}
		}
		pids := make(map[int]int)
		for key, n := range l.counts(t) {
			if n != 1 && !strings.Contains(key, "/ack ") { // a run that changed hands is replayed
				t.Errorf("%s ran %d times", key, n)
			}
		}
		for _, e := range l.of(t, "", "n0") {
			pids[e.Pid]++
		}
		if len(answers) != runs {
			t.Errorf("%d different answers for %d runs", len(answers), runs)
		}
		for line, n := range answers {
			if n != 2 || !strings.HasSuffix(line, "<nil>") {
				t.Errorf("%q from %d processes", line, n)
			}
		}
		e := engineOn(t, s, durable.Config{})
		_, err := calm(l).Start(bounded(t), e, 999, durable.ID("r1"))
		mustFail(t, err, durable.ErrIDConflict, "r1", "calm", "input")
		_, err = panics.Start(bounded(t), e, "x", durable.ID("r1"))
		mustFail(t, err, durable.ErrIDConflict, "r1", "calm", "panics")
		if run, err := calm(l).Start(bounded(t), e, 1, durable.ID("r1")); err != nil || run.ID() != "r1" {
			t.Error(run, err)
		}
		t.Logf("ids=%d starts=%d runs=%d executed_twice=0 by_process=%v conflicts=2", runs, 2*runs, len(answers), pids)
	})
}

// Row 26: a name used twice is refused with both places; concurrent steps keep their
// own values; a branch on the order of completion replays to the same values.
func TestRow26_NamesAndConcurrentSteps(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		twice := durable.Define("twice", func(c *durable.Ctx, _ int) (int, error) {
			if _, err := c.Step("send", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			return c.Step("send", func(context.Context) (int, error) { l.did(context.Background(), "twice", "send"); return 2, nil })
		})
		nested := durable.Define("nested", func(c *durable.Ctx, _ int) (int, error) {
			return c.Step("outer", func(context.Context) (int, error) {
				return c.Step("inner", func(context.Context) (int, error) { return 1, nil })
			})
		})
		var mu sync.Mutex
		executions := 0
		hold := make(chan struct{})
		many := durable.Define("many", func(c *durable.Ctx, n int) ([]int, error) {
			out := make([]int, n)
			finished := make(chan int, n)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					name := fmt.Sprint("part ", i)
					v, err := c.Step(name, func(ctx context.Context) (int, error) {
						l.did(ctx, c.ID(), name)
						return i * i, nil
					})
					if err == nil {
						out[i] = v
						finished <- i
					}
				})
			}
			all.Wait()
			if len(finished) < n {
				return nil, context.Cause(c)
			}
			// Who was first differs from execution to execution, so it is recorded.
			who := <-finished
			winner, err := c.Step("winner", func(context.Context) (int, error) { return who, nil })
			if err != nil {
				return nil, err
			}
			v, err := c.Step(fmt.Sprint("after ", winner), func(ctx context.Context) (int, error) {
				l.did(ctx, c.ID(), "after")
				return winner, nil
			})
			mu.Lock()
			executions++
			leave := executions == 1
			mu.Unlock()
			if leave {
				close(hold)
				<-c.Done()
				return nil, context.Cause(c)
			}
			return append(out, v), err
		})
		s := db.openIn(t)
		e := engineOn(t, s, durable.Config{}, twice, nested, many)
		stop := runEngine(t, e)
		_, err := start(t, e, twice, 1, durable.ID("twice")).Result(bounded(t))
		mustFail(t, err, durable.ErrDuplicateStep, "send", "twice", "same_test.go:")
		if strings.Count(fmt.Sprint(err), "same_test.go:") != 2 {
			t.Errorf("%v does not name both places", err)
		}
		_, err = start(t, e, nested, 1, durable.ID("nested")).Result(bounded(t))
		mustFail(t, err, durable.ErrNestedStep, "inner", "nested")
		const parts = 40
		start(t, e, many, parts, durable.ID("many"))
		<-hold
		stop()
		e = engineOn(t, s, durable.Config{}, twice, nested, many)
		out, err := many.Call(bounded(t), e, parts, durable.ID("many"))
		if err != nil || len(out) != parts+1 {
			t.Fatal(out, err)
		}
		for i := range parts {
			if out[i] != i*i {
				t.Errorf("part %d is %d", i, out[i])
			}
		}
		for key, n := range l.counts(t) {
			if n != 1 {
				t.Errorf("%s ran %d times", key, n)
			}
		}
		if executions != 2 {
			t.Errorf("%d executions", executions)
		}
		t.Logf("concurrent_steps=%d executions=%d rerun=0 winner=%d duplicates_refused=1 nested_refused=1", parts, executions, out[parts])
	})
}

// Row 33: a worker that lacks the workflow leaves its runs alone, also those whose lease
// has expired.
func TestRow33_WorkerLacksTheWorkflow(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l, file := newLedger(t), filepath.Join(t.TempDir(), "never")
		s := db.openIn(t)
		client := engineOn(t, s, durable.Config{})
		start(t, client, hold(l, file), 1, durable.ID("new"))
		p := spawn(t, job{Scenario: "hold", DB: db, Ledger: l, ID: "orphan", Runs: 1, File: file})
		p.expect("holding orphan")
		await(t, "the started markers", func() bool {
			return history(t, client, "orphan0")["hold"].Status == "started" && history(t, client, "new")["hold"].Status == "started"
		})
		p.kill()
		expire(t, db, "orphan0")
		expire(t, db, "new")
		start(t, client, hold(l, file), 1, durable.ID("fresh"))
		lacks := engineOn(t, s, durable.Config{Name: "lacks", Poll: 20 * time.Millisecond}, calm(l))
		stop := runEngine(t, lacks)
		// The worker works: it takes its own workflow's runs, one claim after the other, while the others are due.
		const worked = 12
		for i := range worked {
			if v, err := start(t, client, calm(l), i, durable.ID(fmt.Sprint("c", i))).Result(bounded(t)); err != nil || v != 4*i {
				t.Fatal(v, err)
			}
		}
		for id, epoch := range map[string]int{"orphan0": 1, "new": 1, "fresh": 0} {
			at := info(t, client, id)
			if at.Epoch != epoch || at.Status != durable.StatusRunning && at.Status != durable.StatusPending || at.Crashes != 0 {
				t.Errorf("%s was touched: %+v", id, at)
			}
		}
		stop()
		has := engineOn(t, s, durable.Config{}, hold(l, filepath.Dir(file)))
		runEngine(t, has)
		for _, id := range []string{"orphan0", "new", "fresh"} {
			if _, err := result(t, has, hold(l, file), id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		t.Logf("runs_left_alone=3 own_runs_done=%d finished_by_one_that_has_it=3", worked)
	})
}
