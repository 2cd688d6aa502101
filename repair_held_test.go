package durable_test

import (
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// wantHeld reports an error unless the run is held for drift, with a reason and the version that diverged.
func wantHeld(t *testing.T, e *durable.Engine, when string) {
	t.Helper()
	now := read(e.Get(within(t), "run"))(t)
	if !now.Diverged || now.Status != durable.StatusPaused || now.Reason == "" || len(read(e.Divergences(within(t), "run"))(t)) != 1 {
		t.Errorf("%s it is %s, diverged %t: %s", when, now.Status, now.Diverged, now.Reason)
	}
}

// wantReleased reports an error if anything of a hold is left.
func wantReleased(t *testing.T, e *durable.Engine, when string, want durable.Status, reason string) {
	t.Helper()
	now := read(e.Get(within(t), "run"))(t)
	if all := read(e.Divergences(within(t), "run"))(t); now.Diverged || now.Status != want || now.Reason != reason || len(all) != 0 {
		t.Errorf("%s it is %s, diverged %t: %q, %+v", when, now.Status, now.Diverged, now.Reason, all)
	}
}

// A repair releases a run that is held, so that any version tries its next generation. The run is held again if the code still does not
// fit, and goes on if the repair has removed the cause. A repair that is refused leaves the run as it is.
func TestARepairOfAHeldRunReleasesIt(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, _ := x.waiting(t, s)
		stop := atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		stop()
		held := read(client.Get(within(t), "run"))(t)
		if _, err := client.Rerun(within(t), "run", "no step"); !errors.Is(err, durable.ErrNoStep) {
			t.Fatal(err)
		}
		wantHeld(t, client, "after a refused repair")
		if now := read(client.Get(within(t), "run"))(t); now.Reason != held.Reason {
			t.Errorf("the reason was %q, and is %q", held.Reason, now.Reason)
		}
		orFail(client.Fork(within(t), "run", durable.FromEnd()))(t)
		wantReleased(t, client, "after a repair", durable.StatusPending, "")
		atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		wantHeld(t, client, "with the same call")
		orFail(client.Rerun(within(t), "run", "charge"))(t)
		awaitStatus(t, client, "run", durable.StatusWaiting) // it sleeps
		wantReleased(t, client, "without the call", durable.StatusWaiting, "")
	})
}

// A held run that somebody has paused stays paused when it is repaired. The resume continues it.
func TestARepairOfAHeldRunDoesNotResumeIt(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, run := x.waiting(t, s)
		stop := atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		stop()
		must(t)(client.Pause(within(t), "run", durable.Reason("ours")))
		orFail(client.Rerun(within(t), "run", "charge"))(t)
		wantReleased(t, client, "after a repair", durable.StatusPaused, "ours")
		must(t)(client.Resume(within(t), "run"))
		atVersion(t, s, "v3", x.define(x.charge))
		if out, err := run.Result(within(t)); out != "shipped" || err != nil || x.charged.Load() != 2 {
			t.Errorf("%q, %v, charged %d times", out, err, x.charged.Load())
		}
	})
}

// A run that is held although its cancel is requested shows the request: it ends once the code fits.
func TestAHeldRunShowsThatItsCancelIsRequested(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, _ := x.waiting(t, s)
		must(t)(client.Cancel(within(t), "run"))
		stop := atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		stop()
		if now := read(client.Get(within(t), "run"))(t); now.Requested != durable.VerbCancel {
			t.Errorf("requested is %q", now.Requested)
		}
	})
}
