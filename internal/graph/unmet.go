package graph

import "slices"

// NodeOutcome tells how a node has ended.
type NodeOutcome struct {
	State     State
	Condition string // if the node was skipped by its own condition: the node on whose value the condition depends; else empty
}

// UnmetReasons returns the indexes of the nodes because of which needs of the node are not met, in the order of the shape. These are nodes
// that the node needs, directly or through other nodes, and that failed, were cancelled, or were skipped because their own condition did not
// hold. The function outcome returns how the node with an index has ended.
func (s *Shape) UnmetReasons(node *Node, outcome func(i int) NodeOutcome) []int {
	r := reasons{shape: s, outcome: outcome, seen: make([]bool, len(s.Nodes))}
	r.visitNeeds(node)
	slices.Sort(r.found)
	return r.found
}

// Causes returns the indexes of the nodes because of which the ended node with the given index has no value: the node itself, or the
// nodes that UnmetReasons returns for it.
func (s *Shape) Causes(i int, outcome func(i int) NodeOutcome) []int {
	r := reasons{shape: s, outcome: outcome, seen: make([]bool, len(s.Nodes))}
	r.visit(i)
	slices.Sort(r.found)
	return r.found
}

// reasons is a search for the nodes because of which another one has no value.
type reasons struct {
	shape   *Shape
	outcome func(i int) NodeOutcome
	seen    []bool
	found   []int
}

func (r *reasons) visitNeeds(n *Node) {
	for _, name := range n.Needs {
		r.visit(r.shape.Index(name))
	}
	for _, c := range n.Choices {
		for _, name := range c.Of {
			r.visit(r.shape.Index(name))
		}
	}
}

func (r *reasons) visit(i int) {
	o := r.outcome(i)
	if r.seen[i] || !o.State.IsFinal() || o.State == Completed {
		return
	}
	r.seen[i] = true
	switch found := len(r.found); {
	case o.State != Skipped:
		r.found = append(r.found, i)
	case o.Condition == "":
		r.visitNeeds(&r.shape.Nodes[i])
	default: // the condition does not hold because the node on which it depends has no value
		if on := r.shape.Index(o.Condition); on >= 0 {
			r.visit(on)
		}
		if len(r.found) == found {
			r.found = append(r.found, i)
		}
	}
}

// MainUnmetReason returns the index of the main node because of which a need of the node is not met: of the nodes that [Shape.UnmetReasons]
// returns, the first failed one or, if none has failed, the first one. It returns -1 if there is none.
func (s *Shape) MainUnmetReason(node *Node, outcome func(i int) NodeOutcome) int {
	reasons := s.UnmetReasons(node, outcome)
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
