package durable_test

import (
	"encoding/json/v2"
	"testing"

	"github.com/seed8ec063be/durable"
)

// An export tells whether a child continues when its parent ends.
func TestAnExportTellsWhetherAChildIsDetached(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		leaf := durable.Define("leaf", func(_ *durable.Ctx, in int) (int, error) { return in, nil })
		root := durable.Define("root", func(c *durable.Ctx, in int) (int, error) {
			if _, err := c.StartChild("detached", leaf, in, durable.Detached()); err != nil {
				return 0, err
			}
			return c.Child("attached", leaf, in)
		})
		e := engineOn(t, s, root, leaf)
		running(t, e)
		orFail(root.Call(within(t), e, 1, durable.ID("root")))(t)
		children := orFail(e.Tree(within(t), "root"))(t).Children
		if len(children) != 2 {
			t.Fatalf("the children are %+v", children)
		}
		for _, child := range children {
			var x durable.Exported
			if err := json.Unmarshal(orFail(e.Export(within(t), child.RunID))(t), &x); err != nil {
				t.Fatal(err)
			}
			if x.Run.Name == "" || x.Run.Detached != (x.Run.Name == "detached") {
				t.Errorf("the export of a child has %+v", x.Run)
			}
		}
	})
}
