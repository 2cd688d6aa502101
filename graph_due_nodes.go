package durable

import (
	"errors"
	"slices"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/record"
)

// A node is executed once it is due, by the goroutine that executed the last of the nodes that it waited for. If several nodes become
// due at once, the others get goroutines of their own. The goroutine of the workflow function executes the first of the nodes that wait
// for nothing. So it executes a chain of nodes alone, as if the chain were written by hand. A node with choices waits in a goroutine of
// its own from the start, because a recorded choice is replayed before the needs of its node are met.

// dueNode is a node that can be executed now.
type dueNode struct {
	*graphNode
	failsRun bool // a need is not met, and the node fails the run
}

// executeReadyNodes starts the nodes with choices, and executes those that wait for nothing and all that become due until the calling
// goroutine has nothing to execute.
func (x *graphRun) executeReadyNodes() {
	if x.hasRecords {
		x.cancelRecordedLosers()
	}
	var ready []dueNode
	for _, n := range x.graph.nodes {
		switch {
		case n.hasChoices():
			x.startNode(dueNode{graphNode: n})
		case len(n.refersTo) == 0:
			ready = append(ready, dueNode{graphNode: n})
		}
	}
	x.mu.Lock()
	x.dueNodes = append(ready, x.dueNodes...) // a node that fails at once may have made others due
	x.mu.Unlock()
	x.executeNodes(x.takeDueNodeStartOthers())
}

// executeNodes executes the node, if there is one, and then nodes that became due.
func (x *graphRun) executeNodes(next dueNode) {
	defer x.startDueNodes() // after a runtime.Goexit
	for ; next.graphNode != nil; next = x.takeDueNodeStartOthers() {
		x.executeInBranch(next)
	}
}

// startDueNodes starts a goroutine for each node that is due.
func (x *graphRun) startDueNodes() {
	if next := x.takeDueNodeStartOthers(); next.graphNode != nil {
		x.startNode(next)
	}
}

// takeDueNodeStartOthers takes all nodes that are due. It returns one of them, for the calling goroutine to execute, and starts a
// goroutine for each of the others. If no node is due, the graphNode of the result is nil.
func (x *graphRun) takeDueNodeStartOthers() (next dueNode) {
	x.mu.Lock()
	if len(x.dueNodes) == 0 {
		x.mu.Unlock()
		return next
	}
	next = x.dueNodes[0]
	others := slices.Clone(x.dueNodes[1:])
	x.dueNodes = x.dueNodes[:0]
	x.mu.Unlock()
	for _, n := range others {
		x.startNode(n)
	}
	return next
}

// startNode starts a goroutine that executes the node, and then nodes that became due.
func (x *graphRun) startNode(n dueNode) {
	err := x.c.scope.Go(func() { x.executeNodes(n) }, func(*record.Failure) {}) // executeInBranch has stored it
	if err != nil {
		x.nodeFutures[n.index].storeResult(nil, err)
		x.decideDependents(n.index)
	}
}

// executeInBranch executes a node in its branch, and stores its result.
func (x *graphRun) executeInBranch(n dueNode) {
	defer x.decideDependents(n.index)
	f := &x.nodeFutures[n.index]
	if err := x.openBranches(n.graphNode); err != nil {
		f.storeResult(nil, err)
		return
	}
	c := &x.nodeCalls[n.index].ctx
	*c = *x.c
	c.scope = f.branch.Scope()
	c.Context = c.scope.Context()
	v, err := x.executeNodeAndRecordFailure(c, n)
	c.scope.NoteBranchReturned(withoutRecordedFailure(err))
	f.storeResult(v, err)
}

// openBranches opens the branches of the nodes, apart from those that are open. The others must be opened before a choice that can end them
// is recorded, because the record names what it ends.
func (x *graphRun) openBranches(nodes ...*graphNode) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range nodes {
		f := &x.nodeFutures[n.index]
		if f.branch != nil {
			continue
		}
		branch := &x.nodeBranches[n.index]
		if err := x.c.callScope().OpenGraphNodeBranch(branch, n.scopePrefix, n.callSite); err != nil {
			return err
		}
		f.branch = branch
		if branch.WasEndedByChoice() && !f.withholdResult() { // by a choice that is recorded: the branch only replays its recorded calls
			f.deliverChoiceOutcome(ErrCancelled)
		}
	}
	return nil
}

// openChoiceBranches opens the branches of all nodes that a choice can end now, and of the given nodes.
func (x *graphRun) openChoiceBranches(nodes ...*graphNode) error {
	for _, n := range x.graph.nodes {
		if !x.nodeFutures[n.index].isFinal() {
			nodes = append(nodes, n)
		}
	}
	return x.openBranches(nodes...)
}

// loserBranches returns the branches of the nodes. They are open.
func (x *graphRun) loserBranches(nodes []string) (losers []engine.LoserBranch) {
	for _, name := range nodes {
		i := x.graph.nodeIndexes[name]
		f := &x.nodeFutures[i]
		losers = append(losers, engine.LoserBranch{Branch: f.branch, WithholdResult: f.withholdResult, DeliverResult: func(outcome error) {
			f.deliverChoiceOutcome(outcome)
			x.mu.Lock()
			if outcome == ErrCancelled {
				x.cancelUnlessBegunLocked(x.graph.nodes[i])
			}
			x.decideDependentsLocked(i)
			x.mu.Unlock()
			x.startDueNodes()
		}})
	}
	return losers
}

// cancelRecordedLosers cancels the nodes that recorded choices ended before they began.
func (x *graphRun) cancelRecordedLosers() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.graph.nodes {
		if x.c.scope.WasBranchEndedByChoice(n.name) {
			x.cancelUnlessBegunLocked(n)
		}
	}
}

// cancelUnlessBegunLocked makes ErrCancelled the result of a node that a choice has ended, unless the node has begun. Every call of such a
// node would be refused, whatever happens to the nodes that it needs. Therefore the nodes that begin after it need not wait until the
// nodes that it needs are over. A node with choices notices the end itself; see awaitNeeds. x.mu is held.
func (x *graphRun) cancelUnlessBegunLocked(n *graphNode) {
	p := &x.nodeProgress[n.index]
	if p.isDecided || n.hasChoices() || len(n.refersTo) == 0 || x.c.scope.HasBegunCallInNestedScope(n.name) {
		return
	}
	p.isDecided = true
	x.nodeFutures[n.index].storeResult(nil, ErrCancelled)
	x.decideDependentsLocked(n.index)
}

// decideDependents is called when the result of a node may have become final. It decides what happens to the nodes that refer to it.
func (x *graphRun) decideDependents(node int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.decideDependentsLocked(node)
}

// decideDependentsLocked does the same as decideDependents. x.mu is held.
func (x *graphRun) decideDependentsLocked(node int) {
	f := &x.nodeFutures[node]
	if x.nodeProgress[node].isFinal || !f.isFinal() {
		return
	}
	x.nodeProgress[node].isFinal = true
	if x.nonFinalCount--; x.nonFinalCount == 0 {
		close(x.allFinal)
	}
	for _, i := range x.graph.nodes[node].referredBy {
		p, n := &x.nodeProgress[i], x.graph.nodes[i]
		p.finalNeeds++
		switch {
		case p.isDecided || n.hasChoices():
		case errors.Is(f.err, ErrSuspended):
			x.decideNodeLocked(n, ErrSuspended)
		case f.err != nil || p.finalNeeds == len(n.refersTo): // else it waits for the others
			x.decideNodeLocked(n, nil)
		}
	}
}

// decideNodeLocked decides what happens to a node without choices. If err is not nil, that is its result. x.mu is held.
func (x *graphRun) decideNodeLocked(n *graphNode, err error) {
	verdict := graph.VerdictSkip
	if err == nil {
		verdict, _ = n.spec().NextVerdict(x.nodeState, nil)
	}
	switch verdict {
	case graph.VerdictWait:
		return
	case graph.VerdictSkip:
		if err == nil {
			err = x.skipError(n)
		}
		x.nodeProgress[n.index].isDecided = true
		x.nodeFutures[n.index].storeResult(nil, err)
		x.decideDependentsLocked(n.index)
	default:
		x.nodeProgress[n.index].isDecided = true
		x.dueNodes = append(x.dueNodes, dueNode{n, verdict == graph.VerdictFailRun})
	}
}

// skipError returns the error of a node whose needs are not met. If a choice has ended the node, the error names the choice as the reason,
// because the record shows that the choice came first.
func (x *graphRun) skipError(n *graphNode) error {
	if x.c.scope.WasBranchEndedByChoice(n.name) {
		return ErrCancelled
	}
	return newNodeSkippedError(x.rootCauseNode(n).name, false)
}
