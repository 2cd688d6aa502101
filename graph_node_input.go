package durable

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/graph"
)

// NodeInput is the argument of a node's function. The function passes its NodeInput to [Node.Of] or [Node.Get] to get the value
// of another node, and to [Graph.Input] to get the input of the run. A NodeInput is safe for concurrent use.
type NodeInput struct {
	run           *graphRun
	node          *graphNode
	choiceWinners [][]int // the winners of each choice of the node, as indexes of its members; nil: not chosen
}

// ScheduledAt returns the scheduled time of the run, as the function [ScheduledAt] does in a workflow function.
func (in *NodeInput) ScheduledAt() time.Time { return ScheduledAt(in.run.c) }

// NodeState is the state of a node of a graph.
type NodeState string

// The states of a node. NodeCompleted, NodeFailed, NodeSkipped and NodeCancelled are final.
const (
	NodeWaiting   NodeState = "waiting"   // the node waits for nodes that it needs, or for the run to begin
	NodeReady     NodeState = "ready"     // the needs of the node are met, and the node has recorded nothing yet
	NodeDelayed   NodeState = "delayed"   // the [Delay] of the node is not over
	NodeRunning   NodeState = "running"   // the node has begun
	NodeCompleted NodeState = "completed" // the node has a value
	NodeFailed    NodeState = "failed"    // the node has an error
	NodeSkipped   NodeState = "skipped"   // a need or a condition of the node was not met; the node never begins
	NodeCancelled NodeState = "cancelled" // a choice has cancelled the node, or the run ended before the node did; see [NeedsQuorum]
)

// NodeError describes why a node has no value.
type NodeError struct {
	Node  string
	State NodeState // NodeFailed, NodeSkipped or NodeCancelled; any state if Err is ErrNotChosen
	Err   error     // the failure of the node, or, without a failure, ErrNodeSkipped, ErrNotChosen or ErrCancelled
}

// Error returns a text with the node, its state and the error.
func (e *NodeError) Error() string {
	if e.State == NodeFailed {
		return fmt.Sprintf("node %q failed: %v", e.Node, e.Err)
	}
	return fmt.Sprintf("node %q has no value: %v", e.Node, e.Err)
}

// Unwrap returns the field Err.
func (e *NodeError) Unwrap() error { return e.Err }

// Of returns the value of n. The argument in is the [NodeInput] that the function of the calling node got. Use Of if n has
// always completed when the calling node begins, because the calling node declares n
//
//   - with [Needs],
//   - as the node that returns the items, in [Graph.Each] or [Graph.EachChild], or
//   - with a [NeedsQuorum] that requires all of its nodes.
//
// If n has no value, or the calling node does not declare n in one of its options, Of panics with an error that wraps
// [ErrUndeclaredNeed] and names both nodes. If Of panics, the run fails at once with the error of the panic. Use [Node.Get] if
// n may have no value: with [After], with [NeedsAny], with a [NeedsQuorum] that does not require all of its nodes, and with the
// policy [RunAnyway].
//
// All nodes that read the value of n in one execution share it, so functions must not change it: clone a slice before you sort it. A
// replay reads what n returned.
func (n *Node[T]) Of(in *NodeInput) T {
	v, err := n.Get(in)
	if err != nil {
		panic(newUndeclaredNeedError(in, n.Name(), fmt.Errorf("use Get for a need that may have no value: %w", err)))
	}
	return v
}

// Get returns the value of a node, or a [*NodeError] that says why the node has no value:
//
//   - If the node failed, the error wraps the failure of the node, such as a [*StepError].
//   - If the node was skipped, the error wraps [ErrNodeSkipped].
//   - If a choice cancelled the node, the error wraps [ErrCancelled].
//   - If the node is a member of a choice and did not win, the error wraps [ErrNotChosen].
//
// The value is shared, as that of [Node.Of]. Get panics as Of does, unless the calling node refers to n in one of its options.
func (n *Node[T]) Get(in *NodeInput) (T, error) {
	var zero T
	if n == nil || n.n == nil || n.n.graph != in.node.graph {
		panic(newUndeclaredNeedError(in, n.Name(), errors.New("it is not a node of this graph")))
	}
	v, err := in.nodeValue(n.n)
	if err != nil {
		return zero, err
	}
	value, _ := v.(T) // an interface type may hold nil
	return value, nil
}

// nodeValue returns the value of a node that the calling node refers to.
func (in *NodeInput) nodeValue(of *graphNode) (any, error) {
	declared := in.node.spec()
	if slices.Contains(declared.Needs, of.name) || slices.Contains(declared.After, of.name) {
		return in.run.nodeResult(of)
	}
	member := false
	for i, c := range in.run.choicesOf(in.node) {
		at := slices.Index(c.Of, of.name)
		if at >= 0 && slices.Contains(in.choiceWinners[i], at) {
			return in.run.nodeResult(of)
		}
		member = member || at >= 0
	}
	if !member {
		panic(newUndeclaredNeedError(in, of.name, errors.New("declare it with Needs, After, NeedsAny or NeedsQuorum")))
	}
	return nil, &NodeError{of.name, NodeState(in.run.nodeState(of.name)), ErrNotChosen}
}

// undeclaredNeedError is the error with which Of and Get panic.
type undeclaredNeedError struct{ error }

func (e *undeclaredNeedError) Unwrap() error { return e.error }

func newUndeclaredNeedError(in *NodeInput, need string, why error) *undeclaredNeedError {
	return &undeclaredNeedError{fmt.Errorf("%w: node %q read the value of %q: %w", ErrUndeclaredNeed, in.node.name, need, why)}
}

// recoverMistake is deferred around functions of users. It turns a panic of Of, of Get or of a late declaration into a permanent error.
func (in *NodeInput) recoverMistake(err *error) {
	switch v := recover().(type) {
	case nil:
	case *undeclaredNeedError:
		*err = Permanent(v)
	case *lateDeclarationError:
		*err = Permanent(v)
	default:
		panic(v) // the stack is that of the panic, because a deferred function is executed above it
	}
}

// The recorded types of the errors of a node's own function that fail the run.
var (
	undeclaredNeedType  = fmt.Sprintf("%T", new(undeclaredNeedError))
	lateDeclarationType = fmt.Sprintf("%T", new(lateDeclarationError))
)

// isMistakeOfNode reports whether the error comes from a mistake of a function of the node itself: it read a node that it does not declare
// as a need, or it declared a node. The same mistake in a child, or in a node whose error a function returns, is an ordinary failure.
func isMistakeOfNode(err error) bool {
	switch e := err.(type) {
	case nil, *RunError, *NodeError:
		return false
	case *undeclaredNeedError, *lateDeclarationError:
		return true
	case *StepError:
		return e.Type == undeclaredNeedType || e.Type == lateDeclarationType
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), isMistakeOfNode)
	}
	return isMistakeOfNode(errors.Unwrap(err))
}

// nodeSkippedError is the error of a node that was skipped because of another node: a condition on the value of the other node does not hold, or
// the other node has not completed. It wraps ErrNodeSkipped.
type nodeSkippedError struct {
	because     string
	byCondition bool
}

func newNodeSkippedError(because string, byCondition bool) *nodeSkippedError {
	return &nodeSkippedError{because, byCondition}
}

func (e *nodeSkippedError) Error() string {
	if e.byCondition {
		return fmt.Sprintf("%v: its condition on the value of node %q does not hold", ErrNodeSkipped, e.because)
	}
	return fmt.Sprintf("%v: its needs are not met, because of node %q", ErrNodeSkipped, e.because)
}

func (e *nodeSkippedError) Unwrap() error { return ErrNodeSkipped }

// nodeStateFromError returns the state of a node whose branch returned the error.
func nodeStateFromError(err error) graph.State {
	if err == nil { // before the new pointer, which is allocated
		return graph.Completed
	}
	switch {
	case errors.As(err, new(*nodeSkippedError)):
		return graph.Skipped
	case isRecordedFailure(err):
		return graph.Failed
	case errors.Is(err, ErrSuspended):
		return graph.Running // the run leaves this process
	case errors.Is(err, ErrCancelled):
		return graph.Cancelled
	}
	return graph.Failed
}
