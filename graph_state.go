package durable

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
)

// GraphInfo describes a run of a graph: its recorded shape, and the state of each node.
type GraphInfo struct {
	ID            string // the ID that addresses the run
	Workflow      string
	Status        Status
	ShapeRevision int        // the number of shapes that the run has recorded: 1, and one more for each change of the shape by newer code
	Nodes         []NodeInfo // in the order of declaration
	Edges         []EdgeInfo
	Shape         GraphShape // the newest recorded shape
}

// NodeInfo describes a node of a run. A time is zero if it has not come yet.
type NodeInfo struct {
	NodeShape
	State     NodeState
	Attempts  int             // how many attempts its calls have made, summed up, as far as recorded
	Items     *NodeItemCounts // of NodeEach and NodeEachChild; else nil
	Child     string          // of NodeChild: the ID of the child, once it was started
	Err       *NodeError      // why it has no value, if it failed, was skipped or was cancelled; else nil
	StartedAt time.Time       // when its delay or its first call began
	EndedAt   time.Time       // when its call ended; zero for a node that was skipped because of another one
}

// NodeItemCounts counts the items of a node.
type NodeItemCounts struct {
	Total     int // zero while the list has no value
	Completed int
	Failed    int
	Running   int // of those that have begun
}

// EdgeInfo describes an edge of a run.
type EdgeInfo struct {
	GraphEdge
	State NodeState // of the node From
	Won   bool      // From is among the recorded winners of the choice
}

// EdgeDirection selects edges of a node.
type EdgeDirection uint8

// The directions of [Engine.Edges].
const (
	Outgoing EdgeDirection = iota // edges to the nodes that refer to the node
	Incoming                      // edges from the nodes that the node refers to
)

// Graph returns the graph of the run with the given ID, with the state of each node. It derives the states from the recorded shape
// and the history, and changes nothing. It returns [ErrNotFound] if there is no such run, and [ErrNoGraph] if the run has recorded no
// shape: its workflow is not a graph, or the run has not begun yet. [Workflow.Shape] returns the shape without a run.
func (e *Engine) Graph(ctx context.Context, id string) (*GraphInfo, error) {
	run, steps, view, err := e.readHistory(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	shape, revision, err := recordedShape(steps)
	if err != nil {
		return nil, fmt.Errorf("graph of run %q: %w", id, err)
	}
	rows := make([]graph.Row, len(steps))
	byName := make(map[string]*store.Step, len(steps))
	for i := range steps {
		s := &steps[i]
		byName[s.Name] = s
		status, ended := view.StatusOf(s)
		rows[i] = graph.Row{Name: s.Name, Status: status, Output: s.Output, Attempts: int(s.Attempt), StartedAt: s.StartedAt, EndedAt: ended}
	}
	choices := readChoices(steps)
	info := &GraphInfo{ID: run.Address(), Workflow: run.Workflow, Status: Status(run.Status.String()), ShapeRevision: revision, Shape: newGraphShape(shape)}
	for i, v := range shape.View(rows, choices.hasEnded, run.Status.IsTerminal()) {
		n := NodeInfo{NodeShape: info.Shape.Nodes[i], State: NodeState(v.State), Attempts: v.Attempts, StartedAt: v.StartedAt, EndedAt: v.EndedAt}
		if n.Over != "" {
			n.Items = &NodeItemCounts{v.Total, v.Completed, v.Failed, v.Running}
		}
		row := byName[v.Call]
		if n.Kind == NodeChild && row != nil && row.Kind == store.KindChild {
			n.Child = store.ChildUUID(run.UUID, row.Name, row.StartedAt).String()
		}
		n.Err = nodeErrorOf(&n, row)
		info.Nodes = append(info.Nodes, n)
	}
	for _, edge := range info.Shape.Edges {
		from := info.Nodes[shape.Index(edge.From)].State
		info.Edges = append(info.Edges, EdgeInfo{edge, from, edge.Choice > 0 && choices.hasWon(&edge)})
	}
	return info, nil
}

// Edges returns the edges of a node of the run with the given ID. The errors are those of [Engine.Graph], and [ErrNoGraph] if the
// graph has no node with the name.
func (e *Engine) Edges(ctx context.Context, id, node string, direction EdgeDirection) ([]EdgeInfo, error) {
	info, err := e.Graph(ctx, id)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(info.Nodes, func(n NodeInfo) bool { return n.Name == node }) {
		return nil, fmt.Errorf("%w: the graph of run %q has no node %q", ErrNoGraph, id, node)
	}
	return slices.DeleteFunc(info.Edges, func(edge EdgeInfo) bool {
		return direction == Outgoing && edge.From != node || direction == Incoming && edge.To != node
	}), nil
}

// Edge returns an edge of the run with the given ID: the one that has the same nodes, the same Choice and the same After as edge; its
// other fields do not matter. The errors are those of [Engine.Graph], and [ErrNoGraph] if the graph has no such edge.
func (e *Engine) Edge(ctx context.Context, id string, edge GraphEdge) (*EdgeInfo, error) {
	info, err := e.Graph(ctx, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(info.Edges, func(o EdgeInfo) bool {
		return o.From == edge.From && o.To == edge.To && o.Choice == edge.Choice && o.After == edge.After
	})
	if i < 0 {
		return nil, fmt.Errorf("%w: the graph of run %q has no edge from %q to %q with Choice %d and After %t: GraphInfo.Edges lists them", ErrNoGraph, id, edge.From, edge.To, edge.Choice, edge.After)
	}
	return &info.Edges[i], nil
}

// Mermaid returns the graph as a Mermaid flowchart, in which the class of each node is its state.
func (g *GraphInfo) Mermaid() string {
	states := make(map[string]graph.State, len(g.Nodes))
	for _, n := range g.Nodes {
		states[n.Name] = graph.State(n.State)
	}
	return g.Shape.shape.Mermaid(states)
}

// recordedShape returns the newest shape in a history, and its revision.
func recordedShape(steps []store.Step) (*graph.Shape, int, error) {
	shape, revision, err := repair.RecordedShape(steps)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("%w: the recorded shape of revision %d does not decode: %w", ErrDiverged, revision, err)
	case shape == nil:
		return nil, 0, ErrNoGraph
	}
	return shape, revision, nil
}

// recordedChoices holds the choices of a run by their names, and the nodes that they ended.
type recordedChoices struct {
	byName map[string]record.Choice
	ended  []string
}

func readChoices(steps []store.Step) (c recordedChoices) {
	c.byName = make(map[string]record.Choice)
	for _, s := range steps {
		if s.Kind != store.KindChoice || s.Status != store.StepCompleted {
			continue
		}
		if choice, err := record.DecodeChoice(s.Output); err == nil {
			c.byName[s.Name] = choice
			c.ended = append(c.ended, choice.Ended...)
		}
	}
	return c
}

func (c *recordedChoices) hasEnded(node string) bool {
	return slices.Contains(c.ended, naming.Display(node))
}

func (c *recordedChoices) hasWon(edge *GraphEdge) bool {
	choice := c.byName[edge.To+naming.Separator+graph.ChoiceName(edge.Choice-1)]
	return slices.ContainsFunc(choice.Won, func(i int) bool { return i < len(choice.Of) && choice.Of[i] == naming.Display(edge.From) })
}

// nodeErrorOf returns why the node has no value. row is the row that executed it; nil: none.
func nodeErrorOf(n *NodeInfo, row *store.Step) *NodeError {
	switch n.State {
	case NodeSkipped:
		return &NodeError{n.Name, n.State, ErrNodeSkipped}
	case NodeCancelled:
		return &NodeError{n.Name, n.State, ErrCancelled}
	case NodeFailed:
		err := &NodeError{n.Name, n.State, ErrNodeSkipped}
		if row != nil && len(row.Error) > 0 {
			failure := record.DecodeFailure(row.Error)
			if err.Err = newStepError(naming.Display(row.Name), failure); row.Kind == store.KindChild {
				err.Err = newChildError(naming.Display(row.Name), failure)
			}
		}
		return err
	}
	return nil
}
