package durable

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Node is a node of a graph, and the handle by which other nodes refer to that node. T is the type of the node's value. The
// methods of [Graph] return a Node.
type Node[T any] struct{ n *graphNode }

// AnyNode is a [*Node] of any type.
type AnyNode interface {
	// Name returns the name of the node.
	Name() string
	declaredNode() *graphNode
}

// Name returns the name of the node, or an empty string if n is nil.
func (n *Node[T]) Name() string {
	if n == nil || n.n == nil {
		return ""
	}
	return n.n.name
}

func (n *Node[T]) declaredNode() *graphNode {
	if n == nil {
		return nil
	}
	return n.n
}

// graphNode is a declared node without its type.
type graphNode struct {
	graph             *graphDefinition
	name              string
	scopePrefix       string // the prefix of the names of its calls
	index             int    // in the order of declaration
	callSite          uintptr
	execute           func(c *Ctx, in *NodeInput) (any, error)
	conditions        []nodeCondition
	callsUserFunction bool                     // its conditions, or the function of its child's input or of its keys, which belong to the workflow function
	delay             time.Duration            // zero: none, or it is among the start options of a child
	isEmpty           func(in *NodeInput) bool // of a node for each item of a list: the list has no items; else nil

	refersTo, referredBy []int // the indexes of the nodes that it refers to, and of the nodes that refer to it; set by graphDefinition.finishDeclaration
}

// hasChoices reports whether the node needs some of several nodes.
func (n *graphNode) hasChoices() bool { return len(n.spec().Choices) > 0 }

// spec returns what the node needs.
func (n *graphNode) spec() *graph.Node { return &n.graph.shape.Nodes[n.index] }

// Step declares a node that executes fn as a step, as [Ctx.Step] does. The options of the node are [StepOption] values, and
// [Delay].
func (g *Graph[I]) Step[T any](name string, fn func(context.Context, *NodeInput) (T, error), opts ...NodeOption) *Node[T] {
	where := callSite(0)
	o := newNodeOptions(opts, acceptsStepOptions)
	if fn == nil {
		o.setFirstError(noFunctionError("node", name))
	}
	checkVerifyOfNode[T](o, name)
	call := graph.CallName(graph.KindStep)
	return &Node[T]{g.definition.addNode(name, graph.KindStep, nil, o, where, func(c *Ctx, in *NodeInput) (any, error) {
		return newDurableCall(c, call, store.KindStep, where, func(ctx context.Context) (v T, err error) {
			defer in.recoverMistake(&err)
			return fn(ctx, in)
		}, o.stepOptions).executeCall()
	})}
}

// checkVerifyOfNode checks the option Verify of a node whose steps return a T.
func checkVerifyOfNode[T any](o *nodeOptions, name string) {
	if o.verify != nil {
		_, err := verifyFunc[T](name, o.verify)
		o.setFirstError(err)
	}
}

// Each declares a node that executes fn for each item of the value of over, as [Ctx.Map] does. The value of the Each node is
// the list of the results, in the order of the items. The Each node begins when the node that the argument over names has
// completed, as with [Needs]. The options of the Each node are [MapOption] and [StepOption] values, and [Delay].
func (g *Graph[I]) Each[In, T any](name string, over *Node[[]In], fn func(context.Context, In, *NodeInput) (T, error), opts ...NodeOption) *Node[[]T] {
	where := callSite(0)
	o := newNodeOptions(opts, acceptsStepOptions|acceptsMapOptions)
	if fn == nil {
		o.setFirstError(noFunctionError("node", name))
	}
	checkVerifyOfNode[T](o, name)
	if o.key != nil {
		_, err := keyFunc[In](name, o.key)
		o.setFirstError(err)
	}
	maps := append(o.mapOptions, ItemOptions(o.stepOptions...))
	call := graph.CallName(graph.KindEach)
	n := &Node[[]T]{g.definition.addNode(name, graph.KindEach, over, o, where, func(c *Ctx, in *NodeInput) (any, error) {
		return c.Map(call, over.Of(in), func(ctx context.Context, item In) (v T, err error) {
			defer in.recoverMistake(&err)
			return fn(ctx, item, in)
		}, maps...)
	})}
	n.n.isEmpty = func(in *NodeInput) bool { return len(over.Of(in)) == 0 }
	n.n.callsUserFunction = n.n.callsUserFunction || o.key != nil
	return n
}

// Child declares a node that starts a run of the workflow as a child, as [Ctx.Child] does. The value of the node is the output
// of the child. The function input returns the input of the child. The function input is part of the workflow function and must
// be deterministic. The options of the node are [StartOption] values, such as [InQueue] and [Delay].
func (g *Graph[I]) Child[CI, CO any](name string, w *Workflow[CI, CO], input func(*NodeInput) (CI, error), opts ...NodeOption) *Node[CO] {
	where := callSite(0)
	o := newNodeOptions(opts, acceptsStartOptions)
	o.workflow = w.Name()
	o.setFirstError(w.checkUsable())
	if input == nil {
		o.setFirstError(fmt.Errorf("%w: the node has no function that returns the input of the child", ErrInvalidConfig))
	}
	call := graph.CallName(graph.KindChild)
	n := &Node[CO]{g.definition.addNode(name, graph.KindChild, nil, o, where, func(c *Ctx, in *NodeInput) (any, error) {
		value, err := invokeInputFunc(in, input)
		if err != nil {
			return nil, &unrecordedNodeError{err}
		}
		child, err := startChild(c, call, w, value, where, o.startOptions)
		if err != nil {
			return nil, err
		}
		return child.Wait()
	})}
	n.n.callsUserFunction = true
	return n
}

// invokeInputFunc calls the function. It returns a panic of Of or Get as an error.
func invokeInputFunc[CI any](in *NodeInput, input func(*NodeInput) (CI, error)) (v CI, err error) {
	defer in.recoverMistake(&err)
	return input(in)
}

// EachChild declares a node that starts a child for each item of the value of over. Each child is a run of the workflow with
// the item as its input. All children are started at once, and any worker may execute them. To bound how many children execute
// at once, set the settings of their queue. The value of the EachChild node is the list of the children's outputs, in the order
// of the items. The database counts the ends of the children, so that the end of a single child need not wake the run: if
// 10,000 children end within a minute, the run is woken about ten times. The EachChild node waits for the ends of all its
// children. If a child does not complete, the node fails with an error that wraps the errors of all children that did not
// complete. The EachChild node begins when the node that the argument over names has completed, as with [Needs]. The options of
// the EachChild node are [StartOption] values, such as [InQueue] and [Delay].
func (g *Graph[I]) EachChild[CI, CO any](name string, over *Node[[]CI], w *Workflow[CI, CO], opts ...NodeOption) *Node[[]CO] {
	where := callSite(0)
	o := newNodeOptions(opts, acceptsStartOptions)
	o.workflow = w.Name()
	o.setFirstError(w.checkUsable())
	call := graph.CallName(graph.KindEachChild)
	n := &Node[[]CO]{g.definition.addNode(name, graph.KindEachChild, over, o, where, func(c *Ctx, in *NodeInput) (any, error) {
		return executeEachChild(c, call, w, over.Of(in), where, o.startOptions)
	})}
	n.n.isEmpty = func(in *NodeInput) bool { return len(over.Of(in)) == 0 }
	return n
}

// Receive declares a node that waits for a signal with the name of the node, as [Ctx.Receive] does. The value of the node is
// the payload of the signal. The options of the node are [ReceiveOption] values, such as [Within] and [OnSignal], and [Delay].
func (g *Graph[I]) Receive[T any](name string, opts ...NodeOption) *Node[T] {
	where := callSite(0)
	o := newNodeOptions(opts, acceptsReceiveOptions)
	call := graph.CallName(graph.KindReceive)
	receives := o.receiveOptions
	checkTimeoutOptions[T](&o.receives, math.MaxInt) // Config.MaxPayload is not known here
	o.setFirstError(o.receives.err)
	if o.receives.given&optionOnSignal == 0 {
		receives = append([]ReceiveOption{OnSignal(name)}, receives...)
	}
	return &Node[T]{g.definition.addNode(name, graph.KindReceive, nil, o, where, func(c *Ctx, in *NodeInput) (any, error) {
		return receiveSignal[T](c, call, "", where, receives)
	})}
}

// startsAtOnce is the number of children that one EachChild starts at the same time, so that their starts share commits.
const startsAtOnce = 64

// executeEachChild starts a child for each item, and waits for all of them.
func executeEachChild[CI, CO any](c *Ctx, name string, w *Workflow[CI, CO], items []CI, where uintptr, opts []StartOption) ([]CO, error) {
	scope, counted, err := c.callScope().OpenMapScope(name, where, len(items))
	if err != nil {
		return nil, err
	}
	counted = sync.OnceFunc(counted)
	defer counted()
	release := scope.HoldInMemory()
	defer release()
	sub := c.withScope(scope)
	children, errs := make([]*Child[CO], len(items)), make([]error, len(items))
	var starting sync.WaitGroup
	workers := min(startsAtOnce, len(items))
	for first := range workers {
		starting.Add(1)
		err := scope.Go(func() {
			defer starting.Done()
			for i := first; i < len(items); i += workers {
				children[i], errs[i] = startChild(sub, strconv.Itoa(i), w, items[i], where, opts)
			}
		}, func(f *record.Failure) { errs[first] = newStepError(c.scope.DisplayName(name), f) })
		if err != nil {
			starting.Done()
			errs[first] = err
		}
	}
	starting.Wait()
	counted() // its row counts the ends of the children
	var started []*engine.Child
	for _, child := range children {
		if child != nil {
			started = append(started, child.inner)
		}
	}
	scope.AwaitChildren(started)
	release()
	outputs := make([]CO, len(items))
	for i, child := range children {
		if child != nil && errs[i] == nil {
			outputs[i], errs[i] = child.Wait()
		}
	}
	return outputs, joinErrorsUnlessSuspended(errs)
}
