package graph

import "slices"

// State is the state of a node.
type State string

// The states of a node. Completed, Failed, Skipped and Cancelled are final.
const (
	Waiting   State = "waiting"   // for the nodes that it needs
	Ready     State = "ready"     // its needs are met, and nothing of it is recorded yet
	Delayed   State = "delayed"   // its start delay is not over
	Running   State = "running"   // it has begun
	Completed State = "completed" // it has a value
	Failed    State = "failed"    // it has an error
	Skipped   State = "skipped"   // a need was not met, or its condition was not
	Cancelled State = "cancelled" // a choice has ended it, or the run ended before the node
)

// IsFinal reports whether the state does not change any more.
func (s State) IsFinal() bool { return s == Completed || s == Failed || s == Skipped || s == Cancelled }

// Verdict is what happens to a node next.
type Verdict int

// The verdicts.
const (
	VerdictWait    Verdict = iota // the node waits for the end of another node, or for the record of a choice
	VerdictBegin                  // the node begins now
	VerdictSkip                   // the node never begins
	VerdictFailRun                // the run fails, because a need was not met
	VerdictChoose                 // one of its choices can be recorded; then decide again
)

// NextVerdict returns what happens to a node that has not begun. The function state returns the states of the nodes. The function chosen
// reports whether the choice with the index is recorded. For VerdictChoose, the result choice is the index of the choice.
//
// If NextVerdict returns VerdictSkip, VerdictBegin or VerdictFailRun for some states, it returns the same verdict for all states that can
// follow. Only choices depend on the order in which an execution learns of the states, and they are recorded.
func (n *Node) NextVerdict(state func(node string) State, chosen func(choice int) bool) (v Verdict, choice int) {
	unmet, open := false, false
	for _, need := range n.Needs {
		s := state(need)
		open = open || !s.IsFinal()
		unmet = unmet || s.IsFinal() && s != Completed
	}
	choose := -1
	for i, c := range n.Choices {
		if chosen(i) {
			continue
		}
		completed, possible := c.count(state)
		switch {
		case possible < c.K:
			unmet = true
			open = open || possible > completed
		case completed < c.K:
			open = true
		case choose < 0:
			choose = i
		}
	}
	switch v := n.verdictOnUnmet(); {
	case unmet && v != VerdictWait: // no choice is made for a node that never begins
		return v, 0
	case choose >= 0:
		return VerdictChoose, choose
	case open || slices.ContainsFunc(n.After, func(need string) bool { return !state(need).IsFinal() }):
		return VerdictWait, 0
	}
	return VerdictBegin, 0
}

// count returns how many members of the choice have completed, and how many have completed or still can.
func (c *Choice) count(state func(node string) State) (completed, possible int) {
	for _, need := range c.Of {
		switch s := state(need); {
		case s == Completed:
			completed++
			possible++
		case !s.IsFinal():
			possible++
		}
	}
	return completed, possible
}

// verdictOnUnmet returns what happens to the node if a need is not met, or VerdictWait if the node begins nevertheless.
func (n *Node) verdictOnUnmet() Verdict {
	switch n.Unmet {
	case UnmetFailsRun:
		return VerdictFailRun
	case UnmetRuns:
		return VerdictWait
	}
	return VerdictSkip
}
