package durable_test

import (
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run that is held stays held when it is repaired, and when a repair of it is refused: its reason stays, the version that diverged does
// not try it again, and one that fits continues it.
func TestARepairOfAHeldRunDoesNotReleaseIt(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, run := x.waiting(t, s)
		stop := atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		stop()
		held := read(client.Get(within(t), "run"))(t)
		isHeld := func(after string) {
			t.Helper()
			now := read(client.Get(within(t), "run"))(t)
			if !now.Diverged || now.Status != durable.StatusPaused || now.Reason != held.Reason || len(read(client.Divergences(within(t), "run"))(t)) != 1 {
				t.Errorf("after %s it is %s, diverged %t: %s", after, now.Status, now.Diverged, now.Reason)
			}
		}
		if _, err := client.Rerun(within(t), "run", "no step"); !errors.Is(err, durable.ErrNoStep) {
			t.Fatal(err)
		}
		isHeld("a refused repair")
		if _, err := client.Rerun(within(t), "run", "charge"); err != nil {
			t.Fatal(err)
		}
		isHeld("a repair")
		atVersion(t, s, "v1", x.define(x.charge))
		if out, err := run.Result(within(t)); out != "shipped" || err != nil || x.charged.Load() != 2 {
			t.Errorf("%q, %v, charged %d times", out, err, x.charged.Load())
		}
	})
}
