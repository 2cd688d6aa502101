package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// versioned returns a workflow whose result is the version that has executed its step.
func versioned(version string, opts ...durable.WorkflowOption) *durable.Workflow[int, string] {
	return durable.Define("order", func(c *durable.Ctx, in int) (string, error) {
		return c.Step("charge", func(context.Context) (string, error) { return version, nil })
	}, opts...)
}

// works runs an engine of the version that executes the workflow, and returns when it has begun.
func works(t *testing.T, s durable.Store, version string, w durable.Definition) (e *durable.Engine, stop func()) {
	t.Helper()
	e = engineWith(t, s, durable.Config{Version: version, Workflows: []durable.Definition{w}, Lease: 600 * time.Millisecond, Poll: 20 * time.Millisecond})
	stop = running(t, e)
	waitFor(t, func() bool {
		return slices.ContainsFunc(orFail(e.Workers(within(t)))(t), func(o durable.WorkerInfo) bool { return o.Version == version })
	})
	return e, stop
}

// lastSeen records that a worker of the version lived a while ago, and returns when.
func lastSeen(t *testing.T, s durable.Store, version string, ago time.Duration) (at time.Time) {
	t.Helper()
	at = orFail(s.Now(within(t)))(t).Add(-ago)
	_ = orFail(s.RecordWorkerVersion(within(t), &store.WorkerVersionReport{Version: version, Now: at, Workflows: []string{"order"}, FirstSeen: make([]time.Time, 1)}))(t)
	return at
}

// While v1 and v2 execute the same workflow side by side, all runs that v2 has started are executed by v2, and v2 executes runs of v1.
func TestRunsDoNotGoBackwards(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		works(t, s, "v1", versioned("v1"))
		_, stop := works(t, s, "v2", versioned("v2"))
		client := engineWith(t, s, durable.Config{Version: "v2"})
		for i := range 20 {
			run := orFail(versioned("").Start(ctx, client, i, durable.ID(fmt.Sprint("order-", i))))(t)
			if got, err := run.Result(ctx); got != "v2" || err != nil {
				t.Fatalf("order %d was executed by %q: %v", i, got, err)
			}
			if info := orFail(client.Get(ctx, run.ID()))(t); info.Version != "v2" {
				t.Errorf("Get has the version %q", info.Version)
			}
		}
		stop()
		run := orFail(versioned("").Start(ctx, client, 0, durable.ID("waits")))(t)
		info := orFail(client.Get(ctx, "waits"))(t)
		if w := info.VersionWait; w == nil || w.Version != "v2" || time.Until(w.Until) > time.Minute+time.Second || info.NoWorker {
			t.Errorf("after v2 has stopped, Get has %+v, and NoWorker %v", w, info.NoWorker)
		}
		if got, err := orFail(versioned("").Start(ctx, engineWith(t, s, durable.Config{Version: "v1"}), 0, durable.ID("old")))(t).Result(ctx); got != "v1" || err != nil {
			t.Errorf("a run of v1 was executed by %q: %v", got, err)
		}
		if _, _ = works(t, s, "v3", versioned("v3")); true {
			if got, err := run.Result(ctx); got != "v3" || err != nil {
				t.Errorf("the run that waited was executed by %q: %v", got, err)
			}
		}
	})
}

// When no worker of a later version has lived for a minute, v1 takes its runs over, and logs that once.
func TestAnEarlierVersionTakesOverAfterAMinute(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		cfg, log := logged(durable.Config{Version: "v1", Workflows: []durable.Definition{versioned("v1")}, Lease: 600 * time.Millisecond, Poll: 20 * time.Millisecond})
		lastSeen(t, s, "v1", time.Hour)
		last := lastSeen(t, s, "v2", store.VersionTakeoverDelay-4*time.Second)
		client := engineWith(t, s, durable.Config{Version: "v2"})
		var runs []*durable.Run[string]
		for i := range 3 {
			runs = append(runs, orFail(versioned("").Start(ctx, client, i))(t))
		}
		running(t, engineWith(t, s, cfg))
		for _, run := range runs {
			if got, err := run.Result(ctx); got != "v1" || err != nil {
				t.Errorf("executed by %q: %v", got, err)
			}
			if info := orFail(client.Get(ctx, run.ID()))(t); info.Version != "v1" || info.StartedAt.Sub(last) < store.VersionTakeoverDelay-time.Millisecond {
				t.Errorf("Get has the version %q; it started %v after the last report", info.Version, info.StartedAt.Sub(last))
			}
		}
		if n := strings.Count(log.String(), "no worker of a later version has reported"); n != 1 {
			t.Errorf("%d lines, want one, in:\n%s", n, log)
		}
	})
}

// A pinned run stays with the version that started it, although a later one lives, until the grace period is over.
func TestPinnedRunsStayWithTheirVersion(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		works(t, s, "v1", versioned("v1", durable.Pinned(0)))
		works(t, s, "v2", versioned("v2", durable.Pinned(0)))
		lastSeen(t, s, "v0", store.MinPinnedSilence-2*time.Second)
		for i := range 20 {
			version := []string{"v1", "v2"}[i%2]
			run := orFail(versioned("").Start(ctx, engineWith(t, s, durable.Config{Version: version}), i))(t)
			if got, err := run.Result(ctx); got != version || err != nil {
				t.Fatalf("a run of %s was executed by %q: %v", version, got, err)
			}
		}
		client := engineWith(t, s, durable.Config{Version: "v0"})
		run := orFail(versioned("").Start(ctx, client, 0))(t)
		got, err := run.Result(ctx)
		if got != "v1" && got != "v2" || err != nil {
			t.Fatalf("after the grace period, executed by %q: %v", got, err)
		}
		if info := orFail(client.Get(ctx, run.ID()))(t); info.Version != got {
			t.Errorf("Get has the version %q", info.Version)
		}
	})
}

// A preflight of the next version reports runs apart that stay with the version that started them.
func TestPreflightReportsPinnedRunsApart(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var x stepCounts
		none := func(*durable.Ctx) error { return nil }
		define := func(step string) *durable.Workflow[int, string] { return waits(x.steps(step), none, durable.Pinned(0)) }
		stop := atVersion(t, s, "v1", define("a"))
		client := engineOn(t, s)
		orFail(define("a").Start(ctx, client, 0, durable.ID("run")))(t)
		awaitStatus(t, client, "run", durable.StatusWaiting)
		stop()
		for version, want := range map[string]durable.PreflightReport{"v1": {Diverged: 1}, "v2": {Pinned: 1}} {
			next := engineWith(t, s, durable.Config{Version: version, Workflows: []durable.Definition{define("b")}})
			report := orFail(next.Preflight(ctx, durable.Filter{}))(t)
			pinnedTo, diverged := "", false
			if len(report.Runs) == 1 {
				pinnedTo, diverged = report.Runs[0].PinnedTo, report.Runs[0].Diverged
			}
			report.Runs = nil
			if fmt.Sprint(*report) != fmt.Sprint(want) || (pinnedTo == "v1") != (version == "v2") || !diverged {
				t.Errorf("a preflight of %s reports %+v; the run is pinned to %q, and diverges: %v", version, report, pinnedTo, diverged)
			}
		}
	})
}

// A run whose children and timers keep it alive stays with the version that executed it last.
func TestALaterSegmentIsOfTheSameVersion(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		waits := func(version string) *durable.Workflow[int, string] {
			return durable.Define("order", func(c *durable.Ctx, in int) (string, error) {
				go_, err := c.Receive[string]("go")
				if err != nil {
					return "", err
				}
				got, err := c.Step("charge", func(context.Context) (string, error) { return version, nil })
				return got + go_, err
			})
		}
		e := engineWith(t, s, durable.Config{Version: "v1", Workflows: []durable.Definition{waits("v1")}, ParkAfter: 20 * time.Millisecond, Poll: 20 * time.Millisecond})
		running(t, e)
		run := orFail(waits("").Start(ctx, e, 0, durable.ID("a")))(t)
		waitFor(t, func() bool { return orFail(e.Get(ctx, "a"))(t).Status == durable.StatusWaiting })
		works(t, s, "v2", waits("v2"))
		later := orFail(waits("").Start(ctx, engineWith(t, s, durable.Config{Version: "v2"}), 0, durable.ID("b")))(t)
		waitFor(t, func() bool { return len(orFail(e.Get(ctx, "b"))(t).OpenCalls) > 0 })
		for _, id := range []string{"a", "b"} {
			if err := e.Signal(ctx, id, "go", "!"); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := later.Result(ctx); got != "v2!" || err != nil {
			t.Errorf("b was executed by %q: %v", got, err)
		}
		if got, err := run.Result(ctx); got != "v1!" && got != "v2!" || err != nil {
			t.Errorf("a was executed by %q: %v", got, err)
		}
	})
}

// A negative grace period is refused.
func TestPinnedIsChecked(t *testing.T) {
	if _, err := durable.New(openStore(t), durable.Config{Workflows: []durable.Definition{versioned("", durable.Pinned(-1))}}); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Error(err)
	}
}

// A due run that one version has continued, after another one diverged on it, waits for workers of the first version: Get says so, and names both.
func TestVersionWaitNamesTheVersionsThatDiverged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		twice := func(step string) *durable.Workflow[int, string] {
			return waits(x.steps(step), func(c *durable.Ctx) error { _, err := c.Receive[int]("more"); return err })
		}
		before, after := twice("charge"), twice("charge card")
		client := engineOn(t, s)
		stop := atVersion(t, s, "v1", before)
		orFail(before.Start(within(t), client, 0, durable.ID("run")))(t)
		awaitStatus(t, client, "run", durable.StatusWaiting)
		stop()
		orFail(0, client.Signal(within(t), "run", "go", 1))(t)
		atVersion(t, s, "v2", after)
		waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Diverged })
		stop = atVersion(t, s, "v1", before)
		waitFor(t, func() bool {
			open := read(client.Get(within(t), "run"))(t).OpenCalls
			return len(open) == 1 && open[0].Name == "more"
		})
		awaitStatus(t, client, "run", durable.StatusWaiting)
		stop()
		if w := read(client.Get(within(t), "run"))(t).VersionWait; w != nil {
			t.Errorf("a run that is not due waits for %+v", w)
		}
		orFail(0, client.Signal(within(t), "run", "more", 1))(t)
		info := read(client.Get(within(t), "run"))(t)
		waitFor(t, func() bool {
			info = read(client.Get(within(t), "run"))(t)
			return info.NoWorker || info.VersionWait != nil
		})
		if w := info.VersionWait; w == nil || w.Version != "v1" || !slices.Equal(w.Diverged, []string{"v2"}) || time.Until(w.Until) > time.Minute+time.Second || info.NoWorker {
			t.Errorf("the run waits for %+v, without a worker: %t", w, info.NoWorker)
		}
	})
}
