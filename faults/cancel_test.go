package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// brink is a workflow whose last step takes the given time, and then it completes.
func brink(l ledger) *durable.Workflow[time.Duration, string] {
	return durable.Define("brink", func(c *durable.Ctx, last time.Duration) (string, error) {
		l.add(Entry{Run: c.ID(), Step: "enter"})
		if err := c.Compensate("undo", func(ctx context.Context) error { l.did(ctx, c.ID(), "undo"); return nil }); err != nil {
			return "", err
		}
		return c.Step("last", func(ctx context.Context) (string, error) {
			l.did(ctx, c.ID(), "last")
			realtime.Pass(last, "the work of a step takes this long")
			return "done", nil
		})
	})
}

const deepest = 5

// growing is a workflow that keeps starting children, which start children, down to
// the deepest, and waits for them. Each run of it has something to undo.
func growing(l ledger) *durable.Workflow[int, int] {
	var w *durable.Workflow[int, int]
	w = durable.Define("growing", func(c *durable.Ctx, depth int) (int, error) {
		l.add(Entry{Run: c.RunID(), Step: "enter", Attempt: depth})
		if err := c.Compensate("undo", func(ctx context.Context) error { l.did(ctx, c.RunID(), "undo"); return nil }); err != nil {
			return 0, err
		}
		if err := c.Do("begin", func(context.Context) error { return nil }); err != nil || depth == deepest {
			return 1, err
		}
		sum, rounds, width := 1, 1, 1
		if depth == 0 {
			rounds = 100
		}
		if depth < 2 {
			width = 2
		}
		for round := range rounds {
			children := make([]*durable.Child[int], width)
			for i := range children {
				var err error
				if children[i], err = c.StartChild(fmt.Sprint(round, ".", i), w, depth+1); err != nil {
					return 0, err
				}
			}
			for _, child := range children {
				n, err := child.Wait()
				if err != nil {
					return 0, err
				}
				sum += n
			}
		}
		return sum, nil
	})
	return w
}

func init() {
	// control executes the workflows to which the tests of pause, resume and cancel do
	// something.
	scenarios["control"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{
			Workflows: []durable.Definition{
				brink(j.Ledger), growing(j.Ledger), undoing(j.Ledger),
				endless(j.Ledger, j.File), brief(j.Ledger), held(j.Ledger),
			}, Lease: j.Lease,
		})
		if err != nil {
			return err
		}
		return e.Run(ctx)
	}
}

// twoWorkers starts two processes that execute runs, and waits for them.
func twoWorkers(t *testing.T, client *durable.Engine, j job) (ps []*process) {
	t.Helper()
	for range 2 {
		ps = append(ps, spawn(t, j))
	}
	awaitWorkers(t, client, len(ps))
	return ps
}

func awaitWorkers(t *testing.T, client *durable.Engine, n int) {
	t.Helper()
	await(t, fmt.Sprint(n, " workers"), func() bool {
		ws, err := client.Workers(bounded(t))
		return err == nil && len(ws) >= n
	})
}

// Row 29: trees that keep growing in two processes are cancelled from a third, in some
// of the cases while a process is killed: nothing of them is alive then, nothing more is
// born, and what each run did is undone once.
func TestRow29_CancelAgainstChildCreation(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const each = 5
		batches := testsize.Of(6, 4)
		l := newLedger(t)
		client := engineOn(t, db.openIn(t), durable.Config{})
		j := job{Scenario: "control", DB: db, Ledger: l}
		ps := twoWorkers(t, client, j)
		killed := make(map[int]bool)
		var roots []string
		var mu sync.Mutex
		alive := 0 // runs that a cancel met
		for batch := range batches {
			var all sync.WaitGroup
			for i := range each {
				id := fmt.Sprint("tree ", batch, ".", i)
				roots = append(roots, id)
				start(t, client, growing(l), 0, durable.ID(id))
			}
			for _, id := range roots[batch*each:] {
				all.Go(func() {
					for size, n := 1+rand.IntN(20), 0; n < size; { // it is growing
						realtime.Pass(10*time.Millisecond, "between two looks at the tree")
						_, n = grown(t, client, id)
					}
					effect, err := client.Cancel(bounded(t), id)
					if err != nil {
						t.Errorf("%s: %v", id, err)
					}
					mu.Lock()
					defer mu.Unlock()
					alive += effect.Done + effect.Requested
				})
			}
			if batch%2 == 1 {
				realtime.Pass(rand.N(300*time.Millisecond), "the kill meets another moment in each round")
				killed[ps[0].cmd.Process.Pid] = true
				ps[0].kill()
				ps = append(ps[1:], spawn(t, j))
			}
			all.Wait()
			for _, id := range roots[batch*each:] {
				await(t, "the end of all of "+id, func() bool { return live(t, client, id) == 0 })
			}
		}
		// All has settled: the last batch has, and the others are long over.
		nodes, byStatus, depth := 0, make(map[durable.Status]int), 0
		entered, undone := make(map[string]bool), make(map[string][]Entry)
		for _, e := range l.read(t) {
			if e.Step == "undo" {
				undone[e.Run] = append(undone[e.Run], e)
			} else {
				entered[e.Run] = true
				depth = max(depth, e.Attempt)
			}
		}
		torn := 0
		for _, id := range roots {
			tree, err := client.Tree(bounded(t), id)
			if err != nil {
				t.Fatal(err)
			}
			if tree.Status != durable.StatusCancelled {
				t.Errorf("%s is %s", id, tree.Status)
			}
			var walk func(n *durable.RunNode)
			walk = func(n *durable.RunNode) {
				nodes++
				byStatus[n.Status]++
				want := 0
				if n.Status == durable.StatusCancelled && entered[n.RunID] {
					want = 1
				}
				did := undone[n.RunID]
				if len(did) == want+1 && killed[did[0].Pid] { // its process died before that was recorded
					torn++
				} else if len(did) != want {
					t.Errorf("%s of %s is %s, and was undone %d times", n.RunID, id, n.Status, len(did))
				}
				for _, child := range n.Children {
					walk(child)
				}
			}
			walk(tree)
		}
		if ended := byStatus[durable.StatusCompleted] + byStatus[durable.StatusCancelled]; ended != nodes || byStatus[durable.StatusCancelled] <= len(roots) || depth < deepest {
			t.Errorf("%v of %d runs, down to %d", byStatus, nodes, depth)
		}
		t.Logf("trees=%d kills=%d runs=%d by_status=%v deepest=%d alive_at_the_cancel=%d undone=%d undo_cut_off_by_a_kill=%d live_orphans=0",
			len(roots), len(killed), nodes, byStatus, depth, alive, len(undone), torn)
	})
}

// undoing is a workflow with three things to undo. Undoing the second and the first never
// ends the first time.
func undoing(l ledger) *durable.Workflow[int, int] {
	return durable.Define("undoing", func(c *durable.Ctx, _ int) (int, error) {
		for i := range 3 {
			if err := c.Compensate(fmt.Sprint("undo ", i), func(ctx context.Context) error {
				l.did(ctx, c.ID(), fmt.Sprint("undo ", i))
				if i < 2 && durable.Attempt(ctx) == 1 {
					say("undoing", i)
					select {} // until it is killed
				}
				return nil
			}); err != nil {
				return 0, err
			}
			if err := c.Do(fmt.Sprint("do ", i), func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
		}
		return c.Receive[int]("nothing")
	})
}

// Row 29: the processes that undo what a cancelled run did are killed in the middle of it.
// What was undone is not undone again, and the rest is.
func TestRow29_KilledWhileItUndoes(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		client := engineOn(t, db.openIn(t), durable.Config{})
		run := start(t, client, undoing(l), 0, durable.ID("undone"))
		j := job{Scenario: "control", DB: db, Ledger: l, Lease: 5 * time.Second}
		p := spawn(t, j)
		await(t, "the wait", func() bool { return info(t, client, "undone").Status == durable.StatusWaiting })
		if effect, err := client.Cancel(bounded(t), "undone"); err != nil || effect.Requested != 1 {
			t.Fatal(effect, err)
		}
		for i := range 2 {
			p.expect(fmt.Sprint("undoing ", 1-i))
			await(t, "the started marker", func() bool { return history(t, client, "undone")[fmt.Sprint("undo ", 1-i)].Status == "started" })
			p.kill()
			p = spawn(t, j)
		}
		_, err := run.Result(bounded(t))
		mustFail(t, err, durable.ErrCancelled, "undone")
		var did []string
		for _, e := range l.of(t, "undone", "") {
			did = append(did, fmt.Sprint(e.Step, ".", e.Attempt))
		}
		if want := "[undo 2.1 undo 1.1 undo 1.2 undo 0.1 undo 0.2]"; fmt.Sprint(did) != want {
			t.Errorf("did %v, want %v", did, want)
		}
		t.Logf("kills=2 compensations=3 executions=%v", did)
	})
}

// grown counts the runs of a tree that have not ended, and all of them.
func grown(t testing.TB, e *durable.Engine, id string) (live, all int) {
	t.Helper()
	counts, err := e.TreeCounts(bounded(t), id)
	if err != nil {
		t.Fatal(err)
	}
	for status, n := range counts.Statuses {
		all += n
		switch status {
		case durable.StatusPending, durable.StatusRunning, durable.StatusWaiting, durable.StatusPaused:
			live += n
		}
	}
	return live, all
}

func live(t testing.TB, e *durable.Engine, id string) int {
	t.Helper()
	n, _ := grown(t, e, id)
	return n
}
