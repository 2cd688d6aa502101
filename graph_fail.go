package durable

import (
	"errors"
	"fmt"
	"slices"

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

// culpritOf returns the node that led to it that a need of the node is not met: the first failed node among those that it needs,
// or that these need; else the first one that was skipped by its condition or cancelled.
func (x *graphRun) culpritOf(n *graphNode) *graphNode {
	unmet := x.unmetBelow(n)
	for _, u := range unmet {
		if x.state(u.name) == graph.Failed {
			return u
		}
	}
	if len(unmet) > 0 {
		return unmet[0]
	}
	return n
}

// unmetBelow returns the nodes, in the recorded order, that are the reasons why needs of the node are not met: those that
// failed, were cancelled, or were skipped by their own condition.
func (x *graphRun) unmetBelow(n *graphNode) (reasons []*graphNode) {
	seen := make([]bool, len(x.d.nodes))
	var visit func(n *graphNode)
	visit = func(n *graphNode) {
		declared := n.spec()
		needs := slices.Clone(declared.Needs)
		for _, c := range declared.Choices {
			needs = append(needs, c.Of...)
		}
		for _, name := range needs {
			need := x.d.nodes[x.d.indexes[name]]
			s := x.state(name)
			if seen[need.index] || !s.IsFinal() || s == graph.Completed {
				continue
			}
			seen[need.index] = true
			if skip, skipped := errors.AsType[*nodeSkip](x.nodes[need.index].err); skipped && !skip.byCondition {
				visit(need)
			} else {
				reasons = append(reasons, need)
			}
		}
	}
	visit(n)
	if len(reasons) > 1 {
		slices.SortFunc(reasons, func(a, b *graphNode) int { return x.shape.Index(a.name) - x.shape.Index(b.name) })
	}
	return reasons
}

// causesOf returns the errors that led to it that the node, which is not completed, has no value.
func (x *graphRun) causesOf(n *graphNode) (errs []error) {
	reasons := []*graphNode{n}
	if x.state(n.name) == graph.Skipped {
		if below := x.unmetBelow(n); len(below) > 0 {
			reasons = below
		}
	}
	for _, r := range reasons {
		_, err := x.result(r)
		errs = append(errs, err)
	}
	return errs
}
