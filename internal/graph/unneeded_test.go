package graph

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What ends with the losers is needed by no node that continues, is not the output, and each is a loser or needed by one that ends. A
// loser that does not end is needed.
func TestUnneeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		states := drawStates(t, s)
		recorded := make(map[string]bool)
		for _, n := range s.Nodes {
			recorded[n.Name] = rapid.Bool().Draw(t, "chosen by "+n.Name)
		}
		state := func(node string) State { return states[node] }
		chosen := func(node string, _ int) bool { return recorded[node] }
		for i, n := range s.Nodes {
			for c, choice := range n.Choices {
				winners := choice.Of[:choice.K]
				states[n.Name], recorded[n.Name] = Waiting, false
				over := s.over(state, chosen)
				ends := s.UnneededAfterChoice(n.Name, c, winners, state, chosen)
				isLoser := func(name string) bool { return slices.Contains(choice.Of, name) && !slices.Contains(winners, name) }
				needs := func(d *Node, name string) bool { // d needs the node, and d is not the chooser by this choice
					return slices.Contains(d.Needs, name) || slices.ContainsFunc(indexesOf(d.Choices, name), func(i int) bool {
						return (d.Name != n.Name || i != c) && (d.Choices[i].Keep || !recorded[d.Name])
					})
				}
				isNeeded := func(name string) bool {
					return slices.ContainsFunc(s.Nodes, func(d Node) bool { return !slices.Contains(ends, d.Name) && !over[d.Name] && needs(&d, name) })
				}
				for _, name := range ends {
					if name == s.Output || isNeeded(name) || !isLoser(name) && !slices.ContainsFunc(s.Nodes[:i], func(d Node) bool { return slices.Contains(ends, d.Name) && d.needsValueOf(name) }) {
						t.Fatalf("%q ends with the losers of %+v", name, n)
					}
				}
				for _, name := range choice.Of {
					if isLoser(name) && !over[name] && !slices.Contains(ends, name) && name != s.Output && !isNeeded(name) {
						t.Fatalf("the loser %q of %+v does not end, and nothing needs it", name, n)
					}
				}
			}
		}
	})
}

// A node that is skipped as soon as the execution learns of a failure needs nothing any more.
func TestUnneededForgetsWhatIsAboutToBeSkipped(t *testing.T) {
	s := &Shape{Output: "out", Nodes: []Node{
		{Name: "failed", Kind: KindStep},
		{Name: "won", Kind: KindStep},
		{Name: "lost", Kind: KindReceive},
		{Name: "doomed", Kind: KindStep, Needs: []string{"failed"}},
		{Name: "below", Kind: KindStep, Needs: []string{"doomed", "lost"}},
		{Name: "out", Kind: KindStep, Choices: []Choice{{Of: []string{"won", "lost"}, K: 1}}},
	}}
	states := map[string]State{"failed": Failed, "won": Completed, "lost": Running, "doomed": Running, "below": Running, "out": Running}
	ends := s.UnneededAfterChoice("out", 0, []string{"won"}, func(node string) State { return states[node] }, func(string, int) bool { return false })
	if !slices.Equal(ends, []string{"lost"}) {
		t.Errorf("%q ends, want the loser", ends)
	}
}
