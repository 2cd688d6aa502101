package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A run whose workflow is given another queue in the code is executed by the new code, and so is one that another start has put
// into a queue of its own.
func TestAWorkflowThatMovesToAnotherQueueLeavesNoRunBehind(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		before := durable.Define("moved", double, durable.Queue("before"))
		after := durable.Define("moved", double, durable.Queue("after"))
		client := engineOn(t, s)
		old, err := before.Start(ctx, client, 1, durable.ID("old"))
		if err != nil {
			t.Fatal(err)
		}
		own, err := before.Start(ctx, client, 2, durable.ID("own"), durable.InQueue("tenant-7"))
		if err != nil {
			t.Fatal(err)
		}
		running(t, engineOn(t, s, after))
		for want, run := range map[int]*durable.Run[int]{2: old, 4: own} {
			if got, err := run.Result(ctx); got != want || err != nil {
				t.Errorf("%s: %d, %v, want %d", run.ID(), got, err, want)
			}
		}
		if info := orFail(client.Get(ctx, "own"))(t); info.Queue != "tenant-7" || info.NoWorker {
			t.Errorf("the run in a queue of its own: %+v", info)
		}
	})
}

// A worker with Config.Queues claims, and starts at once, only runs of these queues. Get and List tell where a run waits.
func TestAWorkerServesTheQueuesOfItsConfig(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		mail := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Queues: []string{"mail", "urgent mail"}, Lease: 300 * time.Millisecond})
		running(t, mail)
		here := orFail(w.Start(ctx, mail, 1, durable.InQueue("mail")))(t)
		there := orFail(w.Start(ctx, mail, 2, durable.InQueue("reports"), durable.ID("there")))(t)
		if got, err := here.Result(ctx); got != 2 || err != nil {
			t.Fatal(got, err)
		}
		beats := mail.Stats().Heartbeats
		waitFor(t, func() bool { return mail.Stats().Heartbeats >= beats+3 })
		if info := orFail(mail.Get(ctx, "there"))(t); info.Status != durable.StatusPending || info.Queue != "reports" || !info.NoWorker {
			t.Errorf("the run in a queue that nobody serves: %+v", info)
		}
		workers := orFail(mail.Workers(ctx))(t)
		if len(workers) != 1 || !slices.Equal(workers[0].Queues, []string{"mail", "urgent mail"}) {
			t.Errorf("workers: %+v", workers)
		}
		running(t, engineOn(t, s, w))
		if got, err := there.Result(ctx); got != 4 || err != nil {
			t.Fatal(got, err)
		}
		page := orFail(mail.List(ctx, durable.Filter{Queue: "reports"}, durable.Page{}))(t)
		if len(page.Runs) != 1 || page.Runs[0].ID != "there" {
			t.Errorf("the list of a queue: %+v", page.Runs)
		}
	})
}

// Children are in the queue and have the priority of their parent, unless their start, or for the queue their workflow, says
// otherwise.
func TestChildrenInheritQueueAndPriority(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		plain := durable.Define("plain", double)
		gpu := durable.Define("gpu", double, durable.Queue("gpu"))
		parent := durable.Define("parent", func(c *durable.Ctx, in int) (int, error) {
			_, err := c.Child("inherits", plain, in)
			_, errOwn := c.Child("own queue", gpu, in)
			_, errStart := c.Child("its start", gpu, in, durable.InQueue("other"), durable.Priority(0))
			_, errRoot := c.Start("a root", plain, in, durable.ID("root"))
			return in, errors.Join(err, errOwn, errStart, errRoot)
		})
		e := engineOn(t, s, plain, gpu, parent)
		if _, err := parent.Call(ctx, e, 1, durable.ID("p"), durable.InQueue("tenant"), durable.Priority(2)); err != nil {
			t.Fatal(err)
		}
		tree := orFail(e.Tree(ctx, "p"))(t)
		got := map[string]string{}
		for _, c := range tree.Children {
			got[c.Name] = fmt.Sprintf("%s %d", c.Queue, c.Priority)
		}
		for name, want := range map[string]string{"inherits": "tenant 2", "own queue": "gpu 2", "its start": "other 0"} {
			if got[name] != want {
				t.Errorf("child %q is in queue and priority %s, want %s", name, got[name], want)
			}
		}
		if root := orFail(e.Get(ctx, "root"))(t); root.Queue != durable.DefaultQueue || root.Priority != 0 {
			t.Errorf("the root run that a workflow started is in %s with priority %d", root.Queue, root.Priority)
		}
		page := orFail(e.List(ctx, durable.Filter{Priority: []int{1, 2}}, durable.Page{}))(t)
		if len(page.Runs) != 3 {
			t.Errorf("%d runs have the priority 1 or 2, want 3", len(page.Runs))
		}
	})
}

// An urgent run is the next that is claimed, however many others are due, in its queue and in other queues.
func TestUrgentRunsComeFirst(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var mu sync.Mutex
		var order []int
		w := durable.Define("w", func(_ *durable.Ctx, in int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, in)
			return in, nil
		})
		client := engineOn(t, s)
		for _, queue := range []string{"a", "b", "c"} {
			if _, err := w.StartMany(ctx, client, make([]durable.StartItem[int], 100), durable.InQueue(queue)); err != nil {
				t.Fatal(err)
			}
		}
		low := orFail(w.Start(ctx, client, -1, durable.InQueue("b"), durable.Priority(durable.LowestPriority)))(t)
		for i, queue := range []string{"a", "new"} {
			orFail(w.Start(ctx, client, 1+i, durable.InQueue(queue), durable.Priority(durable.HighestPriority)))(t)
		}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Concurrency: 1, ClaimLimit: 1})
		running(t, e)
		if _, err := low.Result(ctx); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 303 || order[0] == order[1] || order[0]+order[1] != 3 || order[302] != -1 {
			t.Errorf("%d runs in the order %v ... %v, want both urgent runs first, and the one of low priority last", len(order), order[:5], order[max(0, len(order)-3):])
		}
	})
}

func TestQueuesAndPrioritiesAreChecked(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := context.Background()
		w := durable.Define("w", double)
		e := engineOn(t, s, w)
		for name, c := range map[string]struct {
			opts []durable.StartOption
			want error
		}{
			"too high":    {[]durable.StartOption{durable.Priority(3)}, durable.ErrInvalidConfig},
			"too low":     {[]durable.StartOption{durable.Priority(-3)}, durable.ErrInvalidConfig},
			"twice":       {[]durable.StartOption{durable.Priority(1), durable.Priority(1)}, durable.ErrInvalidConfig},
			"no queue":    {[]durable.StartOption{durable.InQueue("")}, durable.ErrInvalidName},
			"two queues":  {[]durable.StartOption{durable.InQueue("a"), durable.InQueue("b")}, durable.ErrInvalidConfig},
			"a line feed": {[]durable.StartOption{durable.InQueue("a\n")}, durable.ErrInvalidName},
		} {
			if _, err := w.Start(ctx, e, 1, c.opts...); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		if _, err := e.List(ctx, durable.Filter{Priority: []int{7}}, durable.Page{}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a filter with a priority that does not exist: %v", err)
		}
		if _, err := durable.New(s, durable.Config{Queues: []string{"a", ""}}); !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("Config.Queues with an empty name: %v", err)
		}
	})
}

// orFail returns the value of a call, and fails the test if the call returned an error.
func orFail[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
