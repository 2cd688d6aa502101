package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// fanOut returns a graph that starts a child for each number below its input, and adds up their outputs.
func fanOut(kid *durable.Workflow[int, int]) *durable.Workflow[int, int] {
	return durable.DefineGraph("fan", func(g *durable.Graph[int]) *durable.Node[int] {
		list := g.Step("list", func(_ context.Context, in *durable.NodeInput) ([]int, error) {
			items := make([]int, g.Input(in))
			for i := range items {
				items[i] = i
			}
			return items, nil
		})
		kids := g.EachChild("kids", list, kid)
		return g.Step("sum", func(_ context.Context, in *durable.NodeInput) (sum int, err error) {
			for _, n := range kids.Of(in) {
				sum += n
			}
			return sum, nil
		}, durable.Needs(kids))
	})
}

// The children of an EachChild, which another worker executes, do not wake their parent one by one: only the last one does.
func TestEachChildWakesItsParentWhenAllHaveEnded(t *testing.T) {
	const children = 8
	onStores(t, func(t *testing.T, s durable.Store) {
		mayEnd := make(chan struct{})
		kid := durable.Define("kid", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("step", func(ctx context.Context) (int, error) {
				select {
				case <-mayEnd:
					return n, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
		})
		w := fanOut(kid)
		parents := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		running(t, parents)
		running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{kid}, Concurrency: children}))
		run := orFail(w.Start(within(t), parents, children, durable.ID("run")))(t)
		for i := range children {
			waitFor(t, func() bool {
				counts := read(parents.TreeCounts(within(t), "run"))(t).Statuses
				return counts[durable.StatusCompleted] == i && counts[durable.StatusWaiting] == 1 // the parent
			})
			if executions := read(parents.Get(within(t), "run"))(t).Epoch; executions > 3 {
				t.Fatalf("the parent has been executed %d times after the ends of %d of %d children", executions, i, children)
			}
			mayEnd <- struct{}{}
		}
		if sum, err := run.Result(within(t)); err != nil || sum != children*(children-1)/2 {
			t.Errorf("the sum is %d, error %v", sum, err)
		}
	})
}

// The parent of an EachChild ends soon after its last child, whatever is done to it and to its children meanwhile.
func TestEachChildUnderControl(t *testing.T) {
	const children = 4
	for what, act := range map[string]func(t *testing.T, e *durable.Engine, kids []string, letEnd func(kids ...string)) error{
		"a pause and a resume": func(t *testing.T, e *durable.Engine, kids []string, letEnd func(...string)) error {
			letEnd(kids[0])
			must(t)(e.Pause(within(t), "run"))
			must(t)(e.Resume(within(t), "run"))
			letEnd(kids[1:]...)
			return nil
		},
		"a failed child is retried": func(t *testing.T, e *durable.Engine, kids []string, letEnd func(...string)) error {
			orFail(0, e.Signal(within(t), kids[0], "go", -1))(t)
			awaitStatus(t, e, kids[0], durable.StatusFailed)
			letEnd(kids[1])
			must(t)(e.Pause(within(t), "run"))
			orFail(e.Retry(within(t), kids[0]))(t)
			must(t)(e.Resume(within(t), "run"))
			letEnd(kids[2:]...)
			return nil
		},
		"a child is terminated": func(t *testing.T, e *durable.Engine, kids []string, letEnd func(...string)) error {
			letEnd(kids[:2]...)
			must(t)(e.Terminate(within(t), kids[2]))
			letEnd(kids[3])
			return durable.ErrCancelled
		},
		"a child is cancelled last": func(t *testing.T, e *durable.Engine, kids []string, letEnd func(...string)) error {
			letEnd(kids[:3]...)
			must(t)(e.Cancel(within(t), kids[3]))
			return durable.ErrCancelled
		},
		"the parent is cancelled": func(t *testing.T, e *durable.Engine, kids []string, letEnd func(...string)) error {
			letEnd(kids[:2]...)
			must(t)(e.Cancel(within(t), "run"))
			return durable.ErrCancelled
		},
	} {
		t.Run(what, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var mended atomic.Bool
				kid := durable.Define("kid", func(c *durable.Ctx, n int) (int, error) {
					v, err := c.Receive[int]("go")
					if err != nil {
						return 0, err
					}
					return c.Step("step", func(context.Context) (int, error) {
						if v < 0 && mended.CompareAndSwap(false, true) {
							return 0, errBroken
						}
						return n, nil
					}, durable.Retry(durable.NoRetry))
				})
				w := fanOut(kid)
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, kid}, ParkAfter: time.Millisecond})
				running(t, e)
				run := orFail(w.Start(within(t), e, children, durable.ID("run")))(t)
				var kids []string
				waitFor(t, func() bool {
					tree := read(e.Tree(within(t), "run"))(t)
					kids = kids[:0]
					for _, child := range tree.Children {
						kids = append(kids, child.ID)
					}
					return len(kids) == children && tree.Status == durable.StatusWaiting
				})
				want := act(t, e, kids, func(kids ...string) {
					for _, kid := range kids {
						orFail(0, e.Signal(within(t), kid, "go", 1))(t)
						awaitStatus(t, e, kid, durable.StatusCompleted)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // less than the time after which the parent looks
				defer cancel()
				sum, err := run.Result(ctx)
				if !errors.Is(err, want) || want == nil && sum != children*(children-1)/2 {
					t.Errorf("the sum is %d, error %v, want error %v", sum, err, want)
				}
			})
		})
	}
}
