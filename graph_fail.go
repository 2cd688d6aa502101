package durable

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
)

// graphFailure is the error of a node that fails the run.
type graphFailure struct{ error }

func (e *graphFailure) Unwrap() error { return e.error }

// failRunForUnmetNeed fails the run, because a need of the node is not met. It records the node whose failure is the cause, so that
// every replay returns the same error, even if a second node has failed meanwhile.
func (x *graphRun) failRunForUnmetNeed(c *Ctx, n *graphNode) error {
	culprit := x.rootCauseNode(n)
	for _, before := range x.graph.nodes[:n.index] {
		if c.scope.HasCallBegun(graph.FailChoiceName(before.name)) {
			culprit = before
		}
	}
	_, err := x.nodeResult(culprit)
	return x.endOpenNodesAndFail(c, n, culprit, fmt.Errorf("node %q fails the run: %w", n.name, err))
}

// endOpenNodesAndFail ends all nodes that are not over, apart from n itself, and records this. culprit is the node whose failure is the
// cause. If a retry removes the failure from the history, it removes this record as well.
func (x *graphRun) endOpenNodesAndFail(c *Ctx, n, culprit *graphNode, cause error) error {
	name := graph.FailChoiceName(culprit.name)
	if err := x.openChoiceBranches(n, culprit); err != nil {
		return err
	}
	spec := &engine.ChoiceSpec{Name: name, CallSite: n.callSite, DecidingBranches: []int{0}, Branches: []*engine.Branch{x.nodeFutures[culprit.index].branch}}
	spec.SelectLosers = func([]int) []engine.LoserBranch {
		var open []string
		for _, other := range x.graph.nodes {
			if other != n && !x.nodeState(other.name).IsFinal() {
				open = append(open, other.name)
			}
		}
		return x.loserBranches(open)
	}
	res, err := c.callScope().RecordChoiceAndEndLosers(spec)
	if err := callResultError(c, name, &res, err); err != nil {
		return err
	}
	if _, err := c.scope.DecodeDecidingBranches(spec, res.Output); err != nil {
		return err
	}
	return &graphFailure{&choiceDecidingError{cause, spec.Branches[0].Name()}}
}

// rootCauseNode returns the node because of which a need of the given node is not met, or the given node itself.
func (x *graphRun) rootCauseNode(n *graphNode) *graphNode {
	if at := x.shape.MainUnmetReason(n.spec(), x.nodeOutcome); at >= 0 {
		return x.declaredNodeAt(at)
	}
	return n
}

// declaredNodeAt returns the node with an index of the recorded shape.
func (x *graphRun) declaredNodeAt(at int) *graphNode {
	return x.graph.nodes[x.graph.nodeIndexes[x.shape.Nodes[at].Name]]
}

// nodeOutcome returns the outcome, in this execution, of the node with an index of the recorded shape.
func (x *graphRun) nodeOutcome(at int) graph.NodeOutcome {
	n := x.declaredNodeAt(at)
	s := x.nodeState(n.name)
	if !s.IsFinal() {
		return graph.NodeOutcome{State: s} // its error is not known yet
	}
	o := graph.NodeOutcome{State: s}
	if skip, skipped := errors.AsType[*nodeSkippedError](x.nodeFutures[n.index].err); skipped && skip.byCondition {
		o.Condition = skip.because
	}
	return o
}

// failureCauses returns the errors because of which the node has no value. The node is over and not completed.
func (x *graphRun) failureCauses(n *graphNode) (errs []error) {
	for _, at := range x.shape.Causes(x.shape.Index(n.name), x.nodeOutcome) {
		_, err := x.nodeResult(x.declaredNodeAt(at))
		errs = append(errs, err)
	}
	return errs
}
