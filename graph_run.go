package durable

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
)

// The execution of a graph is an ordinary workflow function. Each node is a branch with the name of the node, and all branches are
// opened at once, so that a recorded choice can end each of them, also one that has not begun. A branch waits in memory for the
// results of the branches that its node refers to, asks graph.Node.Decide what to do, and then makes its durable calls. What it
// decides follows from recorded outcomes alone:
//
//   - The result of a branch follows from its recorded calls, as for every branch. A node that is skipped because a need was not met
//     has no row: every replay skips it again.
//   - Whether a condition held is recorded if it did not, and seen from the node's own rows if it did.
//   - The winners of a choice, and the nodes that it ended, are a choice record, in the scope of the node that needed it.
//   - That a node fails the run is a choice record that the failed node decided. It ends all others.
//
// A branch never stops waiting because its context ended. It needs no such thing: the branches without needs return when their
// calls are refused, and then all others do. So the results of a replay do not depend on when contexts end.

// graphRun is one execution of a graph.
type graphRun struct {
	d       *graphDefinition
	input   any            // *graphInput
	nodes   []*Future[any] // in the order of declaration
	started chan struct{}  // closed when nodes is complete
}

// executeGraph executes the graph in the run.
func executeGraph[I, O any](c *Ctx, d *graphDefinition, in I) (O, error) {
	var zero O
	if err := recordShape(c, d); err != nil {
		return zero, err
	}
	x := &graphRun{d: d, input: &graphInput[I]{in}, started: make(chan struct{})}
	for _, n := range d.nodes {
		x.nodes = append(x.nodes, c.Go(n.name, func(c *Ctx) (any, error) { return x.executeNode(c, n) }))
	}
	close(x.started)
	v, err := x.awaitOutput(c)
	if err != nil {
		return zero, err
	}
	out, _ := v.(O)
	return out, nil
}

// awaitOutput waits for all nodes, and returns the value of the output node.
func (x *graphRun) awaitOutput(c *Ctx) (any, error) {
	var failed *runFailure
	for _, f := range x.nodes {
		switch _, err := f.Wait(); {
		case errors.Is(err, ErrSuspended):
			return nil, ErrSuspended
		case failed == nil:
			errors.As(err, &failed)
		}
	}
	output := x.d.nodes[x.d.shape.Index(x.d.shape.Output)]
	v, err := x.result(output)
	switch {
	case failed != nil:
		return nil, failed.error
	case err == nil:
		return v, nil
	case c.Err() != nil:
		return nil, context.Cause(c)
	}
	return nil, fmt.Errorf("the graph has no output: %w", joinErrors(x.causesOf(output)))
}

// executeNode executes the node in its branch, once its needs are met.
func (x *graphRun) executeNode(c *Ctx, n *graphNode) (v any, err error) {
	<-x.started
	in := &NodeInput{run: x, node: n, winners: make([][]int, len(n.spec().Choices))}
	if err := x.awaitNeeds(c, in); err != nil {
		return nil, err
	}
	v, err = x.beginNode(c, in)
	if errors.Is(err, ErrUndeclaredNeed) {
		return nil, x.failRun(c, n, n, err)
	}
	return v, err
}

// awaitNeeds waits until the node may begin. It returns an error if the node never begins.
func (x *graphRun) awaitNeeds(c *Ctx, in *NodeInput) error {
	n, declared := in.node, in.node.spec()
	for i := range declared.Choices {
		if c.scope.HasOutcome(graph.ChoiceName(i)) { // also if the node is skipped: the record names nodes that have ended
			if err := x.choose(c, in, i); err != nil {
				return err
			}
		}
	}
	changed := make(chan struct{}, 1)
	for i := range n.index {
		if declared.Refers(x.d.nodes[i].name) {
			x.nodes[i].notifyWhenFinal(func() {
				select {
				case changed <- struct{}{}:
				default:
				}
			})
		}
	}
	for {
		if x.isSuspended(declared) {
			return ErrSuspended
		}
		switch verdict, choice := declared.Decide(x.state, func(i int) bool { return in.winners[i] != nil }); verdict {
		case graph.Begin:
			return nil
		case graph.SkipNow:
			return &nodeSkip{why: fmt.Sprintf("its needs are not met, because of node %q", x.culpritOf(n).name)}
		case graph.FailRunNow:
			return x.failBecauseOf(c, n)
		case graph.ChooseBefore:
			if err := x.choose(c, in, choice); err != nil {
				return err
			}
		case graph.Wait:
			<-changed
		}
	}
}

// isSuspended reports whether a node that the node refers to has returned because the run leaves this process.
func (x *graphRun) isSuspended(declared *graph.Node) bool {
	for i, f := range x.nodes {
		if declared.Refers(x.d.nodes[i].name) && f.isFinal() && errors.Is(f.err, ErrSuspended) {
			return true
		}
	}
	return false
}

// beginNode executes the node, unless one of its conditions does not hold.
func (x *graphRun) beginNode(c *Ctx, in *NodeInput) (v any, err error) {
	defer in.recoverUndeclared(&err) // conditions and the inputs of children read values in the workflow function
	n, kind := in.node, in.node.spec().Kind
	call := graph.CallName(kind)
	if len(n.conditions) > 0 && !c.scope.HasBegun(graph.CallDelay) && !c.scope.HasBegun(call) && !c.scope.HasBegunIn(call) {
		if err := x.checkConditions(c, in); err != nil {
			return nil, err
		}
	}
	if n.delay > 0 {
		if err := c.Sleep(graph.CallDelay, n.delay); err != nil {
			return nil, err
		}
	}
	return n.execute(c, in)
}

// checkConditions returns a nodeSkip, after the skip is recorded, if one of the conditions does not hold.
func (x *graphRun) checkConditions(c *Ctx, in *NodeInput) error {
	failed := slices.IndexFunc(in.node.conditions, func(k nodeCondition) bool { return !k.holds(in) })
	if failed < 0 && !c.scope.HasBegun(graph.CallSkip) {
		return nil
	}
	recorded, err := recordByGraph(c, graph.CallSkip, in.node.callSite, func() ([]byte, error) {
		return json.Marshal(in.node.conditions[failed].node.Name())
	})
	if err != nil {
		return err
	}
	on, err := decode[string](recorded)
	if err != nil {
		return undecodableError[string](c, "skip of node", in.node.name, "does not decode", recorded, err, "bring back the old code")
	}
	return &nodeSkip{why: fmt.Sprintf("its condition on the value of node %q does not hold", on), byCondition: true}
}

// choose records the choice of the node with the index, or reads its record, and ends the losers.
func (x *graphRun) choose(c *Ctx, in *NodeInput, index int) error {
	choice, name := in.node.spec().Choices[index], graph.ChoiceName(index)
	members := make([]*Future[any], len(choice.Of))
	for i, of := range choice.Of {
		members[i] = x.nodes[x.d.shape.Index(of)]
	}
	spec, err := newChoiceSpec(c, name, in.node.callSite, choice.K, KeepLosers, members)
	if err != nil {
		return err
	}
	if !choice.Keep {
		spec.Losers = func(won []int) []engine.LoserBranch {
			var winners []string
			for _, i := range won {
				winners = append(winners, choice.Of[i])
			}
			return x.losers(x.d.shape.Unneeded(in.node.name, index, winners, func(node string) bool { return x.state(node).IsFinal() }))
		}
	}
	for i, of := range choice.Of {
		if len(spec.Deciders) < choice.K && x.state(of) == graph.Completed {
			spec.Deciders = append(spec.Deciders, i)
		}
	}
	won, err := chooseBranches(c, spec, members)
	if err != nil {
		return err
	}
	for _, i := range won {
		if _, err := members[i].Wait(); err != nil && c.Err() == nil {
			return c.scope.Diverged(name, fmt.Errorf("%w: node %q in run %q has recorded that node %q completed, and now it did not: %w", ErrDiverged, in.node.name, c.ID(), choice.Of[i], err))
		}
	}
	in.winners[index] = won
	return nil
}

// losers returns the branches of the nodes.
func (x *graphRun) losers(nodes []string) (losers []engine.LoserBranch) {
	for _, name := range nodes {
		f := x.nodes[x.d.shape.Index(name)]
		losers = append(losers, engine.LoserBranch{Branch: f.branch, WithholdResult: f.withholdResult, DeliverResult: f.deliverChoiceOutcome})
	}
	return losers
}

// state returns the state of a node in this execution: Running until its branch has returned.
func (x *graphRun) state(node string) graph.State {
	f := x.nodes[x.d.shape.Index(node)]
	if !f.isFinal() {
		return graph.Running
	}
	return stateOfError(f.err)
}

// result returns the value of a node that is over, or a *NodeError.
func (x *graphRun) result(n *graphNode) (any, error) {
	v, err := x.nodes[n.index].Wait()
	if err == nil {
		return v, nil
	}
	return nil, &NodeError{n.name, NodeState(stateOfError(err)), err}
}
