package durable

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// NodeKind tells what a node of a graph executes, such as a step or a child.
type NodeKind string

// The kinds of nodes.
const (
	NodeStep      NodeKind = graph.KindStep      // [Graph.Step]
	NodeEach      NodeKind = graph.KindEach      // [Graph.Each]
	NodeChild     NodeKind = graph.KindChild     // [Graph.Child]
	NodeEachChild NodeKind = graph.KindEachChild // [Graph.EachChild]
	NodeReceive   NodeKind = graph.KindReceive   // [Graph.Receive]
)

// GraphShape holds the nodes and edges of a graph. A GraphShape is immutable.
type GraphShape struct {
	Nodes  []NodeShape // in the order of declaration
	Edges  []GraphEdge // in the order in which their nodes To are declared
	Output string      // the node whose value is the output
	shape  *graph.Shape
}

// NodeShape is a declared node.
type NodeShape struct {
	Name        string
	Kind        NodeKind
	Workflow    string // the workflow of a NodeChild or NodeEachChild; otherwise empty
	Over        string // the node whose value is the list of items of a NodeEach or NodeEachChild; otherwise empty
	OnUnmetNeed UnmetNeedPolicy
}

// GraphEdge is an edge from the node From to a node To that refers to From.
type GraphEdge struct {
	From, To string
	Choice   int  // the number, from 1, of the choice of To in which From is a member; zero if the edge belongs to no choice
	K, Of    int  // the choice needs K of its Of members
	After    bool // To begins once From is over, however From ended
	If       bool // a condition of To depends on the value of From
	Over     bool // To is executed for each item of the value of From
}

// Shape returns the nodes and edges of a workflow that [DefineGraph] returned. For other workflows, and for a graph that is not
// valid, Shape returns a GraphShape without nodes.
func (w *Workflow[I, O]) Shape() GraphShape {
	if w == nil || w.graph == nil || w.graph.err != nil {
		return GraphShape{shape: new(graph.Shape)}
	}
	return newGraphShape(&w.graph.shape)
}

// declaredGraph returns the graph of a workflow that DefineGraph returned, or nil.
func (w *Workflow[I, O]) declaredGraph() *graphDefinition {
	if w == nil || w.graph == nil || w.graph.err != nil {
		return nil
	}
	return w.graph
}

func newGraphShape(s *graph.Shape) GraphShape {
	shape := GraphShape{Output: s.Output, shape: s}
	for _, n := range s.Nodes {
		shape.Nodes = append(shape.Nodes, NodeShape{n.Name, NodeKind(n.Kind), n.Workflow, n.Over, UnmetNeedPolicy(n.Unmet)})
	}
	for _, e := range s.Edges() {
		shape.Edges = append(shape.Edges, GraphEdge(e))
	}
	return shape
}

// Mermaid returns the graph as a Mermaid flowchart, for documentation. In the flowchart, nodes for each item have double
// borders on their sides, children have round corners, and receives are hexagons. The output node has a thick border.
func (s GraphShape) Mermaid() string {
	if s.shape == nil {
		return ""
	}
	return s.shape.Mermaid(nil)
}

// DOT returns the graph in the language of Graphviz.
func (s GraphShape) DOT() string {
	if s.shape == nil {
		return ""
	}
	return s.shape.DOT()
}

// firstRevision is the number of the shape that a run records first. The calls that record shapes are named after their numbers.
const firstRevision = 1

// recordShape records the shape of the graph before its first node begins, and returns the shape with which the run continues. That is
// the recorded one if it has the same nodes. If it has others, and what the run has begun is the same here, recordShape records the shape
// as the next revision. If it is already recorded that a node fails the run, recordShape records no further revision, and also returns the
// nodes that must not begin any more: the record has ended all nodes that the recorded shape has, and the others have no record.
func recordShape(c *Ctx, d *graphDefinition) (_ *graph.Shape, tooLate map[string]bool, err error) {
	sub := c.withScope(c.callScope().NestedScope(graph.ShapeScopeName)) // no node has this name
	record := func(revision int, encoded []byte) ([]byte, error) {
		return recordGraphCall(sub, strconv.Itoa(revision), 0, func() ([]byte, error) { return encoded, nil })
	}
	revision := firstRevision
	recorded, err := record(revision, d.encodedShape)
	for ; err == nil && sub.scope.HasCallBegun(strconv.Itoa(revision+1)); revision++ {
		recorded, err = record(revision+1, d.encodedShape)
	}
	if err != nil || bytes.Equal(recorded, d.encodedShape) {
		return &d.shape, nil, err
	}
	was, err := graph.Decode(recorded)
	if err != nil {
		return nil, nil, c.scope.ReportDivergence(graph.ShapeScopeName, fmt.Errorf("%w: the shape of the graph that run %q recorded (%d bytes) does not decode: %w", ErrDiverged, c.ID(), len(recorded), err))
	}
	rows := recordedRows(c)
	err = was.CheckRevision(&d.shape, c.scope.HasBegunCallInNestedScope, c.scope.WasBranchEndedByChoice)
	if err == nil {
		err = was.CheckSkips(&d.shape, rows, c.scope.WasBranchEndedByChoice)
	}
	if err != nil {
		return nil, nil, c.scope.ReportDivergence(graph.ShapeScopeName, fmt.Errorf("%w: the graph of run %q: %w", ErrDiverged, c.ID(), err))
	}
	next := was.ContinuedShape(&d.shape)
	if next == was {
		return was, nil, nil
	}
	if graph.IsRunFailureRecorded(rows) {
		return next, was.ChangedIn(&d.shape), nil
	}
	encoded, err := next.Encode()
	if err == nil && !c.scope.IsPreflight() { // a preflight goes on to the nodes, as a worker does after the record
		_, err = record(revision+1, encoded)
	}
	return next, nil, err
}

// recordedRows returns the history of the run with the status that each row has in the database.
func recordedRows(c *Ctx) []graph.HistoryRow {
	calls := c.scope.RecordedCalls()
	rows := make([]graph.HistoryRow, len(calls))
	for i := range calls {
		rows[i] = graph.HistoryRow{Name: calls[i].Name, Status: calls[i].Status.String(), Output: calls[i].Output}
	}
	return rows
}

// firstShapeRecord returns the record of the first revision of the shape, which a start can write. d may be nil.
func (d *graphDefinition) firstShapeRecord() *engine.FirstCheckpoint {
	if d == nil {
		return nil
	}
	return &engine.FirstCheckpoint{Name: graph.ShapeRecordName(firstRevision), Kind: store.KindGraph, Output: d.encodedShape}
}

// minNameCount returns how many names a run of the graph uses at least, if each node makes one call. d may be nil.
func (d *graphDefinition) minNameCount() int {
	if d == nil {
		return 0
	}
	return 1 + 2*len(d.nodes) // the record of the shape; of each node, its branch and its call
}

// recordGraphCall makes a call and returns its record. At the first execution of the call, the record is what output returns.
func recordGraphCall(c *Ctx, name string, where uintptr, output func() ([]byte, error)) ([]byte, error) {
	res, err := c.callScope().Step(&engine.CallSpec{Name: name, Kind: store.KindGraph, CallSite: where, ExecuteAttempt: func(context.Context) (engine.AttemptOutput, *record.Failure) {
		b, err := output()
		if err != nil {
			return engine.AttemptOutput{}, toPermanentFailure(err)
		}
		return engine.AttemptOutput{Bytes: b}, nil
	}})
	if err := callResultError(c, name, &res, err); err != nil {
		return nil, err
	}
	return res.Output, nil
}
