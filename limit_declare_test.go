package durable_test

import (
	"testing"

	"github.com/seed8ec063be/durable"
)

// deployment executes a step with a limit that the code of a version declares, in a worker that then stops. It returns the limit.
func deployment(t *testing.T, s durable.Store, version string, opts ...durable.LimitOption) durable.LimitInfo {
	t.Helper()
	w := briefly(durable.NewLimit("one", opts...))
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Version: version})
	stop := running(t, e)
	if _, err := w.Call(within(t), e, 1); err != nil {
		t.Fatal(err)
	}
	stop()
	return orFail(e.Limits(within(t)))(t)[0]
}

// The bounds of the newest version apply as soon as its first step requests a permit, unless an operator has set others.
func TestANewerVersionChangesTheBounds(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		want := func(what string, l durable.LimitInfo, concurrent int, version string, declared int) {
			t.Helper()
			if l.Concurrent != concurrent || l.DeclaredVersion != version || l.Declared == nil || l.Declared.Concurrent != declared {
				t.Errorf("%s: %+v, declared %+v; want %d at once, and %d declared by %s", what, l, l.Declared, concurrent, declared, version)
			}
		}
		want("the first version", deployment(t, s, "v1", durable.Concurrent(1)), 1, "v1", 1)
		want("the next version", deployment(t, s, "v2", durable.Concurrent(5)), 5, "v2", 5)
		want("the first version again", deployment(t, s, "v1", durable.Concurrent(1)), 5, "v2", 5)
		want("other code of the same version", deployment(t, s, "v2", durable.Concurrent(6)), 6, "v2", 6)
		want("a version with the same bounds", deployment(t, s, "v3", durable.Concurrent(6)), 6, "v3", 6)
		want("the version before it", deployment(t, s, "v2", durable.Concurrent(5)), 6, "v3", 6)
		e := engineWith(t, s, durable.Config{})
		if err := e.SetLimit(within(t), "one", durable.LimitBounds{Concurrent: 2}); err != nil {
			t.Fatal(err)
		}
		want("a version after an operator has set others", deployment(t, s, "v4", durable.Concurrent(7), durable.Rate(100, 1e9)), 2, "v4", 7)
		if err := e.ResetLimit(within(t), "one"); err != nil {
			t.Fatal(err)
		}
		want("after a reset", orFail(e.Limits(within(t)))(t)[0], 7, "v4", 7)
	})
}

// The bounds that an operator sets before any step has used the limit can be reset, once a step has used it.
func TestALimitThatWasSetFirstIsDeclaredByItsFirstStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e := engineWith(t, s, durable.Config{})
		if err := e.SetLimit(within(t), "one", durable.LimitBounds{Concurrent: 2}); err != nil {
			t.Fatal(err)
		}
		if l := deployment(t, s, "v1", durable.Concurrent(5)); l.Concurrent != 2 || l.Declared == nil || l.Declared.Concurrent != 5 {
			t.Errorf("%+v, declared %+v: want the bounds of the operator, and 5 declared", l, l.Declared)
		}
		if err := e.ResetLimit(within(t), "one"); err != nil {
			t.Error(err)
		}
		if l := orFail(e.Limits(within(t)))(t)[0]; l.Concurrent != 5 || l.Set != nil {
			t.Errorf("after a reset: %+v, want the declared bounds", l)
		}
	})
}
