package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
)

// CheckRevision returns an error, which names the node, if a run whose recorded shape is s cannot continue with the shape now. This is so if
// a node has begun, or was skipped or ended by a choice and another node has begun after it, and the shape now does not have the node, or has
// it with other needs, another kind or another policy. The function begun reports whether a node has begun, and ended whether a choice has
// ended it.
func (s *Shape) CheckRevision(now *Shape, begun, ended func(node string) bool) error {
	for i := range s.Nodes {
		was := &s.Nodes[i]
		at := now.Index(was.Name)
		switch {
		case at >= 0 && was.equalExceptConditions(&now.Nodes[at]):
		case !begun(was.Name):
			if after := s.begunAfter(was.Name, begun); after != "" {
				what := "was skipped"
				if ended(was.Name) {
					what = "was cancelled by a choice"
				}
				return fmt.Errorf("node %q %s, and the node %q, which comes after it, has begun, so node %q cannot begin any more: bring back its needs, or give the new node another name", was.Name, what, after, was.Name)
			}
		case at < 0:
			return fmt.Errorf("node %q has begun, and the code does not declare it any more: bring it back", was.Name)
		default:
			return fmt.Errorf("node %q has begun as %s, and the code declares it as %s: bring back what it was, or give the new node another name", was.Name, was.description(), now.Nodes[at].description())
		}
	}
	return nil
}

// begunAfter returns the name of a node that has begun and that begins only when the given node is over, or an empty name if there is none.
// It ignores nodes with choices, because choices are recorded before the node begins.
func (s *Shape) begunAfter(name string, begun func(node string) bool) string {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if len(n.Choices) == 0 && (slices.Contains(n.After, name) || slices.Contains(n.Needs, name)) && begun(n.Name) {
			return n.Name
		}
	}
	return ""
}

// CheckSkips returns an error if a node was skipped and another node has begun after it, but with the shape now the node would not be skipped
// any more, because a node before it has changed. The arguments rows and ended say what is recorded, as in [Shape.NodeViews]. CheckRevision
// must have returned nil.
func (s *Shape) CheckSkips(now *Shape, rows []HistoryRow, ended func(node string) bool) error {
	begun := make(map[string]bool)
	for i := range rows {
		node, _, _ := strings.Cut(rows[i].Name, naming.Separator)
		begun[node] = true
	}
	before, after := s.NodeViews(rows, ended, false), now.NodeViews(rows, ended, false)
	revives := func(node string) bool { // CheckRevision returns an error if such a node is gone
		at := now.Index(node)
		return at >= 0 && before[s.Index(node)].State == Skipped && after[at].State != Skipped
	}
	for i := range s.Nodes {
		name := s.Nodes[i].Name
		if !revives(name) {
			continue
		}
		if follower := s.begunAfter(name, func(node string) bool { return begun[node] }); follower != "" {
			changed := s.changedBefore(name, now, revives)
			return fmt.Errorf("node %q was skipped because of node %q, and the node %q, which comes after it, has begun, so node %q cannot begin any more: bring back the needs of node %q, or give the new nodes other names",
				name, changed, follower, name, changed)
		}
	}
	return nil
}

// changedBefore returns the changed node because of which the given node, which has not changed itself, is not skipped any more.
func (s *Shape) changedBefore(name string, now *Shape, revives func(node string) bool) string {
	n := &s.Nodes[s.Index(name)]
	if at := now.Index(name); at < 0 || !n.equalExceptConditions(&now.Nodes[at]) {
		return name
	}
	for _, need := range n.AllReferences() {
		if revives(need) {
			return s.changedBefore(need, now, revives)
		}
	}
	return name
}

// ContinuedShape returns the shape with which a run continues if it has recorded the shape s and its code has the shape now. If both
// shapes have the same nodes, in whatever order the nodes and their needs are declared, ContinuedShape returns s. Otherwise it returns
// the shape now, with unchanged nodes as they were recorded.
func (s *Shape) ContinuedShape(now *Shape) *Shape {
	next := &Shape{Nodes: slices.Clone(now.Nodes), Output: now.Output, indexes: now.indexes}
	same := s.Output == now.Output && len(s.Nodes) == len(now.Nodes)
	for i := range next.Nodes {
		n := &next.Nodes[i]
		at := s.Index(n.Name)
		if at < 0 || !s.Nodes[at].equalExceptConditions(n) {
			same = false
			continue
		}
		conditions := n.If
		same = same && haveSameNames(conditions, s.Nodes[at].If)
		*n = s.Nodes[at]
		n.If = conditions
	}
	if same {
		return s
	}
	return next
}

// ChangedIn returns the names of those nodes of the shape now that s does not have, or that have other needs, another kind or another
// policy in s.
func (s *Shape) ChangedIn(now *Shape) map[string]bool {
	changed := make(map[string]bool)
	for i := range now.Nodes {
		n := &now.Nodes[i]
		if at := s.Index(n.Name); at < 0 || !s.Nodes[at].equalExceptConditions(n) {
			changed[n.Name] = true
		}
	}
	return changed
}

// equalExceptConditions reports whether the nodes make the same calls after the same needs, in whatever order these are declared. It ignores
// conditions, because their results are recorded.
func (n *Node) equalExceptConditions(o *Node) bool {
	return n.Kind == o.Kind && n.Workflow == o.Workflow && n.Over == o.Over && n.Unmet == o.Unmet && n.Delayed == o.Delayed &&
		haveSameNames(n.Needs, o.Needs) && haveSameNames(n.After, o.After) &&
		slices.EqualFunc(n.Choices, o.Choices, func(a, b Choice) bool { return a.K == b.K && a.Keep == b.Keep && haveSameNames(a.Of, b.Of) })
}

// haveSameNames reports whether the lists have the same names, in any order.
func haveSameNames(a, b []string) bool {
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// description describes the node in words, for errors.
func (n *Node) description() string {
	text := n.Kind
	if n.Workflow != "" {
		text += fmt.Sprintf(" of workflow %q", n.Workflow)
	}
	if n.Delayed {
		text += " with a delay"
	}
	if len(n.Needs) > 0 {
		text += fmt.Sprintf(" that needs %q", n.Needs)
	}
	for _, c := range n.Choices {
		text += fmt.Sprintf(" that needs %d of %q", c.K, c.Of)
		if c.Keep {
			text += " and keeps the others"
		}
	}
	if len(n.After) > 0 {
		text += fmt.Sprintf(" after %q", n.After)
	}
	if n.Unmet != UnmetSkips {
		text += fmt.Sprintf(" with the policy %q", n.Unmet)
	}
	return text
}
