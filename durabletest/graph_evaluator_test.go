package durabletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable"
)

// evaluation is what must become of the nodes of a graph, from its definition and from how its functions end. It shares nothing with
// the library, and knows no time:
//
//   - A node that no choice ends, ends always alike. For what it waits for is not ended before it is decided, because it needs it.
//   - Which nodes a choice ends is a matter of time. mayEnd holds those that can be ended: losers, and what nodes that can be ended
//     need, unless a node needs it that cannot be ended and that begins.
//   - If a node fails the run, or the run is cancelled, every node can be ended.
type evaluation struct {
	nodes    []drawnNode
	states   []durable.NodeState // of each node, if nothing ends it
	failsRun []bool              // because of a need that is not met
	mayEnd   []bool              // by a choice
}

const completed, failed, skipped, cancelled = durable.NodeCompleted, durable.NodeFailed, durable.NodeSkipped, durable.NodeCancelled

func evaluate(nodes []drawnNode) *evaluation {
	e := &evaluation{nodes: nodes, failsRun: make([]bool, len(nodes)), mayEnd: make([]bool, len(nodes))}
	for i := range nodes {
		e.states = append(e.states, e.stateOf(&nodes[i]))
	}
	for changed := true; changed; {
		changed = false
		for i := range nodes {
			if !e.mayEnd[i] && e.canBeEnded(i) {
				e.mayEnd[i], changed = true, true
			}
		}
	}
	return e
}

func (e *evaluation) isCompleted(i int) bool { return e.states[i] == completed }

func (e *evaluation) countCompleted(of []int) (n int) {
	for _, i := range of {
		if e.isCompleted(i) {
			n++
		}
	}
	return n
}

// isMet reports whether all needs of the node are met.
func (e *evaluation) isMet(n *drawnNode) bool {
	return e.countCompleted(n.needs) == len(n.needs) && !slices.ContainsFunc(n.choices, func(c drawnChoice) bool { return e.countCompleted(c.of) < c.k })
}

// stateOf returns how the node ends. Those before it are known.
func (e *evaluation) stateOf(n *drawnNode) durable.NodeState {
	switch {
	case !e.isMet(n) && n.unmet == durable.FailRun:
		e.failsRun[n.index] = true
		return failed
	case !e.isMet(n) && n.unmet == durable.SkipNode:
		return skipped
	case n.condition >= 0 && !(n.holds && e.isCompleted(n.needs[n.condition])):
		return skipped
	case n.fails && (!n.isMapped() || n.items > 0):
		return failed
	}
	return completed
}

// begins reports whether the node begins if nothing ends it.
func (e *evaluation) begins(i int) bool { return e.states[i] != skipped && !e.failsRun[i] }

// canBeEnded reports whether a choice can end the node, given which others can be ended as far as is known.
func (e *evaluation) canBeEnded(i int) bool {
	if i == len(e.nodes)-1 { // the output
		return false
	}
	reason := false
	for at := range e.nodes {
		n := &e.nodes[at]
		needs := slices.Contains(n.needs, i)
		for _, c := range n.choices {
			member, met := slices.Contains(c.of, i), e.countCompleted(c.of)
			if member && c.losers == durable.CancelLosers && met >= c.k && (met > c.k || !e.isCompleted(i)) {
				reason = true // it can lose
			}
			if member && e.mayEnd[at] {
				reason = true
			}
			needs = needs || member && c.k == len(c.of) && met == c.k
		}
		switch {
		case needs && e.mayEnd[at]:
			reason = true
		case needs && e.begins(at):
			return false // it waits for the node
		}
	}
	return reason
}

// runFails reports whether the run fails, and whether that is certain.
func (e *evaluation) runFails() (fails, certain bool) {
	for i := range e.nodes {
		fails = fails || e.failsRun[i]
		certain = certain || e.failsRun[i] && !e.mayEnd[i]
	}
	if !fails && !e.isCompleted(len(e.nodes)-1) {
		return true, true
	}
	return fails, certain || !fails
}

// allowed returns the states in which the node may be at the end of the run.
func (e *evaluation) allowed(i int, runIsCancelled bool) []durable.NodeState {
	all := []durable.NodeState{e.states[i]}
	if fails := slices.Contains(e.failsRun, true); fails || runIsCancelled || e.mayEnd[i] {
		all = append(all, cancelled)
	}
	if runIsCancelled {
		all = append(all, skipped) // it needs one that was cancelled
		if n := &e.nodes[i]; n.unmet == durable.FailRun || n.kind == durable.NodeChild || n.kind == durable.NodeEachChild {
			all = append(all, failed) // for the same reason, or because the child was cancelled before its parent was
		}
	}
	return all
}

// causes returns the nodes whose failure or condition led to it that the node, which is skipped or failed, has no value.
func (e *evaluation) causes(i int) (all []int) {
	n := &e.nodes[i]
	switch {
	case e.states[i] == failed:
		return []int{i}
	case e.isMet(n) || n.unmet == durable.RunAnyway: // by its condition
		switch on := n.needs[n.condition]; {
		case e.isCompleted(on):
			return []int{i}
		case e.mayEnd[on]: // the reason may be that it was ended
			return nil
		default:
			return e.causes(on)
		}
	}
	needs := slices.Clone(n.needs)
	for _, c := range n.choices {
		needs = append(needs, c.of...)
	}
	for _, need := range needs {
		if !e.isCompleted(need) && !e.mayEnd[need] {
			all = append(all, e.causes(need)...)
		}
	}
	return all
}

// check compares what became of a run with what must become of it. err is the error of the run; runIsCancelled reports that it was
// cancelled before its end.
func (r *randomGraph) check(t interface{ Errorf(string, ...any) }, info *durable.GraphInfo, err error, runIsCancelled bool) {
	e := evaluate(r.nodes)
	anyFails := slices.Contains(e.failsRun, true)
	for i := range r.nodes {
		n, got := &r.nodes[i], &info.Nodes[i]
		if allowed := e.allowed(i, runIsCancelled); !slices.Contains(allowed, got.State) {
			t.Errorf("node %d is %s (%v), want one of %q: %+v", i, got.State, got.Err, allowed, *n)
		}
		if n.kind != durable.NodeReceive {
			r.checkCalls(t, e, n, got.State, runIsCancelled)
		}
		for c, choice := range n.choices {
			won, met := got.Choices[c].Won, e.countCompleted(choice.of)
			switch {
			case len(won) != 0 && (len(won) != choice.k || met < choice.k):
				t.Errorf("choice %d of node %d has the winners %q, %d of its members can complete: %+v", c, i, won, met, *n)
			case len(won) == 0 && met >= choice.k && e.begins(i) && !e.mayEnd[i] && !anyFails && !runIsCancelled:
				t.Errorf("choice %d of node %d is not recorded: %+v", c, i, *n)
			}
			for _, name := range won {
				if at := slices.IndexFunc(info.Nodes, func(n durable.NodeInfo) bool { return n.Name == name }); !slices.Contains(choice.of, at) || info.Nodes[at].State != completed {
					t.Errorf("%q won choice %d of node %d: %+v", name, c, i, *n)
				}
			}
		}
	}
	if runIsCancelled {
		if !errors.Is(err, durable.ErrCancelled) || info.Status != durable.StatusCancelled {
			t.Errorf("the run was cancelled, is %s and returned %v", info.Status, err)
		}
		return
	}
	fails, certain := e.runFails()
	if certain && fails != (err != nil) || err != nil && !fails || (err == nil) != (info.Status == durable.StatusCompleted) {
		t.Errorf("the run is %s with the error %v; it must fail: %t, for certain: %t", info.Status, err, fails, certain)
	}
	if !anyFails && fails && err != nil {
		for _, cause := range e.causes(len(r.nodes) - 1) {
			if !strings.Contains(err.Error(), fmt.Sprintf("node %q ", r.nodes[cause].name())) {
				t.Errorf("the run returned %v, which does not name node %d", err, cause)
			}
		}
	}
}

// checkCalls checks which functions of the node were called. state is the node's at the end.
func (r *randomGraph) checkCalls(t interface{ Errorf(string, ...any) }, e *evaluation, n *drawnNode, state durable.NodeState, runIsCancelled bool) {
	items := 1
	if n.isMapped() {
		items = n.items
	}
	for i := range items {
		called := r.calls.of(n.index*maxItems+i) > 0
		switch {
		case called && !e.begins(n.index):
			t.Errorf("item %d of node %d was called, and the node never begins: %+v", i, n.index, *n)
		case !called && state == completed:
			t.Errorf("item %d of node %d was not called, and the node is %s: %+v", i, n.index, state, *n)
		case !called && state == failed && e.begins(n.index) && i == items-1 && !runIsCancelled:
			t.Errorf("the last item of node %d was not called, and the node is %s: %+v", n.index, state, *n)
		}
	}
}
