package durable

import (
	"context"
	"errors"
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
	ShapeRevision int        // the number of shapes that the run has recorded: 0 before the run begins, then 1, and one more for each change by newer code
	Nodes         []NodeInfo // in the order of declaration
	Edges         []EdgeInfo
	Shape         GraphShape // the newest recorded shape, or, with ShapeRevision 0, the shape of the workflow in this process
}

// NodeInfo describes a node of a run. StartedAt and EndedAt are zero as long as the node has not begun or not ended.
type NodeInfo struct {
	NodeShape
	State     NodeState
	Attempts  int             // the number of recorded attempts of all calls of the node
	Items     *NodeItemCounts // the items of a NodeEach or NodeEachChild; otherwise nil
	Choices   []NodeChoice    // the needs of the node by NeedsAny and NeedsQuorum, in the order of these options
	Child     string          // the ID of the child of a NodeChild, once the child was started; otherwise empty
	Err       *NodeError      // why the node failed, was skipped or was cancelled; otherwise nil
	StartedAt time.Time       // when the delay or the first call of the node began
	EndedAt   time.Time       // when the call of the node ended; zero for a node that was skipped because of another node
}

// NodeItemCounts counts the items of a node.
type NodeItemCounts struct {
	Total     int // the number of items, with those that an [Engine.Override] took out of the list after they had begun; zero while the list has no value and no item has begun
	Completed int
	Failed    int
	Running   int // the number of items that have begun and not ended
}

// NodeChoice describes a need of a node that is met when K of Of other nodes have completed.
type NodeChoice struct {
	K, Of     int
	Completed int      // how many of the Of nodes have completed
	Without   int      // how many of the Of nodes are over and have no value
	Won       []string // the recorded winners; nil while the choice is not recorded
}

// EdgeInfo describes an edge of a run.
type EdgeInfo struct {
	GraphEdge
	State NodeState // the state of the node From
	Won   bool      // From is among the recorded winners of the edge's choice
}

// EdgeDirection selects the outgoing or the incoming edges of a node.
type EdgeDirection uint8

// The directions of [Engine.Edges].
const (
	Outgoing EdgeDirection = iota // edges to the nodes that refer to the node
	Incoming                      // edges from the nodes that the node refers to
)

// Graph returns the graph of the run with the given ID, with the state of each node. Graph derives the states from the recorded
// shape and the history, and changes nothing. For a run that has not begun yet, Graph returns the shape that the workflow has
// in this process, with a ShapeRevision of 0. Graph returns [ErrNotFound] if there is no such run. Graph returns [ErrNoGraph]
// if the workflow of the run is not a graph, or if the run has not begun yet and its workflow is not in [Config].Workflows or
// was declared by [DefineGraphFrom]. [Workflow.Shape] returns the shape without a run.
func (e *Engine) Graph(ctx context.Context, id string) (*GraphInfo, error) {
	run, steps, view, err := e.readHistory(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	shape, revision, err := e.recordedOrDeclaredShape(run, steps)
	if err != nil {
		return nil, fmt.Errorf("graph of run %q: %w", id, err)
	}
	rows := make([]graph.HistoryRow, len(steps))
	byName := make(map[string]*store.Step, len(steps))
	for i := range steps {
		s := &steps[i]
		byName[s.Name] = s
		status, ended := view.StatusOf(s)
		rows[i] = graph.HistoryRow{Name: s.Name, Status: status, Output: s.Output, Attempts: int(s.Attempt), StartedAt: s.StartedAt, EndedAt: ended}
	}
	choices := readChoices(steps)
	info := &GraphInfo{ID: run.NameOrUUID(), Workflow: run.Workflow, Status: Status(run.Status.String()), ShapeRevision: revision, Shape: newGraphShape(shape)}
	for i, v := range shape.NodeViews(rows, choices.hasEndedNode, run.Status.IsTerminal()) {
		n := NodeInfo{NodeShape: info.Shape.Nodes[i], State: NodeState(v.State), Attempts: v.Attempts, StartedAt: v.StartedAt, EndedAt: v.EndedAt}
		if revision == 0 && !run.Status.IsTerminal() {
			n.State = NodeWaiting // for the run
		}
		if n.Over != "" {
			n.Items = &NodeItemCounts{v.Total, v.Completed, v.Failed, v.Running}
		}
		row := byName[v.Call]
		if n.Kind == NodeChild && row != nil && row.Kind == store.KindChild {
			n.Child = record.ChildUUID(run.UUID, row).String()
		}
		n.Err = newNodeError(&n, &v, row, info)
		n.Choices = choices.describeChoices(&shape.Nodes[i], info)
		info.Nodes = append(info.Nodes, n)
	}
	for _, edge := range info.Shape.Edges {
		from := info.Nodes[shape.Index(edge.From)].State
		info.Edges = append(info.Edges, EdgeInfo{edge, from, edge.Choice > 0 && choices.isWinningEdge(&edge)})
	}
	return info, nil
}

// Edges returns the edges of a node of the run with the given ID. Edges returns the errors of [Engine.Graph], and [ErrNoGraph]
// if the graph has no node with the name.
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

// Edge returns an edge of the run with the given ID: the edge with the same From, To, Choice and After as the argument. Edge compares only
// the fields From, To, Choice and After of its argument, and ignores all others. Edge returns the errors of [Engine.Graph], and
// [ErrNoGraph] if the graph has no such edge.
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

// recordedOrDeclaredShape returns the newest recorded shape of a run, and its revision. For a run that has recorded nothing yet, it returns the shape
// that its workflow has in this process.
func (e *Engine) recordedOrDeclaredShape(run *store.Run, steps []store.Step) (*graph.Shape, int, error) {
	shape, revision, err := recordedShape(steps)
	if !errors.Is(err, ErrNoGraph) || len(steps) > 0 {
		return shape, revision, err
	}
	i := slices.IndexFunc(e.cfg.Workflows, func(w Definition) bool { return w.Name() == run.Workflow })
	if i < 0 || e.cfg.Workflows[i].declaredGraph() == nil {
		return nil, 0, err
	}
	return &e.cfg.Workflows[i].declaredGraph().shape, 0, nil
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
	byName     map[string]record.Choice
	endedNodes []string
}

func readChoices(steps []store.Step) (c recordedChoices) {
	c.byName = make(map[string]record.Choice)
	for i := range steps {
		if choice := record.DecodeChoiceStep(&steps[i]); choice != nil {
			c.byName[steps[i].Name] = *choice
			c.endedNodes = append(c.endedNodes, choice.Ended...)
		}
	}
	return c
}

func (c *recordedChoices) hasEndedNode(node string) bool {
	return slices.Contains(c.endedNodes, naming.Display(node))
}

func (c *recordedChoices) isWinningEdge(edge *GraphEdge) bool {
	choice := c.byName[edge.To+naming.Separator+graph.ChoiceName(edge.Choice-1)]
	return slices.Contains(choice.Winners(), naming.Display(edge.From))
}

// describeChoices returns what is known of the choices of a node. info has the states of the nodes before it.
func (c *recordedChoices) describeChoices(n *graph.Node, info *GraphInfo) (all []NodeChoice) {
	for i, declared := range n.Choices {
		choice := NodeChoice{K: declared.K, Of: len(declared.Of)}
		for _, name := range declared.Of {
			switch info.findNode(name).State {
			case NodeCompleted:
				choice.Completed++
			case NodeFailed, NodeSkipped, NodeCancelled:
				choice.Without++
			}
		}
		recorded := c.byName[n.Name+naming.Separator+graph.ChoiceName(i)]
		for _, name := range recorded.Winners() {
			choice.Won = append(choice.Won, naming.ParseDisplay(name))
		}
		all = append(all, choice)
	}
	return all
}

// findNode returns the node with the name, or nil.
func (g *GraphInfo) findNode(name string) *NodeInfo {
	if i := slices.IndexFunc(g.Nodes, func(n NodeInfo) bool { return n.Name == name }); i >= 0 {
		return &g.Nodes[i]
	}
	return nil
}

// newNodeError returns why the node has no value. row is the row that executed it; nil means none. info has the nodes before it.
func newNodeError(n *NodeInfo, v *graph.NodeView, row *store.Step, info *GraphInfo) *NodeError {
	switch n.State {
	case NodeSkipped:
		if v.Because == "" {
			return &NodeError{n.Name, n.State, ErrNodeSkipped}
		}
		return &NodeError{n.Name, n.State, newNodeSkippedError(v.Because, v.Condition)}
	case NodeCancelled:
		return &NodeError{n.Name, n.State, ErrCancelled}
	case NodeFailed:
		if row != nil && len(row.Error) > 0 {
			failure := record.DecodeFailure(row.Error)
			if row.Kind == store.KindChild {
				return &NodeError{n.Name, n.State, newChildError(naming.Display(row.Name), failure)}
			}
			return &NodeError{n.Name, n.State, newStepError(naming.Display(row.Name), failure)}
		}
		if culprit := info.findNode(v.Because); culprit != nil && culprit.Err != nil {
			return &NodeError{n.Name, n.State, fmt.Errorf("it fails the run, because a need is not met: %w", culprit.Err)}
		}
		return &NodeError{n.Name, n.State, errors.New("it fails the run, because a need is not met")}
	}
	return nil
}
