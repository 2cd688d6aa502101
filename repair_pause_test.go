package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// stuckRepairs is a store whose fences or repairs do not return until the gate opens, each only once. The caller is like a process that
// has died, until then.
type stuckRepairs struct {
	durable.Store
	gate
	fences, repairs atomic.Bool // stick
}

func (s *stuckRepairs) FenceRun(ctx context.Context, f *store.FenceRequest) error {
	if s.fences.Swap(false) {
		if err := s.pass(ctx); err != nil {
			return err
		}
	}
	return s.Store.FenceRun(ctx, f)
}

func (s *stuckRepairs) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	if s.repairs.Swap(false) {
		if err := s.pass(ctx); err != nil {
			return err
		}
	}
	return s.Store.ApplyRepair(ctx, r)
}

// quoted takes a quote, and waits for a signal before it charges.
func quoted(l *keyLedger) *durable.Workflow[string, string] {
	return durable.Define("quoted", func(c *durable.Ctx, _ string) (string, error) {
		if err := l.do(c, "quote", nil); err != nil {
			return "", err
		}
		price, err := c.Receive[string]("price")
		if err != nil {
			return "", err
		}
		return "charged " + price, l.do(c, "charge", nil)
	})
}

// A live run that was paused for a repair is resumed if the repair does not end within its lease, because its process has probably died.
// A repair that was only slow is then made all the same, and leaves no pause.
func TestARunIsResumedWhoseRepairDoesNotEnd(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for name, stick := range map[string]func(*stuckRepairs){
			"before its fence":  func(s *stuckRepairs) { s.fences.Store(true) },
			"before its switch": func(s *stuckRepairs) { s.repairs.Store(true) },
		} {
			for _, opts := range [][]durable.ControlOption{nil, {durable.InterruptSteps()}} {
				if opts != nil && name == "before its fence" {
					continue // nothing is paused then
				}
				ctx := within(t)
				var l keyLedger
				w := quoted(&l)
				stuck := &stuckRepairs{Store: s, gate: newGate()}
				stick(stuck)
				client := engineWith(t, stuck, durable.Config{Lease: 300 * time.Millisecond, Workflows: []durable.Definition{w}})
				e := engineWith(t, s, durable.Config{Lease: 2 * time.Second, Workflows: []durable.Definition{w}})
				stop := running(t, e)
				run := orFail(w.Start(ctx, e, "", durable.ID(name+string(rune('0'+len(opts))))))(t)
				awaitStatus(t, e, run.ID(), durable.StatusWaiting)
				repaired := make(chan error, 1)
				go func() {
					_, err := client.Rerun(ctx, run.ID(), "quote", append(opts, durable.Actor("ann"))...)
					repaired <- err
				}()
				<-stuck.entered
				if info := orFail(e.Get(ctx, run.ID()))(t); info.Status == durable.StatusPaused && info.PausedBy != "ann" {
					t.Errorf("%s: paused by %q", name, info.PausedBy)
				}
				awaitStatus(t, e, run.ID(), durable.StatusWaiting)
				close(stuck.open)
				if err := <-repaired; err != nil {
					t.Fatalf("%s: the slow repair: %v", name, err)
				}
				if err := e.Signal(ctx, run.ID(), "price", "20"); err != nil {
					t.Fatal(err)
				}
				wantResult(t, w, e, run.ID(), "charged 20")
				l.want(t, name, "quote", "quote#2", "charge")
				if all := orFail(e.Generations(ctx, run.ID()))(t); len(all) != 2 {
					t.Errorf("%s: the generations are %+v", name, all)
				}
				stop()
			}
		}
	})
}

// A pause that somebody requests while a live run is paused for a repair is a pause of its own: the repair does not end it, and neither
// does the end of the repair's lease.
func TestAPauseDuringARepairIsKept(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		w := quoted(&l)
		stuck := &stuckRepairs{Store: s, gate: newGate()}
		stuck.repairs.Store(true)
		client, e := engineOn(t, stuck, w), engineOn(t, s, w)
		stop := running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		repaired := make(chan error, 1)
		go func() {
			_, err := client.Rerun(ctx, "r", "quote", durable.Actor("ann"))
			repaired <- err
		}()
		<-stuck.entered
		must(t)(e.Pause(ctx, "r", durable.Actor("bob"), durable.Reason("stop")))
		close(stuck.open)
		if err := <-repaired; err != nil {
			t.Fatal(err)
		}
		if info := orFail(e.Get(ctx, "r"))(t); info.Status != durable.StatusPaused || info.PausedBy != "bob" || info.Reason != "stop" {
			t.Errorf("the run is %s by %q: %q", info.Status, info.PausedBy, info.Reason)
		}
		if all := orFail(e.Generations(ctx, "r"))(t); len(all) != 2 || all[1].Actor != "ann" {
			t.Errorf("the generations are %+v", all)
		}
		must(t)(e.Resume(ctx, "r"))
		if err := e.Signal(ctx, "r", "price", "20"); err != nil {
			t.Fatal(err)
		}
		wantResult(t, w, e, "r", "charged 20")
		stop()
	})
}

// A detached child whose call a repair drops no longer belongs to the tree of the run, so it goes on although the run is paused.
func TestADetachedChildGoesOnAfterARepairOfItsPausedParent(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		job := durable.Define("job", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("go") })
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if _, err := c.StartChild("job", job, "", durable.Detached()); err != nil {
				return "", err
			}
			return c.Receive[string]("end")
		})
		e := engineOn(t, s, w, job)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		child := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		awaitStatus(t, e, child, durable.StatusWaiting)
		must(t)(e.Pause(ctx, "r"))
		awaitStatus(t, e, child, durable.StatusPaused)
		orFail(e.Rerun(ctx, "r", "job"))(t)
		awaitStatus(t, e, child, durable.StatusWaiting)
		if info := orFail(e.Get(ctx, "r"))(t); info.Status != durable.StatusPaused {
			t.Errorf("the repaired run is %v", info.Status)
		}
	})
}

// A repair cancels the child whose call it drops, but not the detached children of this child, and does not leave them paused.
func TestADetachedGrandchildGoesOnAfterARepair(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		job := durable.Define("job", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("go") })
		child := durable.Define("child", func(c *durable.Ctx, _ string) (string, error) {
			if _, err := c.StartChild("job", job, "", durable.Detached()); err != nil {
				return "", err
			}
			return c.Receive[string]("end")
		})
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) { return c.Child("kid", child, "") })
		for _, id := range []string{"live", "paused"} {
			ctx := within(t)
			e := engineOn(t, s, w, child, job)
			stop := running(t, e)
			orFail(w.Start(ctx, e, "", durable.ID(id)))(t)
			var kid, grandchild string
			waitFor(t, func() bool {
				tree := orFail(e.Tree(ctx, id))(t)
				if len(tree.Children) == 1 && len(tree.Children[0].Children) == 1 {
					kid, grandchild = tree.Children[0].RunID, tree.Children[0].Children[0].RunID
				}
				return grandchild != ""
			})
			for _, waits := range []string{id, kid, grandchild} {
				awaitStatus(t, e, waits, durable.StatusWaiting)
			}
			if id == "paused" {
				must(t)(e.Pause(ctx, id))
				awaitStatus(t, e, grandchild, durable.StatusPaused)
			}
			orFail(e.Rerun(ctx, id, "kid"))(t)
			awaitStatus(t, e, kid, durable.StatusCancelled)
			if err := e.Signal(ctx, grandchild, "go", "on"); err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, grandchild, durable.StatusCompleted)
			stop()
		}
	})
}

// A sleep that is skipped while its run is paused is over, also if the resume freezes the timers.
func TestASkippedSleepIsOverAfterAFrozenPause(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) { return "awake", c.Sleep("nap", time.Hour) })
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		must(t)(e.Pause(ctx, "r"))
		awaitStatus(t, e, "r", durable.StatusPaused)
		orFail(e.Skip(ctx, "r", "nap", nil))(t)
		skipped := dbNow(t, s)
		must(t)(e.Resume(ctx, "r", durable.FreezeTimers()))
		if nap := orFail(e.History(ctx, "r"))(t)[0]; nap.NextAt.After(skipped.Add(time.Minute)) { // the sleep is an hour
			t.Errorf("the sleep ends %v after its skip", nap.NextAt.Sub(skipped))
		}
		wantResult(t, w, e, "r", "awake")
	})
}

// failsBefore starts a child that fails before a step of its parent ends. The test opens the gate after it has paused the parent.
func failsBefore(g gate, bank *fixable) (root, child *durable.Workflow[string, string]) {
	child = durable.Define("child", func(c *durable.Ctx, _ string) (string, error) {
		return "paid", c.Do("pay", func(context.Context) error { return bank.err() })
	})
	return durable.Define("root", func(c *durable.Ctx, _ string) (string, error) {
		kid, err := c.StartChild("kid", child, "", durable.Timeout(time.Hour))
		if err != nil {
			return "", err
		}
		if err := c.Do("slow", func(ctx context.Context) error { return g.pass(ctx) }); err != nil {
			return "", err
		}
		return kid.Wait()
	}), child
}

// A child that is retried beneath a paused parent is paused from then on, so a resume that freezes timers does not shorten its timeout.
func TestARetriedChildKeepsItsTimeoutInAFrozenPause(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		g := newGate()
		root, child := failsBefore(g, &bank)
		e := engineOn(t, s, root, child)
		running(t, e)
		orFail(root.Start(ctx, e, "", durable.ID("r")))(t)
		<-g.entered
		kid := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		awaitStatus(t, e, kid, durable.StatusFailed)
		must(t)(e.Pause(ctx, "r"))
		close(g.open)
		awaitStatus(t, e, "r", durable.StatusPaused)
		bank.fixed.Store(true)
		retrying := dbNow(t, s)
		orFail(e.Retry(ctx, kid))(t)
		before := orFail(e.Get(ctx, kid))(t)
		if before.PausedAt.Before(retrying.Add(-time.Second)) {
			t.Errorf("retried at %v, the child is paused since %v", retrying, before.PausedAt)
		}
		must(t)(e.Resume(ctx, "r", durable.FreezeTimers()))
		if after := orFail(e.Get(ctx, kid))(t); !after.Deadline.After(before.Deadline) {
			t.Errorf("the deadline was %v and is %v", before.Deadline, after.Deadline)
		}
		wantResult(t, root, e, "r", "paid")
	})
}

// A child that is retried while a repair of its paused parent drops its call is cancelled, as any live child whose call is dropped.
func TestAChildRetriedDuringARepairOfItsParentIsCancelled(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		g := newGate()
		root, child := failsBefore(g, &bank)
		stuck := &stuckRepairs{Store: s, gate: newGate()}
		stuck.repairs.Store(true)
		client, e := engineOn(t, stuck, root, child), engineOn(t, s, root, child)
		running(t, e)
		orFail(root.Start(ctx, e, "", durable.ID("r")))(t)
		<-g.entered
		kid := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		awaitStatus(t, e, kid, durable.StatusFailed)
		must(t)(e.Pause(ctx, "r"))
		close(g.open)
		awaitStatus(t, e, "r", durable.StatusPaused)
		bank.fixed.Store(true)
		repaired := make(chan error, 1)
		go func() {
			_, err := client.Rerun(ctx, "r", "kid")
			repaired <- err
		}()
		<-stuck.entered
		orFail(e.Retry(ctx, kid))(t)
		close(stuck.open)
		if err := <-repaired; err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, kid, durable.StatusCancelled)
		must(t)(e.Resume(ctx, "r"))
		wantResult(t, root, e, "r", "paid")
	})
}
