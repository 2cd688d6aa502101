package durable_test

import (
	"encoding/json/v2"
	"errors"
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

// A replay of an export does not have the key that signs the tokens of callbacks, so it compares tokens without their signatures. A token of
// another wait is another output.
func TestReplayOfARunThatReturnedItsToken(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		define := func(wait, verb string) *durable.Workflow[string, string] {
			return durable.Define("w", func(c *durable.Ctx, in string) (string, error) {
				text := verb + " " + c.Callback[int](wait).Token() + " now"
				if in == "fails" {
					return "", errors.New(text)
				}
				return text, nil
			})
		}
		w := define("paid", "use")
		worker := engineOn(t, s, w)
		running(t, worker)
		for _, in := range []string{"completes", "fails"} {
			run := orFail(w.Start(within(t), worker, in, durable.ID(in)))(t)
			_, _ = run.Result(within(t)) // one of them fails
			exported := orFail(worker.Export(within(t), in))(t)
			for code, fits := range map[*durable.Workflow[string, string]]bool{w: true, define("shipped", "use"): false, define("paid", "try"): false} {
				if got := orFail(engineOn(t, s, code).ReplayExport(within(t), exported))(t); got.Diverged == fits {
					t.Errorf("%s: want that the code fits: %v, got %+v", in, fits, got)
				}
			}
		}
	})
}
