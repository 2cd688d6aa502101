package ui

import (
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// mostObserved is the largest number of calls in an observedGraph.
const mostObserved = 60

// observedGraph is the picture of a run without a declared graph: its calls in the order in which they began. An arrow leads to each call from
// the calls that had ended when it began.
type observedGraph struct {
	*graphDrawing
	Calls int // of the history, without the items of Maps
}

// recordingKinds are the kinds of calls that record something and do nothing else.
var recordingKinds = map[durable.Kind]bool{durable.KindNow: true, durable.KindUUID: true, durable.KindPatch: true, durable.KindFailure: true, durable.KindKeyRenewal: true, durable.KindGraph: true, durable.KindTags: true}

// newObservedGraph draws a history. Children are the IDs of the children that may be shown, by the names of their calls. It returns nil if there are less than two calls.
func newObservedGraph(history []durable.Checkpoint, children map[string]string) *observedGraph {
	maps := make(map[string]*durable.NodeItemCounts)
	for i := range history {
		if history[i].Kind == durable.KindMap {
			maps[history[i].Name] = new(durable.NodeItemCounts)
		}
	}
	var calls []*durable.Checkpoint
	busy := make(map[string]time.Time) // when the last call of a branch began, by its scope
	all := 0
	for i := range history {
		c := &history[i]
		scope := scopeName(c.Name)
		if items := maps[scope]; items != nil {
			items.Total++
			switch c.Status {
			case durable.CheckpointCompleted:
				items.Completed++
			case durable.CheckpointFailed:
				items.Failed++
			}
			continue
		}
		if recordingKinds[c.Kind] {
			continue
		}
		for s := scope; s != ""; s = scopeName(s) {
			if busy[s].Before(c.StartedAt) {
				busy[s] = c.StartedAt
			}
		}
		if all++; len(calls) < mostObserved {
			calls = append(calls, c)
		}
	}
	if len(calls) < 2 {
		return nil
	}
	g := new(durable.GraphInfo)
	before := make([]map[int]bool, len(calls)) // the calls that are before a call, on any way
	for i, c := range calls {
		n := newCallNode(c)
		n.Child, n.Items = children[c.Name], maps[c.Name]
		g.Nodes = append(g.Nodes, n)
		before[i] = make(map[int]bool)
		for j := i - 1; j >= 0; j-- {
			if before[i][j] || !precedes(calls[j], c, busy) {
				continue
			}
			g.Edges = append(g.Edges, durable.EdgeInfo{GraphEdge: durable.GraphEdge{From: calls[j].Name, To: c.Name}})
			before[i][j] = true
			for k := range before[j] {
				before[i][k] = true
			}
		}
	}
	return &observedGraph{newGraphDrawing(g), all}
}

// scopeName returns the scope of a name: of "branch/step" it is "branch", and of a name without a scope it is empty.
func scopeName(name string) string {
	return name[:max(strings.LastIndexByte(name, '/'), 0)]
}

// precedes reports whether a call was over when another one began, in the same scope, in one around it, or in a branch that had ended.
func precedes(a, b *durable.Checkpoint, busy map[string]time.Time) bool {
	if a.EndedAt.IsZero() || a.EndedAt.After(b.StartedAt) {
		return false
	}
	from, to := scopeName(a.Name), scopeName(b.Name)
	switch {
	case from == to, from == "", strings.HasPrefix(to, from+"/"):
		return true
	case to == "" || strings.HasPrefix(from, to+"/"): // of a branch that still makes calls, it was not the end
		for s := from; s != to; s = scopeName(s) {
			if busy[s].After(b.StartedAt) {
				return false
			}
		}
		return true
	}
	return false
}

// newCallNode returns a call as a node.
func newCallNode(c *durable.Checkpoint) durable.NodeInfo {
	n := durable.NodeInfo{NodeShape: durable.NodeShape{Name: c.Name, Kind: durable.NodeKind(c.Kind)}, Attempts: c.Attempts, StartedAt: c.StartedAt, EndedAt: c.EndedAt}
	switch c.Status {
	case durable.CheckpointCompleted:
		n.State = durable.NodeCompleted
	case durable.CheckpointFailed:
		n.State = durable.NodeFailed
	case durable.CheckpointCancelled:
		n.State = durable.NodeCancelled
	case durable.CheckpointBackoff:
		n.State = durable.NodeDelayed
	default:
		n.State = durable.NodeRunning
	}
	return n
}

// childIDs returns the IDs of the children that a page shows, by the names of their calls.
func (t *treeRow) childIDs() map[string]string {
	ids := make(map[string]string, len(t.Children))
	for _, c := range t.Children {
		ids[c.Name] = c.ID
	}
	return ids
}
