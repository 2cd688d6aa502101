package repair

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// A run of a graph is repaired along its edges. The order in which calls began does not matter, because nodes that do not need each
// other are executed concurrently.

// RecordedShape returns the newest shape that a history records, and its revision. It returns zero if there is none.
func RecordedShape(steps []store.Step) (*graph.Shape, int, error) {
	revision, at := 0, -1
	for i := range steps {
		s := &steps[i]
		if s.Kind != store.KindGraph || s.Status != store.StepCompleted {
			continue
		}
		if n := graph.ShapeRevision(s.Name); n > revision {
			revision, at = n, i
		}
	}
	if at < 0 {
		return nil, 0, nil
	}
	shape, err := graph.Decode(steps[at].Output)
	return shape, revision, err
}

// shape returns the newest recorded shape, or nil if the run is no graph.
func (p *plan) shape() *graph.Shape { return shapeOf(p.History) }

// shapeOf returns the newest shape that a history records, or nil if there is none.
func shapeOf(calls []store.Step) *graph.Shape {
	shape, _, err := RecordedShape(calls)
	if err != nil {
		return nil // the execution of the run reports the error
	}
	return shape
}

// dropNodeAndDownstream drops the calls of the node that the request names, and the calls of all nodes downstream. It reports false if the run
// has no such node.
func (p *plan) dropNodeAndDownstream() bool {
	shape := p.shape()
	if shape == nil {
		return false
	}
	at := shape.Index(p.request.From)
	if at < 0 { // the request was parsed as the name of a call, which changes the slashes in the name of a node
		at = slices.IndexFunc(shape.Nodes, func(n graph.Node) bool { return naming.ParseDisplay(n.Name) == p.request.From })
	}
	if at < 0 {
		return false
	}
	for _, node := range shape.Downstream(shape.Nodes[at].Name) {
		p.dropNode(node)
	}
	return true
}

// dropAfterCall drops the calls that depend on the outcome of a node's call: later calls of the node, and the calls of all nodes
// downstream. Items of a list do not depend on each other. It reports false if the call belongs to no node.
func (p *plan) dropAfterCall(call *store.Step) bool {
	node, rest, _ := strings.Cut(call.Name, naming.Separator)
	shape := p.shape()
	if shape == nil || shape.Index(node) < 0 {
		return false
	}
	isItem := strings.Contains(rest, naming.Separator)
	for i := range p.History {
		row := &p.History[i]
		isLater := !isItem && p.renewal.Place(row) > p.renewal.Place(call) && strings.HasPrefix(row.Name, node+naming.Separator)
		if isLater || strings.HasPrefix(row.Name, call.Name+naming.Separator) {
			p.dropCheckpoint(row)
		}
	}
	for _, downstream := range shape.Downstream(node) {
		if downstream != node {
			p.dropNode(downstream)
		}
	}
	return true
}

// dropNode drops all calls of a node, including the records of its choices and of its skip.
func (p *plan) dropNode(node string) {
	for i := range p.History {
		if row := &p.History[i]; strings.HasPrefix(row.Name, node+naming.Separator) {
			p.dropCheckpoint(row)
		}
	}
}

// dropAffectedNodes drops the calls of the nodes whose verdicts could differ if the failed call succeeds: nodes that were executed
// because of the failure, or that recorded that they are skipped because of it.
func (p *plan) dropAffectedNodes(failed *store.Step) {
	node, _, _ := strings.Cut(failed.Name, naming.Separator)
	if shape := p.shape(); shape != nil && shape.Index(node) >= 0 {
		p.dropNodesAfter(shape, node)
	}
}

// dropNodeFailures drops the records of nodes that failed outside of their calls, and the calls of the nodes whose verdicts could differ
// without these failures. It belongs to a repair that keeps all calls, which is made after the code itself has failed, and here the code of the
// nodes has failed.
func (p *plan) dropNodeFailures() {
	for i := range p.History {
		if row := &p.History[i]; row.Kind == store.KindGraph && row.Status == store.StepFailed {
			p.dropAffectedNodes(row)
			p.dropChoicesDecidedBy(row)
			p.dropCheckpoint(row)
		}
	}
}

// dropNodesAfter drops the calls of the nodes whose verdicts could differ if the given node, which has no value, completes. Choices that
// other nodes have won are kept, because the nodes that these choices ended stay ended.
func (p *plan) dropNodesAfter(shape *graph.Shape, node string) {
	affected := shape.AffectedByFailure(node, p.winners)
	for i := range p.History {
		row := &p.History[i]
		of, _, _ := strings.Cut(row.Name, naming.Separator)
		if of == node || !slices.Contains(affected, of) {
			continue
		}
		won := choiceWinners(row)
		if len(won) == 0 || slices.ContainsFunc(won, func(winner string) bool { return slices.Contains(affected, winner) }) {
			p.dropCheckpoint(row)
		}
	}
}

// dropNodesAfterEndOf drops the calls of the nodes whose verdicts could differ if the given node completes, which a choice had ended before.
// If the node had completed before the choice, nothing is dropped. It reports whether it has dropped calls.
func (p *plan) dropNodesAfterEndOf(ended string) bool {
	shape := p.shape()
	if shape == nil || shape.Index(ended) < 0 || p.hasCompleted(shape, ended) {
		return false
	}
	before := len(p.dropped)
	p.dropNodesAfter(shape, ended)
	return len(p.dropped) > before
}

// hasCompleted reports whether the history shows that the node has completed. The items of a list are those of its value: the record of a Map
// has their number when it began, and a repair may have made the list longer since.
func (p *plan) hasCompleted(shape *graph.Shape, node string) bool {
	if p.completedNodes == nil {
		p.completedNodes = make(map[string]bool)
		rows := make([]graph.HistoryRow, len(p.History))
		for i := range p.History {
			row := &p.History[i]
			status := row.Status
			if row.Kind == store.KindSleep && row.NextAt.After(p.request.Now) {
				status = store.StepStarted
			}
			rows[i] = graph.HistoryRow{Name: row.Name, Status: status.String(), Output: row.Output}
		}
		for i, v := range shape.NodeViews(rows, func(string) bool { return false }, false) {
			p.completedNodes[shape.Nodes[i].Name] = v.State == graph.Completed
		}
	}
	return p.completedNodes[node]
}

// withItemCount returns the row of a Map of a node with the number of items that its list has if the repair sets the value of the list, and at
// least the number of its recorded items, which stay. It reports false if that is the number that the row has.
func (p *plan) withItemCount(row *store.Step) (changed store.Step, ok bool) {
	if len(p.callsWithValue) == 0 {
		return changed, false
	}
	node, _, _ := strings.Cut(row.Name, naming.Separator)
	shape := p.shape()
	if shape == nil || shape.Index(node) < 0 {
		return changed, false
	}
	list := &shape.Nodes[shape.Index(node)]
	for list.Over != "" {
		list = &shape.Nodes[shape.Index(list.Over)]
	}
	valued, hasValue := p.callsWithValue[list.Name+naming.Separator+graph.CallName(list.Kind)]
	if !hasValue {
		return changed, false
	}
	recorded := 0
	for i := range p.History {
		if strings.HasPrefix(p.History[i].Name, row.Name+naming.Separator) {
			recorded++
		}
	}
	changed = *row
	changed.Output = strconv.AppendInt(nil, int64(max(graph.ItemCount(valued.Output), recorded)), 10)
	return changed, !bytes.Equal(changed.Output, row.Output)
}

// winners returns the nodes that won a choice of the node, or nil if the choice is not recorded.
func (p *plan) winners(node string, choice int) (won []string) {
	if row := p.historyByName[node+naming.Separator+graph.ChoiceName(choice)]; row != nil {
		return choiceWinners(row)
	}
	return nil
}

// choiceWinners returns the nodes that won the choice, or nil if the row is no choice with winners.
func choiceWinners(row *store.Step) (won []string) {
	if c := record.DecodeChoiceStep(row); c != nil {
		for _, name := range c.Winners() {
			won = append(won, naming.ParseDisplay(name))
		}
	}
	return won
}
