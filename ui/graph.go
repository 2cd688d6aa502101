package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// graphDrawing is the picture of a graph: a column for each distance from the beginning, in which a node is right of all nodes that it needs.
type graphDrawing struct {
	W, H   int
	Boxes  []graphBox
	Arrows []graphArrow
}

// graphBox is a node.
type graphBox struct {
	X, Y, W, H       int
	Label, Title     string
	State            durable.NodeState
	StateText, Child string // Child is the ID of the run that the node has started; else empty
}

// TextX is where the texts of a box begin, and NameY and StateY are their lines.
func (b graphBox) TextX() int  { return b.X + 10 }
func (b graphBox) NameY() int  { return b.Y + 18 }
func (b graphBox) StateY() int { return b.Y + 34 }

// graphArrow is an edge.
type graphArrow struct{ Path, Class, Title string }

// The sizes of a drawing, in pixels, and of texts, in characters.
const (
	boxWidth, boxHeight = 170, 44
	gapX, gapY          = 56, 14
	margin              = 4
	labelLength         = 21
	mostBoxes           = 300
)

// newGraphDrawing draws a graph. It returns nil if g is nil, or if the graph is too large to draw.
func newGraphDrawing(g *durable.GraphInfo) *graphDrawing {
	if g == nil || len(g.Nodes) == 0 || len(g.Nodes) > mostBoxes {
		return nil
	}
	needs := make(map[string][]string)
	for _, e := range g.Edges {
		needs[e.To] = append(needs[e.To], e.From)
	}
	column := make(map[string]int)
	var columns [][]string
	for _, n := range g.Nodes { // needs are declared before those that need them
		for _, from := range needs[n.Name] {
			column[n.Name] = max(column[n.Name], column[from]+1)
		}
		for len(columns) <= column[n.Name] {
			columns = append(columns, nil)
		}
		columns[column[n.Name]] = append(columns[column[n.Name]], n.Name)
	}
	row := make(map[string]int)
	for i, names := range columns {
		if i > 0 { // place nodes near the nodes that they need, so that few arrows cross
			middle := func(name string) float64 {
				sum := 0
				for _, from := range needs[name] {
					sum += row[from]
				}
				return float64(sum) / float64(len(needs[name]))
			}
			slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(middle(a), middle(b)) })
		}
		for at, name := range names {
			row[name] = at
		}
	}
	d := new(graphDrawing)
	at := make(map[string]graphBox, len(g.Nodes))
	for i := range g.Nodes {
		b := newGraphBox(&g.Nodes[i], margin+column[g.Nodes[i].Name]*(boxWidth+gapX), margin+row[g.Nodes[i].Name]*(boxHeight+gapY))
		at[g.Nodes[i].Name] = b
		d.W, d.H = max(d.W, b.X+b.W+margin), max(d.H, b.Y+b.H+margin)
		d.Boxes = append(d.Boxes, b)
	}
	for _, e := range g.Edges {
		d.Arrows = append(d.Arrows, newGraphArrow(&e, at[e.From], at[e.To]))
	}
	return d
}

func newGraphBox(n *durable.NodeInfo, x, y int) graphBox {
	b := graphBox{X: x, Y: y, W: boxWidth, H: boxHeight, Label: wording.Escape(truncateText(n.Name, labelLength)), State: n.State, StateText: string(n.State), Child: n.Child}
	if n.Items != nil {
		b.StateText += fmt.Sprintf(" %d of %d", n.Items.Completed, n.Items.Total)
	} else if !n.StartedAt.IsZero() && !n.EndedAt.IsZero() {
		b.StateText += " in " + wording.DurationBetween(n.StartedAt, n.EndedAt)
	}
	title := []string{n.Name, string(n.Kind) + ", " + string(n.State)}
	if n.Attempts > 1 {
		title = append(title, wording.Count(n.Attempts, "attempt", "attempts"))
	}
	if n.Err != nil {
		title = append(title, n.Err.Error())
	}
	b.Title = wording.EscapeLines(strings.Join(title, "\n"))
	return b
}

func newGraphArrow(e *durable.EdgeInfo, from, to graphBox) graphArrow {
	x1, y1, x2, y2 := from.X+from.W, from.Y+from.H/2, to.X, to.Y+to.H/2
	bend := x2 - gapX // a long arrow stays in its row until the last gap
	a := graphArrow{Path: fmt.Sprintf("M%d %dH%dC%d %d %d %d %d %d", x1, y1, bend, bend+gapX/2, y1, bend+gapX/2, y2, x2, y2), Class: "arrow"}
	title := []string{wording.Escape(e.From + " → " + e.To)}
	note := func(condition bool, class, text string) {
		if condition {
			a.Class, title = a.Class+" "+class, append(title, text)
		}
	}
	note(e.Choice > 0, "choice", fmt.Sprintf("%d of %d are needed", e.K, e.Of))
	note(e.Won, "won", "was chosen")
	note(e.If, "if", "is begun if a condition on the value holds")
	note(e.After, "after", "is begun once it is over, however it ended")
	note(e.Over, "over", "for each of its items")
	a.Title = strings.Join(title, "\n")
	return a
}
