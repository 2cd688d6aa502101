package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/seed8ec063be/durable"
)

// picture draws the graph of a run in the terminal, again and again in the same place. Without a terminal it only draws the end.
type picture struct {
	name     string
	terminal bool
	lines    int // that the last drawing has
}

func newPicture(name string) *picture {
	info, err := os.Stdout.Stat()
	return &picture{name: name, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

var marks = map[durable.NodeState]string{
	durable.NodeWaiting: "·", durable.NodeReady: "○", durable.NodeDelayed: "○", durable.NodeRunning: "◐",
	durable.NodeCompleted: "●", durable.NodeFailed: "✗", durable.NodeSkipped: "–", durable.NodeCancelled: "■",
}

// show draws the graph, if there is a terminal.
func (p *picture) show(g *durable.GraphInfo, kills int) {
	if p.terminal {
		if p.lines > 0 {
			fmt.Printf("\x1b[%dA\x1b[J", p.lines)
		}
		p.draw(g, kills)
	}
}

// end draws the graph as it is at the end.
func (p *picture) end(g *durable.GraphInfo, kills int) {
	if !p.terminal {
		p.draw(g, kills)
	}
}

func (p *picture) draw(g *durable.GraphInfo, kills int) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s, %d kills\n", p.name, g.Status, kills)
	for _, n := range g.Nodes {
		var needs []string
		for _, e := range g.Edges {
			if e.To == n.Name && !e.After {
				needs = append(needs, marks[e.State]+" "+e.From)
			}
		}
		fmt.Fprintf(&b, "  %s %-11s %-9s", marks[n.State], n.Name, n.State)
		if n.Items != nil {
			fmt.Fprintf(&b, " %d of %d", n.Items.Completed, n.Items.Total)
		}
		if len(needs) > 0 {
			fmt.Fprintf(&b, " ◂ %s", strings.Join(needs, ", "))
		}
		b.WriteByte('\n')
	}
	p.lines = strings.Count(b.String(), "\n")
	fmt.Print(b.String())
}
