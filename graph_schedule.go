package durable

import (
	"errors"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/record"
)

// A node is executed once it is due, by the goroutine that executed the last of the nodes that it waited for. If several nodes become
// due at once, the others get goroutines of their own. So a chain of nodes is executed by one goroutine. A node with choices waits in
// a goroutine of its own from the start, because a recorded choice is replayed before the needs of its node are met.

// dueNode is a node that can be executed now.
type dueNode struct {
	*graphNode
	failsRun bool // a need is not met, and the node fails the run
}

// startAll starts the nodes that wait for nothing, and those with choices.
func (x *graphRun) startAll() {
	x.mu.Lock()
	for _, n := range x.d.nodes {
		if n.hasChoices() || len(n.refers) == 0 {
			x.due = append(x.due, dueNode{graphNode: n})
		}
	}
	x.mu.Unlock()
	x.startDue()
}

// startDue starts a goroutine for each node that is due.
func (x *graphRun) startDue() {
	if next := x.takeDue(); next.graphNode != nil {
		x.start(next)
	}
}

// takeDue returns a node that is due for the calling goroutine, and starts goroutines for the others. Without a node, graphNode is nil.
func (x *graphRun) takeDue() (next dueNode) {
	x.mu.Lock()
	due := x.due
	x.due = nil
	x.mu.Unlock()
	if len(due) == 0 {
		return next
	}
	for _, n := range due[1:] {
		x.start(n)
	}
	return due[0]
}

// start starts a goroutine that executes the node, and then nodes that became due.
func (x *graphRun) start(n dueNode) {
	err := x.c.scope.Go(func() {
		defer x.startDue() // after a runtime.Goexit
		for next := n; next.graphNode != nil; next = x.takeDue() {
			x.execute(next)
		}
	}, func(*record.Failure) {}) // execute has stored it
	if err != nil {
		x.nodes[n.index].storeResult(nil, err)
		x.noteResult(n.index)
	}
}

// execute executes a node in its branch, and stores its result.
func (x *graphRun) execute(n dueNode) {
	defer x.noteResult(n.index)
	f := &x.nodes[n.index]
	if err := x.open(n.graphNode); err != nil {
		f.storeResult(nil, err)
		return
	}
	c := x.c.withScope(f.branch.Scope())
	c.scope.Guard(func() { f.storeResult(x.executeNode(c, n)) }, func(failure *record.Failure) {
		f.storeResult(nil, newBranchPanicError(x.c.scope.DisplayName(n.name), failure))
	})
}

// open opens the branches of the nodes, apart from those that are open. The others must be opened before a choice that can end them
// is recorded, because the record names what it ends.
func (x *graphRun) open(nodes ...*graphNode) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range nodes {
		f := &x.nodes[n.index]
		if f.branch != nil {
			continue
		}
		branch, err := x.c.callScope().NodeBranch(n.name, n.callSite)
		if err != nil {
			return err
		}
		f.branch = branch
		if branch.HasEnded() && !f.withholdResult() { // by a choice that is recorded: the branch only replays its recorded calls
			f.deliverChoiceOutcome(ErrCancelled)
		}
	}
	return nil
}

// openAll opens the branches of all nodes that a choice can end now, and of the given nodes.
func (x *graphRun) openAll(nodes ...*graphNode) error {
	for _, n := range x.d.nodes {
		if !x.nodes[n.index].isFinal() {
			nodes = append(nodes, n)
		}
	}
	return x.open(nodes...)
}

// losers returns the branches of the nodes. They are open.
func (x *graphRun) losers(nodes []string) (losers []engine.LoserBranch) {
	for _, name := range nodes {
		i := x.d.indexes[name]
		f := &x.nodes[i]
		losers = append(losers, engine.LoserBranch{Branch: f.branch, WithholdResult: f.withholdResult, DeliverResult: func(outcome error) {
			f.deliverChoiceOutcome(outcome)
			x.noteResult(i)
			x.startDue()
		}})
	}
	return losers
}

// noteResult is called when the result of a node may have become final. It decides what happens to the nodes that refer to it.
func (x *graphRun) noteResult(node int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.noteResultLocked(node)
}

// noteResultLocked does the same as noteResult. x.mu is held.
func (x *graphRun) noteResultLocked(node int) {
	f := &x.nodes[node]
	if x.progress[node].isFinal || !f.isFinal() {
		return
	}
	x.progress[node].isFinal = true
	if x.notFinal--; x.notFinal == 0 {
		close(x.over)
	}
	for _, i := range x.d.nodes[node].referredBy {
		p, n := &x.progress[i], x.d.nodes[i]
		p.finalNeeds++
		switch {
		case p.isDecided || n.hasChoices():
		case errors.Is(f.err, ErrSuspended):
			x.decideLocked(n, ErrSuspended)
		case f.err != nil || p.finalNeeds == len(n.refers): // else it waits for the others
			x.decideLocked(n, nil)
		}
	}
}

// decideLocked decides what happens to a node without choices. If err is not nil, that is its result. x.mu is held.
func (x *graphRun) decideLocked(n *graphNode, err error) {
	verdict := graph.SkipNow
	if err == nil {
		verdict, _ = n.spec().Decide(x.state, nil)
	}
	switch verdict {
	case graph.Wait:
		return
	case graph.SkipNow:
		if err == nil {
			err = x.skipOf(n)
		}
		x.progress[n.index].isDecided = true
		x.nodes[n.index].storeResult(nil, err)
		x.noteResultLocked(n.index)
	default:
		x.progress[n.index].isDecided = true
		x.due = append(x.due, dueNode{n, verdict == graph.FailRunNow})
	}
}

// skipOf returns the error of a node whose needs are not met.
func (x *graphRun) skipOf(n *graphNode) error {
	return newNodeSkip(x.culpritOf(n).name, false)
}
