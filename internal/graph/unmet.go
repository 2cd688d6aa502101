package graph

import "slices"

// Outcome is how a node has ended.
type Outcome struct {
	State   State
	ByUnmet bool // it was skipped because its own needs are not met, and not by a condition
}

// Unmet returns the indexes of the nodes that are the reasons why needs of the node are not met, in the order of the shape: those that
// it needs, or that these need, and that failed, were cancelled, or were skipped by their own condition. outcome returns how the node with
// an index has ended.
func (s *Shape) Unmet(node *Node, outcome func(i int) Outcome) (reasons []int) {
	seen := make([]bool, len(s.Nodes))
	var visit func(n *Node)
	visit = func(n *Node) {
		needs := slices.Clone(n.Needs)
		for _, c := range n.Choices {
			needs = append(needs, c.Of...)
		}
		for _, name := range needs {
			i := s.Index(name)
			o := outcome(i)
			if seen[i] || !o.State.IsFinal() || o.State == Completed {
				continue
			}
			seen[i] = true
			if o.ByUnmet {
				visit(&s.Nodes[i])
			} else {
				reasons = append(reasons, i)
			}
		}
	}
	visit(node)
	slices.Sort(reasons)
	return reasons
}

// Culprit returns the index of the node that led to it that a need of the node is not met: the first failed one of [Shape.Unmet], or else
// the first one. It returns -1 if there is none.
func (s *Shape) Culprit(node *Node, outcome func(i int) Outcome) int {
	reasons := s.Unmet(node, outcome)
	for _, i := range reasons {
		if outcome(i).State == Failed {
			return i
		}
	}
	if len(reasons) > 0 {
		return reasons[0]
	}
	return -1
}
