// Package graph decides everything about a declared graph that can be decided without executing it. Its functions are pure: they
// access no run, no database and no clock.
//
//   - A [Shape] is the nodes of a graph, in the order of their declaration, with what each node needs. A run records its shape
//     before its first node begins.
//   - [Node.NextVerdict] says whether a node waits, begins, is skipped or fails the run, given the states of the nodes that it needs. The
//     execution of a graph and its view use this one function, so that they cannot disagree.
//   - [Shape.UnneededAfterChoice] says which nodes end together with the losers of a choice.
//   - [Shape.CheckRevision] compares the recorded shape with the shape of newer code.
//   - [Shape.NodeViews] derives the states of all nodes from the rows of a run.
//   - [Shape.Mermaid] and [Shape.DOT] draw the graph.
//
// A node can only need nodes that were declared before it, so the order of declaration is a topological order, and there are no
// cycles.
package graph

import (
	"crypto/sha256"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
)

// ShapeScopeName is the scope of the rows that record the shape. No node has this name.
const ShapeScopeName = "shape"

// The kinds of nodes. They are recorded.
const (
	KindStep      = "step"
	KindEach      = "each"
	KindChild     = "child"
	KindEachChild = "each child"
	KindReceive   = "receive"
)

// The names of the calls that a node makes, in the scope that has the node's name. They are recorded.
const (
	CallDelay   = "delay"   // a sleep
	CallSkip    = "skip"    // the condition was not met
	CallHeld    = "held"    // a node whose list has no items has begun: nothing else of the node is recorded
	CallFailure = "failure" // the node failed, and no call that executes it has recorded why
)

// CallName returns the name of the call that executes a node of the kind.
func CallName(kind string) string {
	if kind == KindEachChild {
		return "children"
	}
	return kind
}

// ChoiceName returns the name of the node's choice with the index.
func ChoiceName(i int) string { return fmt.Sprint("choice ", i+1) }

// failChoicePrefix begins the name of each choice by which a node fails the run. The SQL views contain it too.
const failChoicePrefix = "fails with "

// FailChoiceName returns the name of the choice by which a node fails the run because the node with the given name has failed. If that
// name is so long that the choice's name would be invalid, a hash of the name replaces its end.
func FailChoiceName(failed string) string {
	const room = naming.MaxName - len(failChoicePrefix)
	if len(failed) <= room {
		return failChoicePrefix + failed
	}
	hash := fmt.Sprintf("…%x", sha256.Sum256([]byte(failed)))
	return failChoicePrefix + strings.ToValidUTF8(failed[:room-len(hash)], "") + hash
}

// IsRunFailureRecorded reports whether one of the rows records that a node fails the run.
func IsRunFailureRecorded(rows []HistoryRow) bool {
	return slices.ContainsFunc(rows, func(r HistoryRow) bool {
		_, call, isNested := strings.Cut(r.Name, naming.Separator)
		return isNested && strings.HasPrefix(call, failChoicePrefix) && !strings.Contains(call, naming.Separator)
	})
}

// UnmetPolicy tells what happens to a node if one of its needs is not met.
type UnmetPolicy string

// The policies. They are recorded.
const (
	UnmetSkips    UnmetPolicy = ""
	UnmetFailsRun UnmetPolicy = "fail"
	UnmetRuns     UnmetPolicy = "run"
)

// Shape is the nodes of a graph and the name of the node whose value is the output.
type Shape struct {
	Nodes  []Node `json:"nodes"`
	Output string `json:"output"`

	indexes map[string]int // the indexes of the nodes by their names; nil before Check is called
}

// Node is one node. All names are those of nodes that were declared before it.
type Node struct {
	Name     string      `json:"name"`
	Kind     string      `json:"kind"`
	Workflow string      `json:"workflow,omitempty"` // of a child, or of each child
	Over     string      `json:"over,omitempty"`     // the node whose value is the list of items; it is one of Needs
	Needs    []string    `json:"needs,omitempty"`    // all of them must complete
	After    []string    `json:"after,omitempty"`    // all of them must be over, however they end
	Choices  []Choice    `json:"choices,omitempty"`
	If       []string    `json:"if,omitempty"` // the nodes whose values the conditions depend on; they are among Needs
	Unmet    UnmetPolicy `json:"unmet,omitempty"`
	Delayed  bool        `json:"delayed,omitzero"` // it has a start delay
}

// Choice is a need that K of the nodes meet.
type Choice struct {
	Of   []string `json:"of"`
	K    int      `json:"k"`
	Keep bool     `json:"keep,omitzero"` // the others continue
}

// Encode returns the recorded form of the shape.
func (s *Shape) Encode() ([]byte, error) { return json.Marshal(s) }

// Decode reads the recorded form of a shape, and checks it.
func Decode(b []byte) (*Shape, error) {
	s := new(Shape)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	return s, s.Check()
}

// Index returns the index of the node with the name, or -1.
func (s *Shape) Index(name string) int {
	if i, ok := s.indexes[name]; ok && i < len(s.Nodes) && s.Nodes[i].Name == name {
		return i
	}
	return slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Name == name })
}

// Check returns all errors in the shape, each with the name of the node. After Check, Index finds nodes without a search.
func (s *Shape) Check() error {
	var errs []error
	if len(s.Nodes) == 0 {
		return errors.New("it has no nodes")
	}
	declared := make(map[string]bool, len(s.Nodes))
	s.indexes = make(map[string]int, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		s.indexes[n.Name] = i
		if err := n.check(declared); err != nil {
			errs = append(errs, fmt.Errorf("node %q: %w", n.Name, err))
		}
		declared[n.Name] = true
	}
	if !declared[s.Output] {
		errs = append(errs, fmt.Errorf("the output is the node %q, which is not declared", s.Output))
	}
	return errors.Join(errs...)
}

// check checks one node. The argument declared has the nodes before it.
func (n *Node) check(declared map[string]bool) error {
	switch {
	case naming.Check("node", n.Name) != nil:
		return naming.Check("node", n.Name)
	case n.Name == ShapeScopeName:
		return errors.New("the name is reserved for the recorded shape: choose another")
	case declared[n.Name]:
		return errors.New("the name is declared twice: give each node a name of its own")
	case n.Unmet != UnmetSkips && n.Unmet != UnmetFailsRun && n.Unmet != UnmetRuns:
		return fmt.Errorf("the policy %q is unknown", n.Unmet)
	case !slices.Contains([]string{KindStep, KindEach, KindChild, KindEachChild, KindReceive}, n.Kind):
		return fmt.Errorf("the kind %q is unknown", n.Kind)
	}
	for _, need := range n.AllReferences() {
		if !declared[need] {
			return fmt.Errorf("it needs %q, which is not declared before it", need)
		}
	}
	for _, c := range n.Choices {
		sorted := slices.Sorted(slices.Values(c.Of))
		switch {
		case c.K < 1 || c.K > len(c.Of):
			return fmt.Errorf("it needs %d of %d nodes: name as many nodes as it needs, or more, and need at least one", c.K, len(c.Of))
		case len(slices.Compact(sorted)) < len(c.Of):
			return errors.New("one of its choices names a node twice")
		}
	}
	return nil
}

// AllReferences returns the nodes that the node refers to in any way.
func (n *Node) AllReferences() []string {
	all := slices.Concat(n.Needs, n.After)
	for _, c := range n.Choices {
		all = append(all, c.Of...)
	}
	return all
}

// needsValueOf reports whether the node needs the value of the other one.
func (n *Node) needsValueOf(other string) bool {
	return slices.Contains(n.Needs, other) || len(indexesOf(n.Choices, other)) > 0
}
