package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed8ec063be/durable"
)

// shout is a workflow that a node of the examples starts as a child.
var shout = durable.Define("shout", func(c *durable.Ctx, text string) (string, error) {
	return c.Step("shout", func(context.Context) (string, error) { return strings.ToUpper(text), nil })
})

// Words are split, counted one by one, and shouted by children, before the report is made of both.
func ExampleDefineGraph() {
	count := durable.DefineGraph("count", func(g *durable.Graph[string]) *durable.Node[string] {
		words := g.Step("words", func(_ context.Context, in *durable.NodeInput) ([]string, error) {
			return strings.Fields(g.Input(in)), nil
		})
		lengths := g.Each("lengths", words, func(_ context.Context, word string, _ *durable.NodeInput) (int, error) {
			return len(word), nil
		})
		shouts := g.EachChild("shouts", words, shout)
		return g.Step("report", func(_ context.Context, in *durable.NodeInput) (string, error) {
			return fmt.Sprint(lengths.Of(in), shouts.Of(in)), nil
		}, durable.Needs(lengths, shouts))
	})
	store, remove := temporary()
	defer remove()
	fmt.Println(count.Call(context.Background(), newEngine(store, count, shout), "one two three"))
	fmt.Print(count.Shape().Mermaid())
	// Output:
	// [3 3 5] [ONE TWO THREE] <nil>
	// flowchart TD
	//     n0["words"]
	//     n1[["lengths"]]
	//     n2[["shouts"]]
	//     n3["report"]
	//     n0 -->|each| n1
	//     n0 -->|each| n2
	//     n1 --> n3
	//     n2 --> n3
	//     style n3 stroke-width:3px
}

// The number of stages is part of the input.
func ExampleDefineGraphFrom() {
	stages := durable.DefineGraphFrom("stages", func(g *durable.Graph[int], n int) *durable.Node[int] {
		last := g.Step("stage-0", func(context.Context, *durable.NodeInput) (int, error) { return 1, nil })
		for i := 1; i < n; i++ {
			before := last
			last = g.Step(fmt.Sprint("stage-", i), func(_ context.Context, in *durable.NodeInput) (int, error) {
				return 2 * before.Of(in), nil
			}, durable.Needs(before))
		}
		return last
	})
	store, remove := temporary()
	defer remove()
	fmt.Println(stages.Call(context.Background(), newEngine(store, stages), 5))
	// Output: 16 <nil>
}

// The first of two sources that answers is used; the other one ends. A third node tells what was left out, however it ended.
func ExampleNeedsAny() {
	ask := durable.DefineGraph("ask", func(g *durable.Graph[string]) *durable.Node[string] {
		phone := g.Receive[string]("phone")
		book := g.Step("book", func(_ context.Context, in *durable.NodeInput) (string, error) { return "found " + g.Input(in), nil })
		answer := g.Step("answer", func(_ context.Context, in *durable.NodeInput) (string, error) {
			if v, err := phone.Get(in); err == nil {
				return v, nil
			}
			return book.Get(in)
		}, durable.NeedsAny(durable.CancelLosers, phone, book))
		return g.Step("summary", func(_ context.Context, in *durable.NodeInput) (string, error) {
			_, err := phone.Get(in)
			return fmt.Sprint(answer.Of(in), ", without ", phone.Name(), ": ", errors.Is(err, durable.ErrCancelled)), nil
		}, durable.Needs(answer), durable.After(phone))
	})
	store, remove := temporary()
	defer remove()
	fmt.Println(ask.Call(context.Background(), newEngine(store, ask), "it"))
	// Output: found it, without phone: true <nil>
}

// Two of three votes decide. A vote that fails does no harm.
func ExampleNeedsQuorum() {
	vote := durable.DefineGraph("vote", func(g *durable.Graph[int]) *durable.Node[int] {
		voter := func(name string, vote int, err error) *durable.Node[int] {
			return g.Step(name, func(context.Context, *durable.NodeInput) (int, error) { return vote, err })
		}
		ann, bob, eve := voter("ann", 1, nil), voter("bob", 1, nil), voter("eve", 0, errors.New("is away"))
		return g.Step("count", func(_ context.Context, in *durable.NodeInput) (votes int, err error) {
			for _, voter := range []*durable.Node[int]{ann, bob, eve} {
				if v, err := voter.Get(in); err == nil {
					votes += v
				}
			}
			return votes, nil
		}, durable.NeedsQuorum(2, durable.CancelLosers, ann, bob, eve))
	})
	store, remove := temporary()
	defer remove()
	fmt.Println(vote.Call(context.Background(), newEngine(store, vote), 0))
	// Output: 2 <nil>
}

// A parcel is insured only if it is valuable. The label is printed in both cases.
func ExampleWhen() {
	parcel := durable.DefineGraph("parcel", func(g *durable.Graph[int]) *durable.Node[string] {
		value := g.Step("value", func(_ context.Context, in *durable.NodeInput) (int, error) { return g.Input(in), nil })
		insured := g.Child("insure", shout, func(in *durable.NodeInput) (string, error) {
			return fmt.Sprint("insured for ", value.Of(in)), nil
		}, durable.When(value, func(v int) bool { return v > 100 }))
		return g.Step("label", func(_ context.Context, in *durable.NodeInput) (string, error) {
			text, err := insured.Get(in)
			if errors.Is(err, durable.ErrNodeSkipped) {
				return "not insured", nil
			}
			return text, err
		}, durable.Needs(insured), durable.OnUnmetNeed(durable.RunAnyway))
	})
	store, remove := temporary()
	defer remove()
	e := newEngine(store, parcel, shout)
	fmt.Println(parcel.Call(context.Background(), e, 500))
	fmt.Println(parcel.Call(context.Background(), e, 5))
	// Output:
	// INSURED FOR 500 <nil>
	// not insured <nil>
}

// The graph of a run shows the state of each node, and what it is connected with.
func ExampleEngine_Graph() {
	fetch := durable.DefineGraph("fetch", func(g *durable.Graph[int]) *durable.Node[int] {
		page := g.Step("page", func(context.Context, *durable.NodeInput) (int, error) { return 0, errors.New("is gone") })
		parse := g.Step("parse", func(_ context.Context, in *durable.NodeInput) (int, error) { return page.Of(in), nil }, durable.Needs(page))
		return g.Step("index", func(_ context.Context, in *durable.NodeInput) (int, error) { return parse.Of(in), nil }, durable.Needs(parse))
	})
	store, remove := temporary()
	defer remove()
	e, ctx := newEngine(store, fetch), context.Background()
	_, err := fetch.Call(ctx, e, 1, durable.ID("run"))
	fmt.Println(err)
	info, err := e.Graph(ctx, "run")
	if err != nil {
		panic(err)
	}
	for _, n := range info.Nodes {
		fmt.Println(n.Name, n.State, n.Err)
	}
	edges, err := e.Edges(ctx, "run", "parse", durable.Incoming)
	fmt.Println(edges[0].From, edges[0].State, err)
	edge, err := e.Edge(ctx, "run", durable.GraphEdge{From: "parse", To: "index"})
	fmt.Println(edge.State, err)
	fmt.Println(strings.Count(info.Mermaid(), ":::skipped"), strings.Count(fetch.Shape().DOT(), "->"))
	// Output:
	// run "run" of workflow "fetch" failed: the graph has no output: node "page" failed: step "page/step" failed: is gone
	// page failed node "page" failed: step "page/step" failed: is gone
	// parse skipped node "parse" has no value: durable: the node was skipped: its needs are not met, because of node "page"
	// index skipped node "index" has no value: durable: the node was skipped: its needs are not met, because of node "page"
	// page failed <nil>
	// skipped <nil>
	// 2 2
}
