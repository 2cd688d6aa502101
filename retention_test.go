package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

const day = 24 * time.Hour

// endedTree commits a root run with a checkpoint and a tag, and its child, which both ended that long ago with the status.
func endedTree(t testing.TB, s durable.Store, workflow, id string, ago time.Duration, status store.Status) (root, kid store.Run) {
	t.Helper()
	now := orFail(s.Now(within(t)))(t)
	ended, epoch := now.Add(-ago), store.Epoch{Count: 1, Nonce: 7}
	run := func(name string) store.Run {
		return store.Run{
			Name: name, Workflow: workflow, Queue: "default", Status: store.Running, Epoch: epoch, Owner: store.ValidNullUUID(uuid.New()), Input: []byte(`""`),
			CreatedAt: ended.Add(-time.Hour), StartedAt: ended.Add(-time.Hour), WakeAt: now.Add(time.Hour),
		}
	}
	root, kid = run(id), run("kid")
	root.UUID = store.NewUUIDAt(store.ShardOfName(id), ended.Add(-time.Hour))
	kid.UUID, kid.Parent = store.ChildUUID(root.UUID, "kid", ended.Add(-time.Minute), 1), uuid.NullUUID{UUID: root.UUID, Valid: true}
	step := store.Step{
		Run: root.UUID, Name: "first", Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: epoch, Output: []byte("1"),
		StartedAt: ended, EndedAt: ended,
	}
	end := func(r store.Run) *store.OwnershipEnd {
		return &store.OwnershipEnd{UUID: r.UUID, ParentToWake: r.Parent, Epoch: epoch, Status: status, Output: []byte(`"x"`), EndedAt: ended, Now: ended}
	}
	for _, b := range []*store.Batch{
		{Starts: []*store.StartWrite{{Run: root}}},
		{Starts: []*store.StartWrite{{Run: kid, ParentEpoch: epoch}}, Steps: []*store.StepWrite{{Step: step}}},
		{OwnershipEnds: []*store.OwnershipEnd{end(kid)}},
		{OwnershipEnds: []*store.OwnershipEnd{end(root)}},
	} {
		if err := s.Commit(within(t), b); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := s.SetTags(within(t), root.UUID, []store.Tag{{Key: "a", Value: "b"}}, store.Epoch{}, store.ActorAndReason{}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	return root, kid
}

// sweeping returns an engine that sweeps at once, and its log.
func sweeping(t testing.TB, s durable.Store, keep durable.Retention, workflows ...durable.Definition) (*durable.Engine, *lines) {
	t.Helper()
	cfg, log := logged(durable.Config{Workflows: workflows, Retention: keep, Poll: 10 * time.Millisecond})
	return engineWith(t, s, cfg), log
}

func exists(t testing.TB, e *durable.Engine, id string) bool {
	t.Helper()
	_, err := e.Get(within(t), id)
	if err != nil && !errors.Is(err, durable.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// Each root is kept as long as its workflow and status say, and goes with its tree. Runs of workflows that the worker
// does not execute stay, unless they are named.
func TestRetentionKeepsByWorkflowAndStatus(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		nothing := func(c *durable.Ctx, in string) (string, error) { return in, nil }
		flow, audit := durable.Define("flow", nothing), durable.Define("audit", nothing)
		var gone, kept []string
		add := func(to *[]string, workflow, id string, ago time.Duration, status store.Status) {
			root, kid := endedTree(t, s, workflow, id, ago, status)
			*to = append(*to, root.Name, kid.UUID.String())
		}
		add(&gone, "flow", "completed", 2*day, store.Completed)
		add(&gone, "flow", "cancelled", 4*day, store.Cancelled)
		add(&gone, "elsewhere", "named", 2*time.Hour, store.Failed)
		add(&kept, "flow", "young", 20*time.Hour, store.Completed)
		add(&kept, "flow", "failed", 100*day, store.Failed)
		add(&kept, "flow", "cancelled lately", 2*day, store.Cancelled)
		add(&kept, "audit", "audited", 100*day, store.Completed)
		add(&kept, "unknown", "of others", 100*day, store.Completed)
		e, log := sweeping(t, s, durable.Retention{
			Runs:      durable.RetentionByStatus{Completed: day, Cancelled: 3 * day},
			Workflows: map[string]durable.RetentionByStatus{"audit": {}, "elsewhere": durable.KeepFor(time.Hour)},
		}, flow, audit)
		running(t, e)
		log.await(t, "retention deleted what is no longer kept")
		if n := log.only(t, "retention deleted what is no longer kept")["count"]; n != 6.0 {
			t.Errorf("%v runs were deleted, want 6", n)
		}
		for _, id := range gone {
			if exists(t, e, id) {
				t.Errorf("%s is there", id)
			}
		}
		for _, id := range kept {
			if !exists(t, e, id) {
				t.Errorf("%s was deleted", id)
			}
		}
		if got := orFail(flow.Call(within(t), e, "again", durable.ID("completed")))(t); got != "again" {
			t.Errorf("a start with a deleted ID returned %q", got)
		}
	})
}

// An engine without retention deletes nothing.
func TestRetentionIsOffByDefault(t *testing.T) {
	s := openFile(t)
	flow := durable.Define("flow", func(c *durable.Ctx, in string) (string, error) { return in, nil })
	endedTree(t, s, "flow", "old", 1000*day, store.Completed)
	e, log := sweeping(t, s, durable.Retention{}, flow)
	stop := running(t, e)
	orFail(flow.Call(within(t), e, "x"))(t)
	stop()
	log.none(t, "retention deleted what is no longer kept")
	if !exists(t, e, "old") {
		t.Error("a run was deleted")
	}
}

// The archive gets each run of a tree before it is deleted. While it fails, the tree stays as a whole.
func TestRetentionArchivesFirst(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		flow := durable.Define("flow", func(c *durable.Ctx, in string) (string, error) { return in, nil })
		root, kid := endedTree(t, s, "flow", "old", 2*day, store.Completed)
		bad, badKid := endedTree(t, s, "flow", "bad", 2*day, store.Completed)
		worse, _ := endedTree(t, s, "flow", "worse", 2*day, store.Completed)
		var mu sync.Mutex
		var calls []string
		e, log := sweeping(t, s, durable.Retention{Runs: durable.KeepFor(day), Archive: func(_ context.Context, x *durable.Exported) error {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, x.Run.RunID)
			switch x.Run.RunID {
			case root.UUID.String():
				if x.Format != durable.ExportFormat || x.Run.ID != "old" || x.Run.Status != durable.StatusCompleted || len(x.History) != 1 || x.History[0].Name != "first" || x.Generation != 0 {
					t.Errorf("archived: %+v", x)
				}
			case badKid.UUID.String():
				return errDeclined
			case worse.UUID.String():
				panic("no archive")
			}
			return nil
		}}, flow)
		running(t, e)
		log.await(t, "retention deleted what is no longer kept")
		if n := log.only(t, "retention deleted what is no longer kept")["count"]; n != 2.0 || exists(t, e, "old") || exists(t, e, kid.UUID.String()) {
			t.Errorf("%v runs were deleted", n)
		}
		for _, id := range []string{"bad", bad.UUID.String(), badKid.UUID.String(), "worse"} {
			if !exists(t, e, id) {
				t.Errorf("%s was deleted without an archive", id)
			}
		}
		if text := log.String(); !strings.Contains(text, errDeclined.Error()) || !strings.Contains(text, "no archive") {
			t.Errorf("the log does not say why runs were kept:\n%s", text)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, id := range []uuid.UUID{root.UUID, kid.UUID, bad.UUID, badKid.UUID} {
			if !slices.Contains(calls, id.String()) {
				t.Errorf("%s was not archived: %v", id, calls)
			}
		}
	})
}

// Old generations of a run are deleted beneath it. The newest superseded one stays, so that numbers are never given twice.
func TestRetentionOfGenerations(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		flow := durable.Define("flow", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("charge", func(context.Context) error { return bank.err() }); err != nil {
				return "", err
			}
			return c.Receive[string]("go")
		})
		e := engineOn(t, s, flow)
		stop := running(t, e)
		wantFailed(t, orFail(flow.Start(ctx, e, "", durable.ID("order")))(t))
		for range 2 {
			orFail(e.Retry(ctx, "order"))(t)
			wantFailed(t, orFail(flow.Handle(ctx, e, "order"))(t))
		}
		bank.fixed.Store(true)
		orFail(e.Retry(ctx, "order"))(t)
		stop()
		now := orFail(s.Now(ctx))(t)
		for shard := range int16(store.ShardCount) { // as the sweep of a day later does
			page := orFail(s.OldGenerations(ctx, store.OldGenerationsQuery{Shard: shard, SupersededBefore: now.Add(time.Hour), Limit: 10}))(t)
			for _, g := range page.Generations {
				d := &store.DeleteTreesRequest{Now: now.Add(day), Trees: []store.DeleteTreeRequest{{Root: g.ArchiveID, EndedBefore: now.Add(time.Hour)}}}
				if err := s.DeleteTrees(ctx, d); err != nil || d.Trees[0].DeletedGenerationCount != 1 {
					t.Errorf("generation %d: %+v, %v", g.Number, d.Trees[0], err)
				}
			}
		}
		all := orFail(e.Generations(ctx, "order"))(t)
		if len(all) != 2 || all[0].Number != 3 || all[1].Number != 4 || all[1].Verb != durable.VerbRetry {
			t.Fatalf("the generations are %+v", all)
		}
		for number, want := range map[int]error{1: durable.ErrNotFound, 2: durable.ErrNotFound, 3: nil, 4: nil, 5: durable.ErrNotFound} {
			if _, err := e.History(ctx, "order", durable.InGeneration(number)); !errors.Is(err, want) {
				t.Errorf("generation %d: %v", number, err)
			}
		}
		running(t, e)
		if err := e.Signal(ctx, "order", "go", "done"); err != nil {
			t.Fatal(err)
		}
		wantResult(t, flow, e, "order", "done")
	})
}

// A detached child of an earlier generation is kept as long as its own workflow and status say, and not as long as the generation, or as
// the run whose generation it was.
func TestRetentionOfDetachedChildrenOfAContinuedRun(t *testing.T) {
	onRawDatabases(t, func(t *testing.T, d *rawDatabase) {
		ctx := within(t)
		job := durable.Define("job", func(c *durable.Ctx, in string) (string, error) {
			if strings.HasPrefix(in, "bad") {
				return "", errors.New(in)
			}
			return in, nil
		})
		between := durable.Define("between", func(c *durable.Ctx, in string) (string, error) {
			_, err := c.StartChild("job", job, in, durable.Detached())
			return "", err
		})
		loop := durable.Define("loop", func(c *durable.Ctx, n int) (string, error) {
			if n == 4 {
				return c.Receive[string]("go")
			}
			if _, err := c.Child("between", between, fmt.Sprint("bad below ", n)); err != nil {
				return "", err
			}
			for _, in := range []string{"good", "bad"} {
				if _, err := c.StartChild(in, job, in, durable.Detached()); err != nil {
					return "", err
				}
			}
			return "", c.ContinueAsNew(n + 1)
		})
		e := engineOn(t, d.Store, loop, between, job)
		stop := running(t, e)
		orFail(loop.Start(ctx, e, 1, durable.ID("loop")))(t)
		jobs := func(status durable.Status) []durable.RunInfo {
			return orFail(e.List(ctx, durable.Filter{Workflow: "job", Status: []durable.Status{status}}, durable.Page{}))(t).Runs
		}
		awaitStatus(t, e, "loop", durable.StatusWaiting)
		waitFor(t, func() bool { return len(jobs(durable.StatusCompleted)) == 3 && len(jobs(durable.StatusFailed)) == 6 })
		stop()
		ago := " - interval '2 days'"
		if d.prefix == "durable_" {
			ago = " - 172800000000"
		}
		for _, sql := range []string{"generation SET at = at" + ago, "run SET ended_at = ended_at" + ago + " WHERE ended_at IS NOT NULL"} {
			if _, err := d.exec(ctx, "UPDATE "+d.prefix+sql); err != nil {
				t.Fatal(err)
			}
		}
		sweeper, log := sweeping(t, d.Store, durable.Retention{Generations: day}, loop, between, job)
		stop = running(t, sweeper)
		log.await(t, "retention deleted what is no longer kept")
		stop()
		if n := len(orFail(e.Generations(ctx, "loop"))(t)); n != 2 {
			t.Errorf("%d generations are left, want 2", n)
		}
		if good, bad := len(jobs(durable.StatusCompleted)), len(jobs(durable.StatusFailed)); good != 3 || bad != 6 {
			t.Errorf("after the sweep of generations, %d jobs that completed and %d that failed are left, want all of 3 and 6", good, bad)
		}
		roots, now := 0, orFail(d.Now(ctx))(t)
		for shard := range int16(store.ShardCount) { // as a sweep of runs reads them when they were created long ago
			q := store.EndedTreesQuery{Shard: shard, CreatedBefore: now.Add(time.Hour), EndedBefore: now.Add(-day), Limit: 100}
			for _, r := range orFail(d.EndedTrees(ctx, q))(t).Roots {
				if roots++; r.Workflow != "job" {
					t.Errorf("run %v of workflow %q counts as a root", r.UUID, r.Workflow)
				}
			}
		}
		if roots != 8 {
			t.Errorf("%d jobs count as roots, want 8: all but the one below a child that is there", roots)
		}
		orFail(e.Terminate(ctx, "loop"))(t)
		orFail(e.Delete(ctx, "loop"))(t)
		if bad := len(jobs(durable.StatusFailed)); bad != 5 {
			t.Errorf("after the deletion of the loop, %d jobs that failed are left, want 5: only the one below a child that is deleted goes", bad)
		}
	})
}

// Several workers share the work: every tree is deleted by one of them, and one that stops in the middle leaves whole trees.
func TestRetentionOfSeveralWorkers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		flow := durable.Define("flow", func(c *durable.Ctx, in string) (string, error) { return in, nil })
		const trees = 60
		for i := range trees {
			endedTree(t, s, "flow", fmt.Sprint("old-", i), 2*day, store.Completed)
		}
		keep := durable.Retention{Runs: durable.KeepFor(day)}
		var archived sync.Once
		stopped := make(chan struct{})
		first := keep
		first.Archive = func(context.Context, *durable.Exported) error { archived.Do(func() { close(stopped) }); return nil }
		e, _ := sweeping(t, s, first, flow)
		stop := running(t, e)
		select {
		case <-stopped:
		case <-within(t).Done():
			t.Fatal("nothing was archived")
		}
		stop()
		left := 0
		for i := range trees {
			if node, err := e.Tree(within(t), fmt.Sprint("old-", i)); err == nil {
				left++
				if len(node.Children) != 1 {
					t.Errorf("half of tree %d is left", i)
				}
			}
		}
		var logs []*lines
		for range 3 {
			e, log := sweeping(t, s, keep, flow)
			running(t, e)
			logs = append(logs, log)
		}
		waitFor(t, func() bool {
			page, err := e.List(within(t), durable.Filter{Workflow: "flow"}, durable.Page{})
			return err == nil && len(page.Runs) == 0
		})
		t.Logf("%d of %d trees were left by the worker that stopped", left, trees)
		for _, log := range logs {
			log.none(t, "retention could not delete everything that is due; trying again with the next sweep")
		}
	})
}

// Old events are deleted, and readers go on.
func TestRetentionOfEvents(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		flow := durable.Define("flow", func(c *durable.Ctx, in string) (string, error) { return in, nil })
		for i := range 5 {
			endedTree(t, s, "flow", fmt.Sprint("old-", i), 2*day, store.Completed)
		}
		e, log := sweeping(t, s, durable.Retention{Events: day}, flow)
		var before []durable.Event
		waitFor(t, func() bool {
			before = orFail(e.Events(ctx, durable.Page{}))(t)
			return len(before) == 10
		})
		running(t, e)
		waitFor(t, func() bool { return len(orFail(e.Events(ctx, durable.Page{}))(t)) == 0 })
		log.await(t, "retention deleted what is no longer kept")
		orFail(flow.Call(ctx, e, "x", durable.ID("new")))(t)
		for _, i := range []int{0, 9} {
			waitFor(t, func() bool {
				got := orFail(e.Events(ctx, durable.Page{Cursor: before[i].Cursor}))(t)
				return len(got) == 1 && got[0].ID == "new"
			})
		}
		if !exists(t, e, "old-0") {
			t.Error("a run was deleted with its events")
		}
	})
}

func TestRetentionIsChecked(t *testing.T) {
	s := openFile(t)
	for what, keep := range map[string]durable.Retention{
		"a negative time": {Runs: durable.RetentionByStatus{Completed: -1}},
		"too short":       {Runs: durable.KeepFor(59 * time.Second)},
		"of a workflow":   {Workflows: map[string]durable.RetentionByStatus{"w": {Failed: time.Second}}},
		"of events":       {Events: time.Second},
		"of generations":  {Generations: -time.Hour},
	} {
		if _, err := durable.New(s, durable.Config{Retention: keep, Logger: slog.Default()}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := durable.New(s, durable.Config{Retention: durable.Retention{Workflows: map[string]durable.RetentionByStatus{"": {}}}}); !errors.Is(err, durable.ErrInvalidName) {
		t.Errorf("a workflow without a name: %v", err)
	}
}
