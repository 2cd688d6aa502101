package durable_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/seed8ec063be/durable"
)

// Descendants in the queue of their parent have its group key, its weight and its priority, unless their start says otherwise. A
// child in another queue has no group key of its own accord. A continued run keeps its own.
func TestDescendantsInheritGroupKeyAndPriority(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		waits := func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("end") }
		leaf := durable.Define("leaf", waits)
		middle := durable.Define("middle", func(c *durable.Ctx, in int) (string, error) { return c.Child("leaf", leaf, in) })
		parent := durable.Define("parent", func(c *durable.Ctx, in int) (string, error) {
			if in > 0 {
				return "", c.ContinueAsNew(in - 1)
			}
			_, err1 := c.StartChild("inherits", middle, in)
			_, err2 := c.StartChild("own priority", leaf, in, durable.Priority(-2))
			_, err3 := c.StartChild("own key", leaf, in, durable.GroupKey("own"))
			_, err4 := c.StartChild("other queue", leaf, in, durable.InQueue("bulk"))
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				return "", err
			}
			return waits(c, in)
		})
		e := engineOn(t, s, leaf, middle, parent)
		for _, queue := range []string{"tenants", "bulk"} {
			if err := e.SetQueue(ctx, queue, durable.QueueSettings{MaxExecuting: 100}); err != nil {
				t.Fatal(err)
			}
		}
		running(t, e)
		orFail(parent.Start(ctx, e, 2, durable.ID("p"), durable.InQueue("tenants"), durable.GroupKey("acme", durable.KeyWeight(3)), durable.Priority(1)))(t)
		want := map[string]string{
			"p": `tenants "acme" 3, priority 1`, "inherits": `tenants "acme" 3, priority 1`, "leaf": `tenants "acme" 3, priority 1`,
			"own priority": `tenants "acme" 3, priority -2`, "own key": `tenants "own" 1, priority 1`, "other queue": `bulk "" 1, priority 1`,
		}
		got := make(map[string]string)
		var describe func(n *durable.RunNode)
		describe = func(n *durable.RunNode) {
			info := orFail(e.Get(ctx, n.RunID))(t)
			name := n.Name
			if n.Parent == "" {
				name = n.ID
			}
			if p := info.Place; p != nil {
				got[name] = fmt.Sprintf("%s %q %d, priority %d", p.Queue, p.GroupKey, p.Weight, info.Priority)
			}
			for _, c := range n.Children {
				describe(c)
			}
		}
		waitFor(t, func() bool {
			clear(got)
			describe(orFail(e.Tree(ctx, "p"))(t))
			return len(got) == len(want)
		})
		if !maps.Equal(got, want) {
			t.Errorf("the places are %v, want %v", got, want)
		}
	})
}
