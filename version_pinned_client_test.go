package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// twoSteps returns a workflow that waits for a signal between two steps. Its result has the versions that have executed them.
func twoSteps(version string, opts ...durable.WorkflowOption) *durable.Workflow[int, string] {
	step := func(context.Context) (string, error) { return version, nil }
	return durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		before, err := c.Step("before", step)
		if err != nil {
			return "", err
		}
		if _, err := c.Receive[int]("go"); err != nil {
			return "", err
		}
		after, err := c.Step("after", step)
		return before + " " + after, err
	}, opts...)
}

// awaitVersionWait waits until the run waits for a worker of the version, because the live workers may not execute it.
func awaitVersionWait(t *testing.T, e *durable.Engine, run, version string) {
	t.Helper()
	waitFor(t, func() bool {
		info := orFail(e.Get(within(t), run))(t)
		if info.Status == durable.StatusCompleted || info.Diverged || info.Version != version {
			t.Fatalf("the run of %s is %s, has the version %s and the output %s, and held is %v", version, info.Status, info.Version, info.Output, info.Diverged)
		}
		return info.VersionWait != nil && info.VersionWait.Version == version
	})
}

// A pinned run whose starter executes no runs, or has no workers any more, belongs to the version that executes it first: no other version
// continues it, also when that version has stopped a short time ago, and a preflight of another version says so.
func TestPinnedRunBelongsToTheVersionThatExecutesItFirst(t *testing.T) {
	for what, starter := range map[string]string{"a client": "web-7", "a version that is gone": "v0"} {
		t.Run(what, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				ctx, pinned := within(t), durable.Pinned(0)
				lastSeen(t, s, "v0", store.MinPinnedSilence+time.Minute)
				client := engineWith(t, s, durable.Config{Version: starter, Workflows: []durable.Definition{twoSteps("", pinned)}})
				run := orFail(twoSteps("", pinned).Start(ctx, client, 0, durable.ID("run")))(t)
				stop := atVersion(t, s, "v1", twoSteps("v1", pinned))
				awaitStatus(t, client, "run", durable.StatusWaiting)
				stop()
				next := engineWith(t, s, durable.Config{Version: "v2", Workflows: []durable.Definition{twoSteps("v2", pinned)}})
				if report := orFail(next.Preflight(ctx, durable.Filter{}))(t); report.Pinned != 1 || report.Fit != 0 || report.Runs[0].PinnedTo != "v1" {
					t.Errorf("a preflight of v2 reports %+v", *report)
				}
				atVersion(t, s, "v2", twoSteps("v2", pinned))
				if err := client.Signal(ctx, "run", "go", 1); err != nil {
					t.Fatal(err)
				}
				awaitVersionWait(t, client, "run", "v1")
				atVersion(t, s, "v1", twoSteps("v1", pinned))
				if got, err := run.Result(ctx); got != "v1 v1" || err != nil {
					t.Errorf("executed by %q: %v", got, err)
				}
			})
		})
	}
}

// A pinned run of which nothing is recorded is not kept by a version that cannot read its input: a version that can continues it.
func TestPinnedRunWhoseInputDoesNotFitIsContinuedByAVersionThatFits(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx, pinned := within(t), durable.Pinned(0)
		w := durable.Define("order", func(c *durable.Ctx, in string) (string, error) { return in, nil }, pinned)
		client := engineWith(t, s, durable.Config{Version: "v2"})
		run := orFail(w.Start(ctx, client, "text", durable.ID("run")))(t)
		atVersion(t, s, "v1", twoSteps("v1", pinned))
		waitFor(t, func() bool { return orFail(client.Get(ctx, "run"))(t).Diverged })
		atVersion(t, s, "v2", w)
		if got, err := run.Result(ctx); got != "text" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
