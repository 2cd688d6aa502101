package durable

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/naming"
)

// The execution of a graph is an ordinary workflow function. Each node is a branch with the name of the node. A branch is opened when
// its node begins, or before a choice that can end it is recorded, so that the record can name also nodes that have not begun. Once
// the results of the nodes that it refers to are final, graph.Node.Decide says what the node does, and then it makes its durable
// calls; see graph_due_nodes.go. What it decides follows from recorded outcomes alone:
//
//   - The result of a branch follows from its recorded calls, as for every branch. A node that is skipped because a need was not met
//     has no row: every replay skips it again.
//   - Whether a node was executed is recorded if a condition did not hold, or if its list has no items, and else seen from its own rows.
//   - The winners of a choice, and the nodes that it ended, are a choice record, in the scope of the node that needed it.
//   - That a node fails the run is a choice record that the failed node decided. It ends all others.
//
// A node never stops waiting because its context ended. It needs no such thing: the nodes without needs return when their calls are
// refused, and then all others do. So the results of a replay do not depend on when contexts end. Only a node that a recorded choice ended
// before it began does not wait for its needs: it is cancelled in every replay, because the history has no call of it.

// graphRun is one execution of a graph.
type graphRun struct {
	c            *Ctx
	graph        *graphDefinition
	shape        *graph.Shape    // the recorded shape: equal to the shape of d, except that nodes, needs and members of choices may be in another order
	input        any             // *typedInput
	nodeFutures  []Future[any]   // in the order of declaration
	nodeCalls    []nodeArguments // likewise
	nodeBranches []engine.Branch // likewise; those that are not open are empty
	hasRecords   bool            // an earlier execution has recorded more than the shape
	tooLate      map[string]bool // the nodes that must not begin: newer code has added or changed them after it was recorded that a node fails the run
	allFinal     chan struct{}   // closed when the results of all nodes are final

	choosing      sync.Mutex             // held while a choice that ends nodes is made
	mu            sync.Mutex             // locked before those of the futures and before engine locks
	chosen        map[nodeChoiceKey]bool // choices that this execution has recorded or replayed
	nodeProgress  []nodeProgress
	nonFinalCount int       // how many nodes have no final result that is noted
	dueNodes      []dueNode // nodes without a goroutine that executes them
}

// nodeArguments holds the arguments that the execution of a node passes to its durable calls and its function. A run allocates the
// nodeArguments of all nodes at once.
type nodeArguments struct {
	ctx   Ctx
	input NodeInput
}

// nodeProgress says how far a node is in this execution.
type nodeProgress struct {
	finalNeeds int  // how many of the nodes that it refers to are final
	isDecided  bool // what happens to it; unused for nodes with choices
	isFinal    bool // its result is final, and the nodes that refer to it were notified
}

// nodeChoiceKey names a choice of a node by its index.
type nodeChoiceKey struct {
	node  string
	index int
}

// executeGraph executes the graph in the run.
func executeGraph[I, O any](c *Ctx, d *graphDefinition, in I) (O, error) {
	var zero O
	shape, tooLate, err := recordShape(c, d)
	if err != nil {
		return zero, err
	}
	x := newGraphRun(c, d, shape, &typedInput[I]{in})
	x.tooLate = tooLate
	x.executeReadyNodes()
	v, err := x.awaitAllNodes(c)
	if err != nil {
		return zero, err
	}
	out, _ := v.(O)
	return out, nil
}

func newGraphRun(c *Ctx, d *graphDefinition, shape *graph.Shape, input any) *graphRun {
	return &graphRun{
		c: c, graph: d, shape: shape, input: input, allFinal: make(chan struct{}), nonFinalCount: len(d.nodes),
		nodeFutures: make([]Future[any], len(d.nodes)), nodeProgress: make([]nodeProgress, len(d.nodes)), nodeCalls: make([]nodeArguments, len(d.nodes)), nodeBranches: make([]engine.Branch, len(d.nodes)),
		hasRecords: c.scope.HasRecordedCalls(),
	}
}

// awaitAllNodes waits for all nodes, and returns the value of the output node.
func (x *graphRun) awaitAllNodes(c *Ctx) (any, error) {
	<-x.allFinal
	var failed *graphFailure
	for i := range x.nodeFutures {
		switch err := x.nodeFutures[i].err; {
		case errors.Is(err, ErrSuspended):
			return nil, ErrSuspended
		case failed == nil:
			errors.As(err, &failed)
		}
	}
	output := x.graph.nodes[x.graph.nodeIndexes[x.graph.shape.Output]]
	v, err := x.nodeResult(output)
	switch {
	case failed != nil:
		return nil, failed.error
	case err == nil:
		return v, nil
	case c.Err() != nil:
		return nil, context.Cause(c)
	}
	return nil, fmt.Errorf("the graph has no output: %w", joinErrors(x.failureCauses(output)))
}

// executeNode executes a node that is due.
func (x *graphRun) executeNode(c *Ctx, n dueNode) (v any, err error) {
	in := &x.nodeCalls[n.index].input
	in.run, in.node = x, n.graphNode
	switch {
	case n.hasChoices():
		err = x.awaitNeeds(c, in)
	case x.tooLate[n.name]:
		err = ErrCancelled
	case n.failsRun:
		err = x.failRunForUnmetNeed(c, n.graphNode)
	}
	if err != nil {
		return nil, err
	}
	v, err = x.executeUnlessSkipped(c, in)
	if isMistakeOfNode(err) {
		return nil, x.endOpenNodesAndFail(c, n.graphNode, n.graphNode, err)
	}
	return v, err
}

// awaitNeeds waits until a node with choices may begin. It returns an error if the node never begins.
func (x *graphRun) awaitNeeds(c *Ctx, in *NodeInput) error {
	n, declared := in.node, in.node.spec()
	in.choiceWinners = make([][]int, len(declared.Choices))
	for i := range declared.Choices {
		if c.scope.HasCallOutcome(graph.ChoiceName(i)) { // also if the node is skipped: the record names nodes that have ended
			if err := x.recordWinnersAndEndLosers(c, in, i); err != nil {
				return err
			}
		}
	}
	changed := make(chan struct{}, 1)
	for _, i := range n.refersTo {
		x.nodeFutures[i].notifyWhenFinal(func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}
	ended := c.Done() // by a choice, or because the run ends: then the nodes without needs return
	for {
		if x.refersToSuspendedNode(n) {
			return ErrSuspended
		}
		if x.nodeFutures[n.index].branch.WasEndedByChoice() && !x.hasBegun(c, n) {
			return ErrCancelled // whatever happens to its needs, all its calls would be refused
		}
		verdict, choice := declared.NextVerdict(x.nodeState, func(i int) bool { return in.choiceWinners[i] != nil })
		if verdict != graph.VerdictWait && verdict != graph.VerdictSkip && x.tooLate[n.name] {
			return ErrCancelled
		}
		switch verdict {
		case graph.VerdictBegin:
			return nil
		case graph.VerdictSkip:
			return x.skipError(n)
		case graph.VerdictFailRun:
			return x.failRunForUnmetNeed(c, n)
		case graph.VerdictChoose:
			if err := x.recordWinnersAndEndLosers(c, in, choice); err != nil {
				return err
			}
		case graph.VerdictWait:
			select {
			case <-changed:
			case <-ended:
				ended = nil
			}
		}
	}
}

// hasBegun reports whether an earlier execution has recorded calls of a node apart from its choices. c is the context of the node's branch.
func (x *graphRun) hasBegun(c *Ctx, n *graphNode) bool {
	call := graph.CallName(n.spec().Kind)
	return slices.ContainsFunc([]string{graph.CallDelay, graph.CallSkip, graph.CallHeld, graph.CallFailure, call}, c.scope.HasCallBegun) ||
		c.scope.HasBegunCallInNestedScope(call) ||
		slices.ContainsFunc(x.graph.nodes, func(culprit *graphNode) bool { return c.scope.HasCallBegun(graph.FailChoiceName(culprit.name)) })
}

// refersToSuspendedNode reports whether a node that the node refers to has returned because the run leaves this process.
func (x *graphRun) refersToSuspendedNode(n *graphNode) bool {
	return slices.ContainsFunc(n.refersTo, func(i int) bool {
		f := &x.nodeFutures[i]
		return f.isFinal() && errors.Is(f.err, ErrSuspended)
	})
}

// executeUnlessSkipped executes the node, unless one of its conditions does not hold.
func (x *graphRun) executeUnlessSkipped(c *Ctx, in *NodeInput) (v any, err error) {
	defer in.recoverMistake(&err) // conditions and the inputs of children read values in the workflow function
	n, kind := in.node, in.node.spec().Kind
	call := graph.CallName(kind)
	if x.hasRecords && c.scope.HasCallBegun(graph.CallFailure) {
		return nil, recordNodeFailure(c, n, nil)
	}
	decides := len(n.conditions) > 0 || n.isEmpty != nil || x.hasRecords && c.scope.HasCallBegun(graph.CallSkip)
	if decides && !slices.ContainsFunc([]string{graph.CallDelay, graph.CallHeld, call}, c.scope.HasCallBegun) && !c.scope.HasBegunCallInNestedScope(call) {
		if err := x.recordConditionResult(c, in); err != nil {
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

// recordConditionResult is called before the first call of a node. It returns a nodeSkippedError, after the skip is recorded, if one of the
// conditions does not hold. If the node has a list without items, nothing else of it will be recorded, so recordConditionResult records that it
// is executed: other nodes then use its value, and newer code must not change it.
func (x *graphRun) recordConditionResult(c *Ctx, in *NodeInput) error {
	failed := slices.IndexFunc(in.node.conditions, func(k nodeCondition) bool { return !k.holds(in) })
	if failed < 0 && !c.scope.HasCallBegun(graph.CallSkip) {
		if in.node.isEmpty == nil || !in.node.isEmpty(in) {
			return nil
		}
		_, err := recordGraphCall(c, graph.CallHeld, in.node.callSite, func() ([]byte, error) { return []byte("true"), nil })
		return err
	}
	recorded, err := recordGraphCall(c, graph.CallSkip, in.node.callSite, func() ([]byte, error) {
		return json.Marshal(in.node.conditions[failed].node.Name())
	})
	if err != nil {
		return err
	}
	on, err := decode[string](recorded)
	if err != nil {
		return undecodableError[string](c, graph.CallSkip, "skip of node", in.node.name, "does not decode", recorded, err, "bring back the old code")
	}
	return newNodeSkippedError(on, true)
}

// recordWinnersAndEndLosers records the choice of the node with the index, or reads its record, and ends the losers.
func (x *graphRun) recordWinnersAndEndLosers(c *Ctx, in *NodeInput, index int) error {
	choice, name := x.choicesOf(in.node)[index], graph.ChoiceName(index)
	members, nodes := make([]*Future[any], len(choice.Of)), make([]*graphNode, len(choice.Of))
	for i, of := range choice.Of {
		at := x.graph.nodeIndexes[of]
		members[i], nodes[i] = &x.nodeFutures[at], x.graph.nodes[at]
	}
	if err := x.openChoiceBranches(nodes...); err != nil {
		return err
	}
	spec, err := newChoiceSpec(c, name, in.node.callSite, choice.K, KeepLosers, members)
	if err != nil {
		return err
	}
	if !choice.Keep {
		spec.SelectLosers = func(won []int) []engine.LoserBranch {
			var winners []string
			for _, i := range won {
				winners = append(winners, choice.Of[i])
			}
			return x.loserBranches(x.graph.shape.UnneededAfterChoice(in.node.name, index, winners, x.nodeStateOrCancelled, x.isChoiceRecorded))
		}
	}
	for i, of := range choice.Of {
		if len(spec.DecidingBranches) < choice.K && x.nodeState(of) == graph.Completed {
			spec.DecidingBranches = append(spec.DecidingBranches, i)
		}
	}
	won, err := x.recordChoice(c, in.node, index, spec, members)
	if err != nil {
		return err
	}
	for _, i := range won {
		switch _, err := members[i].wait(); {
		case err == nil || c.Err() != nil:
		case wrapsErrorOfCallRepeatedByRepair(c, name, err):
			return err
		default:
			return c.scope.ReportDivergence(name, fmt.Errorf("%w: node %q in run %q has recorded that node %q completed, and now it did not: %w", ErrDiverged, in.node.name, c.ID(), choice.Of[i], err))
		}
	}
	in.choiceWinners[index] = won
	return nil
}

// recordChoice records the choice of a node, or reads its record. Choices that end nodes are made one after the other, so that the later
// one of two that could do without a node ends it.
func (x *graphRun) recordChoice(c *Ctx, n *graphNode, index int, spec *engine.ChoiceSpec, members []*Future[any]) ([]int, error) {
	if spec.SelectLosers != nil && !c.scope.HasCallOutcome(spec.Name) {
		x.choosing.Lock()
		defer x.choosing.Unlock()
	}
	won, err := recordOrReadChoice(c, spec, members)
	if err == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.chosen == nil {
			x.chosen = make(map[nodeChoiceKey]bool)
		}
		x.chosen[nodeChoiceKey{n.name, index}] = true
	}
	return won, err
}

// isChoiceRecorded reports whether the choice of a node with the index is recorded.
func (x *graphRun) isChoiceRecorded(node string, index int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.chosen[nodeChoiceKey{node, index}] || x.c.scope.HasCallOutcome(node+naming.Separator+graph.ChoiceName(index))
}

// choicesOf returns the choices of a node, with their members in the recorded order.
func (x *graphRun) choicesOf(n *graphNode) []graph.Choice {
	if x.shape == &x.graph.shape {
		return n.spec().Choices
	}
	return x.shape.Nodes[x.shape.Index(n.name)].Choices
}

// nodeState returns the state of a node in this execution: Running until its branch has returned.
func (x *graphRun) nodeState(node string) graph.State {
	f := &x.nodeFutures[x.graph.nodeIndexes[node]]
	if !f.isFinal() {
		return graph.Running
	}
	return nodeStateFromError(f.err)
}

// nodeStateOrCancelled returns the state of a node whose branch is open or has returned. It returns the same as nodeState, except for a node that a
// choice has ended and whose branch has not returned: such a node counts as Cancelled, because it needs nothing any more.
func (x *graphRun) nodeStateOrCancelled(node string) graph.State {
	s := x.nodeState(node)
	if !s.IsFinal() && x.nodeFutures[x.graph.nodeIndexes[node]].branch.WasEndedByChoice() {
		return graph.Cancelled
	}
	return s
}

// nodeResult returns the value of a node that is over, or a *NodeError.
func (x *graphRun) nodeResult(n *graphNode) (any, error) {
	v, err := x.nodeFutures[n.index].wait()
	if err == nil {
		return v, nil
	}
	return nil, &NodeError{n.name, NodeState(nodeStateFromError(err)), err}
}
