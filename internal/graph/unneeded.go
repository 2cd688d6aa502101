package graph

import "slices"

// UnneededAfterChoice returns the nodes that end when the node chooser makes its choice with the index: the losers, and the nodes that only they
// need. UnneededAfterChoice does not return a node that is over, that is the output, or that is still needed. A node is still needed if a node
// that is not over, and does not end itself, needs it in another way than by this choice of the chooser. A recorded choice does not need its
// members any more, unless it keeps its losers. A node that begins after another one does not need it. The arguments state and chosen are as in
// [Node.NextVerdict].
func (s *Shape) UnneededAfterChoice(chooser string, choice int, winners []string, state func(node string) State, chosen func(node string, choice int) bool) []string {
	at := s.Index(chooser)
	over := s.over(state, chosen)
	ends := make(map[string]bool)
	for _, name := range s.Nodes[at].Choices[choice].Of {
		if !slices.Contains(winners, name) && !over[name] {
			ends[name] = true
		}
	}
	// The loop visits the nodes before the chooser from the last to the first, because the nodes that need a node come after it.
	for i := at - 1; i >= 0; i-- {
		if name := s.Nodes[i].Name; !ends[name] && !over[name] && slices.ContainsFunc(s.Nodes[i+1:], func(d Node) bool { return ends[d.Name] && d.needsValueOf(name) }) {
			ends[name] = true
		}
	}
	// Keep the nodes that are needed. The nodes that a kept node needs are kept as well, so one pass from the last node to the first
	// suffices.
	isNeeded := func(name string) bool {
		return slices.ContainsFunc(s.Nodes, func(d Node) bool {
			if ends[d.Name] || over[d.Name] {
				return false
			}
			return slices.Contains(d.Needs, name) || slices.ContainsFunc(indexesOf(d.Choices, name), func(i int) bool {
				return (d.Name != chooser || i != choice) && (d.Choices[i].Keep || !chosen(d.Name, i))
			})
		})
	}
	for i := len(s.Nodes) - 1; i >= 0; i-- {
		if name := s.Nodes[i].Name; ends[name] && (name == s.Output || isNeeded(name)) {
			delete(ends, name)
		}
	}
	var names []string
	for _, n := range s.Nodes {
		if ends[n.Name] {
			names = append(names, n.Name)
		}
	}
	return names
}

// over returns the nodes that are over, or that will be skipped: an execution may find out that a node is skipped only after its choice.
func (s *Shape) over(state func(node string) State, chosen func(node string, choice int) bool) map[string]bool {
	settled := make(map[string]State, len(s.Nodes))
	over := make(map[string]bool, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		now := state(n.Name)
		if !now.IsFinal() {
			switch v, _ := n.NextVerdict(func(need string) State { return settled[need] }, func(choice int) bool { return chosen(n.Name, choice) }); v {
			case VerdictSkip:
				now = Skipped
			case VerdictFailRun:
				now = Failed
			}
		}
		settled[n.Name], over[n.Name] = now, now.IsFinal()
	}
	return over
}

// indexesOf returns the indexes of the choices among whose members the node is.
func indexesOf(choices []Choice, node string) (indexes []int) {
	for i, c := range choices {
		if slices.Contains(c.Of, node) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}
