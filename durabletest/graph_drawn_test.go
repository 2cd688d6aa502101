package durabletest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable"
)

var errBroken = durable.RegisterError("durabletest.broken", errors.New("broken"))

// drawnNode is a node of a random graph. Other nodes are named by their indexes.
type drawnNode struct {
	index        int
	kind         durable.NodeKind
	isList       bool // a step that returns the items of the next node
	items        int  // of a list, and of NodeEach and NodeEachChild, which need the node before them
	needs, after []int
	choices      []drawnChoice
	condition    int  // the index in needs of the node on whose value the condition is; -1: none
	holds        bool // the condition
	unmet        durable.UnmetNeedPolicy
	fails        bool // its function; of a list of items, that of the last one; of a receive, no signal comes
	delayed      bool
}

type drawnChoice struct {
	of     []int
	k      int
	losers durable.LoserPolicy
}

func (n *drawnNode) name() string { return fmt.Sprint("n", n.index) }

func (n *drawnNode) isMapped() bool {
	return n.kind == durable.NodeEach || n.kind == durable.NodeEachChild
}

func drawGraph(t *rapid.T, most int) (nodes []drawnNode) {
	wanted := rapid.IntRange(1, most).Draw(t, "nodes")
	for len(nodes) < wanted {
		kinds := []durable.NodeKind{durable.NodeStep, durable.NodeStep, durable.NodeStep, durable.NodeChild, durable.NodeReceive}
		if len(nodes)+2 < wanted { // the last node is the output, which is no list
			kinds = append(kinds, durable.NodeEach, durable.NodeEachChild)
		}
		n := drawnNode{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		if n.isMapped() {
			n.items = rapid.IntRange(0, 3).Draw(t, "items")
			nodes = append(nodes, drawnNode{index: len(nodes), kind: durable.NodeStep, isList: true, items: n.items, condition: -1})
		}
		drawNeeds(t, &n, len(nodes))
		nodes = append(nodes, n)
	}
	return nodes
}

// drawNeeds draws what the node with the index needs, and how it ends.
func drawNeeds(t *rapid.T, n *drawnNode, index int) {
	some := func(what string, most int) []int {
		if index == 0 {
			return nil
		}
		return rapid.SliceOfNDistinct(rapid.IntRange(0, index-1), 0, min(index, most), rapid.ID[int]).Draw(t, what)
	}
	n.index, n.condition, n.needs, n.after = index, -1, some("needs", 2), some("after", 1)
	if len(n.needs) > 0 && rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
		n.condition, n.holds = 0, rapid.Bool().Draw(t, "holds")
	}
	for range rapid.IntRange(0, 2).Draw(t, "choices") {
		if of := some("choice", 3); len(of) > 0 {
			losers := rapid.SampledFrom([]durable.LoserPolicy{durable.KeepLosers, durable.CancelLosers, durable.CancelLosers}).Draw(t, "losers")
			n.choices = append(n.choices, drawnChoice{of, rapid.IntRange(1, len(of)).Draw(t, "k"), losers})
		}
	}
	policies := []durable.UnmetNeedPolicy{durable.SkipNode, durable.SkipNode, durable.FailRun, durable.RunAnyway, durable.RunAnyway}
	if n.isMapped() {
		n.needs = append(n.needs, index-1)
		policies = policies[:3] // without its list it has no items
	}
	n.unmet = rapid.SampledFrom(policies).Draw(t, "policy")
	n.fails = rapid.IntRange(0, 5).Draw(t, "fails") == 0
	n.delayed = rapid.IntRange(0, 3).Draw(t, "delayed") == 0
}

// randomGraph is a random graph whose functions count their calls.
type randomGraph struct {
	nodes    []drawnNode
	calls    callCounts
	workflow *durable.Workflow[int, int]
	child    *durable.Workflow[int, int]
}

// maxItems is more than the number of items of a list.
const maxItems = 10

// value is what the function of a node returns. key is the index of the node times maxItems, plus that of the item.
func (r *randomGraph) value(key int) (int, error) {
	r.calls.add(key)
	n := &r.nodes[key/maxItems]
	if n.fails && key%maxItems == max(n.items-1, 0) {
		return 0, errBroken
	}
	return key, nil
}

func newRandomGraph(nodes []drawnNode) *randomGraph {
	r := &randomGraph{nodes: nodes}
	r.child = durable.Define("child", func(c *durable.Ctx, key int) (int, error) {
		return c.Step("value", func(context.Context) (int, error) { return r.value(key) })
	})
	r.workflow = durable.DefineGraph("graph", func(g *durable.Graph[int]) (output *durable.Node[int]) {
		declared := &declaredNodes{graph: g, random: r}
		for i := range nodes {
			output = declared.add(&nodes[i])
		}
		return output
	})
	return r
}

// declaredNodes are the nodes of a random graph that are declared already.
type declaredNodes struct {
	graph  *durable.Graph[int]
	random *randomGraph
	nodes  []durable.AnyNode
	when   []func(holds bool) durable.NodeOption // the condition on the value of each node
	list   *durable.Node[[]int]                  // the latest one
}

func (d *declaredNodes) at(indexes []int) (all []durable.AnyNode) {
	for _, i := range indexes {
		all = append(all, d.nodes[i])
	}
	return all
}

// add declares the node. It returns nil if its value is a list.
func (d *declaredNodes) add(n *drawnNode) *durable.Node[int] {
	opts := []durable.NodeOption{durable.Needs(d.at(n.needs)...), durable.After(d.at(n.after)...), durable.OnUnmetNeed(n.unmet)}
	for _, c := range n.choices {
		opts = append(opts, durable.NeedsQuorum(c.k, c.losers, d.at(c.of)...))
	}
	if n.condition >= 0 {
		opts = append(opts, d.when[n.needs[n.condition]](n.holds))
	}
	if n.delayed {
		opts = append(opts, durable.Delay(time.Hour))
	}
	key := n.index * maxItems
	switch {
	case n.isList:
		d.list = declare(d, d.graph.Step(n.name(), func(context.Context, *durable.NodeInput) (items []int, err error) {
			d.random.calls.add(key)
			for i := range n.items {
				items = append(items, (n.index+1)*maxItems+i)
			}
			return items, nil
		}, opts...))
	case n.kind == durable.NodeEach:
		declare(d, d.graph.Each(n.name(), d.list, func(_ context.Context, item int, _ *durable.NodeInput) (int, error) { return d.random.value(item) }, opts...))
	case n.kind == durable.NodeEachChild:
		declare(d, d.graph.EachChild(n.name(), d.list, d.random.child, opts...))
	case n.kind == durable.NodeChild:
		return declare(d, d.graph.Child(n.name(), d.random.child, func(*durable.NodeInput) (int, error) { return key, nil }, opts...))
	case n.kind == durable.NodeReceive:
		return declare(d, d.graph.Receive[int](n.name(), append(opts, durable.Within(24*time.Hour))...))
	default:
		return declare(d, d.graph.Step(n.name(), func(context.Context, *durable.NodeInput) (int, error) { return d.random.value(key) }, opts...))
	}
	return nil
}

// declare notes the node, so that others can refer to it.
func declare[T any](d *declaredNodes, n *durable.Node[T]) *durable.Node[T] {
	d.nodes = append(d.nodes, n)
	d.when = append(d.when, func(holds bool) durable.NodeOption { return durable.When(n, func(T) bool { return holds }) })
	return n
}
