package graph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
)

// ShapeRecordName returns the name of the row that records the revision.
func ShapeRecordName(revision int) string {
	return ShapeScopeName + naming.Separator + strconv.Itoa(revision)
}

// ShapeRevision returns the revision that the row with the name records. It returns zero if the row records no shape.
func ShapeRevision(row string) int {
	name, ok := strings.CutPrefix(row, ShapeScopeName+naming.Separator)
	if !ok {
		return 0
	}
	revision, err := strconv.Atoi(name)
	if err != nil || revision < 1 {
		return 0
	}
	return revision
}

// Downstream returns the node and all nodes that refer to it in any way, directly or through other nodes.
func (s *Shape) Downstream(node string) []string {
	return s.reachableFrom(node, func(n *Node, reached []string) bool {
		return slices.ContainsFunc(n.AllReferences(), func(need string) bool { return slices.Contains(reached, need) })
	})
}

// AffectedByFailure returns the failed node and all nodes whose verdicts could differ if it completed: the nodes that need it or begin after
// it, the nodes whose choices it could have decided, and, recursively, the nodes that such nodes affect. The function won returns the winners
// of a choice, or nil if the choice is not recorded.
func (s *Shape) AffectedByFailure(node string, won func(node string, choice int) []string) []string {
	return s.reachableFrom(node, func(n *Node, reached []string) bool {
		isReached := func(need string) bool { return slices.Contains(reached, need) }
		if slices.ContainsFunc(n.Needs, isReached) || slices.ContainsFunc(n.After, isReached) {
			return true
		}
		for i, c := range n.Choices {
			decisive := won(n.Name, i)
			if decisive == nil {
				decisive = c.Of
			}
			if slices.ContainsFunc(decisive, isReached) {
				return true
			}
		}
		return false
	})
}

// reachableFrom returns the node and the nodes that are reached from it. The function reaches reports whether a node is reached from
// the nodes that were reached before it.
func (s *Shape) reachableFrom(node string, reaches func(n *Node, reached []string) bool) []string {
	reached := []string{node}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Name != node && reaches(n, reached) {
			reached = append(reached, n.Name)
		}
	}
	return reached
}
