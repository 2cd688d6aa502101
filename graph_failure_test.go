package durable_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

// failingNodes declares, for each way in which a node can fail outside its calls, a node "pay" that fails until it is mended. The nodes count how
// often they were executed.
func failingNodes(pay *durable.Workflow[string, int], paid *atomic.Int32) map[string]func(g *durable.Graph[int], order *durable.Node[[]int], mended bool) (durable.AnyNode, func(*durable.NodeInput) error) {
	type (
		in   = *durable.NodeInput
		list = *durable.Node[[]int]
	)
	child := func(g *durable.Graph[int], order list, input func(in) (string, error), opts ...durable.NodeOption) (durable.AnyNode, func(in) error) {
		n := g.Child("pay", pay, input, append(opts, durable.Needs(order))...)
		return n, func(in in) error { _, err := n.Get(in); return err }
	}
	each := func(g *durable.Graph[int], order list, key func(int) string) (durable.AnyNode, func(in) error) {
		n := g.Each("pay", order, func(context.Context, int, in) (int, error) { return int(paid.Add(1)), nil }, durable.Key(key))
		return n, func(in in) error { _, err := n.Get(in); return err }
	}
	unless := func(mended bool, fail func()) {
		if !mended {
			fail()
		}
	}
	return map[string]func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error){
		"condition panics": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return child(g, order, func(in) (string, error) { return "x", nil }, durable.When(order, func([]int) bool {
				unless(mended, func() { panic("no such price") })
				return true
			}))
		},
		"condition ends its goroutine": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return child(g, order, func(in) (string, error) { return "x", nil }, durable.When(order, func([]int) bool {
				unless(mended, runtime.Goexit)
				return true
			}))
		},
		"input panics": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return child(g, order, func(in) (string, error) {
				unless(mended, func() { panic("no such price") })
				return "x", nil
			})
		},
		"input ends its goroutine": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return child(g, order, func(in) (string, error) {
				unless(mended, runtime.Goexit)
				return "x", nil
			})
		},
		"input fails": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return child(g, order, func(in) (string, error) {
				if !mended {
					return "", errBroken
				}
				return "x", nil
			})
		},
		"input is too large": func(g *durable.Graph[int], order list, _ bool) (durable.AnyNode, func(in) error) {
			return child(g, order, func(in) (string, error) { return strings.Repeat("x", 3000), nil })
		},
		"keys collide": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return each(g, order, func(n int) string {
				if !mended {
					return "same"
				}
				return fmt.Sprint(n)
			})
		},
		"key panics": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return each(g, order, func(n int) string {
				unless(mended, func() { panic("no key") })
				return fmt.Sprint(n)
			})
		},
		"key ends its goroutine": func(g *durable.Graph[int], order list, mended bool) (durable.AnyNode, func(in) error) {
			return each(g, order, func(n int) string {
				unless(mended, runtime.Goexit)
				return fmt.Sprint(n)
			})
		},
	}
}

// A node that failed outside its calls stays failed when newer code would execute it, because another node has acted on the failure. A retry
// executes both again.
func TestNodeFailureOutsideItsCallsIsRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var paid, invoiced atomic.Int32
		pay := durable.Define("pay", func(c *durable.Ctx, _ string) (int, error) {
			return c.Step("pay", func(context.Context) (int, error) { return int(paid.Add(1)), nil })
		})
		for how, declare := range failingNodes(pay, &paid) {
			t.Run(how, func(t *testing.T) {
				paid.Store(0)
				invoiced.Store(0)
				w := func(mended bool) *durable.Workflow[int, string] {
					return durable.DefineGraph("graph "+how, func(g *durable.Graph[int]) *durable.Node[string] {
						order := g.Step("order", constant([]int{1, 2}))
						node, get := declare(g, order, mended)
						invoice := g.Step("invoice", func(_ context.Context, in *durable.NodeInput) (string, error) {
							if get(in) == nil {
								return "paid", nil
							}
							invoiced.Add(1)
							return "invoiced", nil
						}, durable.Needs(node), durable.OnUnmetNeed(durable.RunAnyway))
						shipped := g.Receive[int]("shipped", durable.Needs(invoice))
						return g.Step("out", func(_ context.Context, in *durable.NodeInput) (string, error) {
							if err := get(in); err != nil {
								return "", err
							}
							return invoice.Of(in), nil
						}, durable.Needs(invoice, shipped), durable.After(node), durable.Retry(durable.NoRetry))
					})
				}
				id := durable.ID("run " + how)
				old := engineWith(t, s, durable.Config{MaxPayload: 1024, Workflows: []durable.Definition{w(false), pay}})
				stop := running(t, old)
				run := orFail(w(false).Start(within(t), old, 1, id))(t)
				awaitCheckpoint(t, old, run.ID(), "shipped/receive", "started")
				checkFailedNode(t, old, run.ID())
				stop()
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w(true), pay}})
				running(t, e)
				if err := e.Signal(within(t), run.ID(), "shipped", 1); err != nil {
					t.Fatal(err)
				}
				handle := orFail(w(true).Handle(within(t), e, run.ID()))(t)
				if _, err := handle.Result(within(t)); err == nil || !strings.Contains(err.Error(), `node "pay" failed`) || paid.Load() != 0 || invoiced.Load() != 1 {
					t.Fatalf("paid %d times and invoiced %d times; %v", paid.Load(), invoiced.Load(), err)
				}
				checkFailedNode(t, e, run.ID())
			})
		}
	})
}

// checkFailedNode checks that the node "pay" is shown as failed, with its error.
func checkFailedNode(t *testing.T, e *durable.Engine, id string) {
	t.Helper()
	for _, n := range read(e.Graph(within(t), id))(t).Nodes {
		if n.Name == "pay" && (n.State != durable.NodeFailed || n.Err == nil || errors.Is(n.Err, durable.ErrCancelled) || n.EndedAt.IsZero()) {
			t.Errorf("the node is shown as %+v", n)
		}
	}
}

// Retry executes a node that failed outside its calls, and the nodes that ran because of that.
func TestRetryOfNodeThatFailedOutsideItsCalls(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var mended atomic.Bool
		kid := durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 5, nil })
		e, _, err := graphOf(t, s, func(g *durable.Graph[int]) *durable.Node[int] {
			child := g.Child("child", kid, func(*durable.NodeInput) (int, error) {
				if !mended.Load() {
					panic("no such price")
				}
				return 1, nil
			})
			late := g.Step("late", func(_ context.Context, in *durable.NodeInput) (bool, error) {
				_, err := child.Get(in)
				return err == nil, nil
			}, durable.After(child))
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (int, error) {
				if !late.Of(in) {
					return 0, errBroken
				}
				return child.Of(in), nil
			}, durable.Needs(child), durable.After(late))
		}, kid)
		if err == nil || !strings.Contains(err.Error(), "no such price") {
			t.Fatal(err)
		}
		wantNodes(t, e, map[string]durable.NodeState{"child": durable.NodeFailed, "late": durable.NodeCompleted, "out": durable.NodeSkipped})
		mended.Store(true)
		if _, err := e.Retry(within(t), "run"); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusCompleted)
		wantNodes(t, e, map[string]durable.NodeState{"child": durable.NodeCompleted, "late": durable.NodeCompleted, "out": durable.NodeCompleted})
	})
}
