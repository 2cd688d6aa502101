package durable

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
)

// runFailure is the error of a node that fails the run.
type runFailure struct{ error }

func (e *runFailure) Unwrap() error { return e.error }

// failBecauseOf fails the run, because a need of the node is not met. It records the node that led to it. So every replay returns
// the same error, also if a second node has failed in the meantime.
func (x *graphRun) failBecauseOf(c *Ctx, n *graphNode) error {
	culprit := x.culpritOf(n)
	for _, before := range x.d.nodes[:n.index] {
		if c.scope.HasBegun(graph.FailName(before.name)) {
			culprit = before
		}
	}
	_, err := x.result(culprit)
	return x.failRun(c, n, culprit, fmt.Errorf("node %q fails the run: %w", n.name, err))
}

// failRun ends all nodes that are not over, apart from n itself, and records that. culprit is the node whose failure led to it. If a
// retry removes the failure from the history, it removes this record as well.
func (x *graphRun) failRun(c *Ctx, n, culprit *graphNode, cause error) error {
	name := graph.FailName(culprit.name)
	if err := x.openAll(n, culprit); err != nil {
		return err
	}
	spec := &engine.ChoiceSpec{Name: name, CallSite: n.callSite, Deciders: []int{0}, Branches: []*engine.Branch{x.nodes[culprit.index].branch}}
	spec.Losers = func([]int) []engine.LoserBranch {
		var open []string
		for _, other := range x.d.nodes {
			if other != n && !x.state(other.name).IsFinal() {
				open = append(open, other.name)
			}
		}
		return x.losers(open)
	}
	res, err := c.callScope().Choose(spec)
	if err := outcomeError(c, name, &res, err); err != nil {
		return err
	}
	if _, err := c.scope.Deciders(spec, res.Output); err != nil {
		return err
	}
	return &runFailure{cause}
}

// culpritOf returns the node that led to it that a need of the node is not met, or the node itself.
func (x *graphRun) culpritOf(n *graphNode) *graphNode {
	if at := x.shape.Culprit(n.spec(), x.outcome); at >= 0 {
		return x.nodeOfShape(at)
	}
	return n
}

// nodeOfShape returns the node with an index of the recorded shape.
func (x *graphRun) nodeOfShape(at int) *graphNode {
	return x.d.nodes[x.d.indexes[x.shape.Nodes[at].Name]]
}

// outcome returns how the node with an index of the recorded shape has ended in this execution.
func (x *graphRun) outcome(at int) graph.Outcome {
	n := x.nodeOfShape(at)
	s := x.state(n.name)
	if !s.IsFinal() {
		return graph.Outcome{State: s} // its error is not known yet
	}
	o := graph.Outcome{State: s}
	if skip, skipped := errors.AsType[*nodeSkip](x.nodes[n.index].err); skipped && skip.byCondition {
		o.Condition = skip.because
	}
	return o
}

// causesOf returns the errors that led to it that the node, which is over and not completed, has no value.
func (x *graphRun) causesOf(n *graphNode) (errs []error) {
	for _, at := range x.shape.Causes(x.shape.Index(n.name), x.outcome) {
		_, err := x.result(x.nodeOfShape(at))
		errs = append(errs, err)
	}
	return errs
}
