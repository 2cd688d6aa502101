package durable

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/naming"
)

// DefineGraph returns a workflow that is declared as a graph. The nodes of the graph are steps, steps for each item of a list,
// children and waits for signals. The edges of the graph say which nodes each node needs. DefineGraph calls build once. The
// function build declares the nodes with the methods of the graph, and returns the node whose value is the output of the
// workflow:
//
//	var Index = durable.DefineGraph("index", func(g *durable.Graph[Source]) *durable.Node[Report] {
//		list := g.Step("list", func(ctx context.Context, in *durable.NodeInput) ([]string, error) {
//			return listFiles(ctx, g.Input(in))
//		})
//		sizes := g.Each("size", list, func(ctx context.Context, file string, in *durable.NodeInput) (int, error) {
//			return sizeOf(ctx, file)
//		})
//		return g.Step("report", func(ctx context.Context, in *durable.NodeInput) (Report, error) {
//			return report(list.Of(in), sizes.Of(in)), nil
//		}, durable.Needs(list, sizes))
//	})
//
// The workflow of a graph is started, executed, paused, cancelled and inspected as any other workflow. All guarantees of steps,
// children and receives hold for the nodes of a graph. In the history a node's calls have the name of the node as their scope:
// "list/step", "size/each/0".
//
// Nodes begin as soon as their needs are met, and are executed concurrently. The run of a graph ends when all its nodes have
// ended. The run fails if the output node has no value, if a node with the policy [FailRun] has an unmet need, or if a node
// reads a value that it does not declare as a need ([ErrUndeclaredNeed]). If the output node has no value, the error of the run
// wraps the failures that caused it, each as a [*NodeError]. A node whose needs cannot be met is skipped; see [OnUnmetNeed].
//
// The run of a graph records the nodes and edges before its first node begins. Newer code may add nodes, and may remove nodes
// that have not begun or change their needs. If newer code changes the graph, the run records the new nodes and edges as the
// next revision of its shape. If a node that has begun is missing from the newer code, or has changed, the code does not fit
// the run; see [OnDrift]. The error for a node that is missing or has changed wraps [ErrDiverged] and names the node.
//
// For an invalid graph, [New] and every start return [ErrInvalidConfig] or [ErrInvalidName] with the name of the node. A graph
// is invalid if a name is invalid or declared twice, a node is of another graph, an option does not fit, a node is declared
// after build has returned, build returns nil, or the workflow has the option [Renamed], because nodes keep their names.
func DefineGraph[I, O any](name string, build func(g *Graph[I]) *Node[O], opts ...WorkflowOption) *Workflow[I, O] {
	d := new(graphDefinition)
	if build == nil {
		d.err = fmt.Errorf("%w: graph %q has no function that declares its nodes", ErrInvalidConfig, name)
	} else {
		d.finishDeclaration(build(&Graph[I]{d}))
	}
	w := Define(name, func(c *Ctx, in I) (O, error) { return executeGraph[I, O](c, d, in) }, opts...)
	w.graph = d
	w.isGraph = true
	w.refuseRenamedInGraph()
	if d.err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("graph %q: %w", name, d.err))
	}
	return w
}

// DefineGraphFrom returns a workflow whose graph depends on its input. Every execution of a run calls build with the input, and
// build declares the nodes as in [DefineGraph]. The function build must be deterministic: the same input must give the same
// nodes, in any order. If a part of the graph depends on the value of a node, make that part a graph of its own, and start the
// part with [Graph.Child].
//
// If build declares an invalid graph, the run fails with the error that New returns for an invalid graph of DefineGraph. The
// methods of g that declare nodes panic after build has returned, with an error that wraps [ErrInvalidConfig] and names the
// node. If the function of a node declares a node, the run fails at once with this error.
//
// The Shape method of a workflow from DefineGraphFrom returns an empty shape; [Engine.Graph] returns the recorded shape of a
// run.
func DefineGraphFrom[I, O any](name string, build func(g *Graph[I], in I) *Node[O], opts ...WorkflowOption) *Workflow[I, O] {
	w := Define(name, func(c *Ctx, in I) (O, error) {
		d := &graphDefinition{isOfOneRun: true}
		d.finishDeclaration(build(&Graph[I]{d}, in))
		if d.err != nil {
			return *new(O), fmt.Errorf("graph %q: %w", name, d.err)
		}
		return executeGraph[I, O](c, d, in)
	}, opts...)
	if build == nil {
		w.err = errors.Join(w.err, fmt.Errorf("%w: graph %q has no function that declares its nodes", ErrInvalidConfig, name))
	}
	w.isGraph = true
	w.refuseRenamedInGraph()
	return w
}

// refuseRenamedInGraph refuses the option Renamed for a graph. It would have no effect: a node is the scope of its calls, and these have fixed names.
func (w *Workflow[I, O]) refuseRenamedInGraph() {
	for _, now := range slices.Sorted(maps.Keys(w.declaredChange.previousNames)) {
		w.err = errors.Join(w.err, fmt.Errorf("%w: graph %q has the option Renamed(%q, %q), and nodes keep their names: give the node its old name again, and leave the option out",
			ErrInvalidConfig, w.name, w.declaredChange.previousNames[now], now))
	}
}

// Graph is a graph whose nodes are being declared. The function passed to [DefineGraph] declares nodes with the methods of
// Graph. After the function passed to DefineGraph has returned, [Graph.Input] is the only method of the Graph that may be
// called.
type Graph[I any] struct{ definition *graphDefinition }

// Input returns the input of the run. The argument in is the [NodeInput] that the function of a node gets. All nodes share the input, so
// functions must not change it.
func (g *Graph[I]) Input(in *NodeInput) I { return in.run.input.(*typedInput[I]).value }

// typedInput holds the input of a run. It is a type of its own because I may be an interface.
type typedInput[I any] struct{ value I }

// graphDefinition is a declared graph. It does not change after finishDeclaration.
type graphDefinition struct {
	shape        graph.Shape
	encodedShape []byte // the recorded form of the shape
	nodes        []*graphNode
	nodeIndexes  map[string]int // the indexes of the nodes by their names; set by finishDeclaration
	err          error
	isFinished   bool
	isOfOneRun   bool // of DefineGraphFrom: no New and no start sees what is declared late

	late atomic.Pointer[error] // of the last node that was declared after build had returned
}

// finishDeclaration ends the declaration. output is the node that build returned.
func (d *graphDefinition) finishDeclaration(output AnyNode) {
	d.isFinished = true
	node := output.declaredNode()
	switch {
	case node == nil:
		d.addError(errors.New("build returned no node: return the node whose value is the output"))
		return
	case node.graph != d:
		d.addError(fmt.Errorf("the output node %q is a node of another graph", node.name))
		return
	}
	d.shape.Output = node.name
	if d.err != nil {
		return
	}
	if err := d.shape.Check(); err != nil {
		d.addError(err)
		return
	}
	var err error
	if d.encodedShape, err = d.shape.Encode(); err != nil {
		d.addError(err)
	}
	d.nodeIndexes = make(map[string]int, len(d.nodes))
	for i, n := range d.nodes {
		d.nodeIndexes[n.name] = i
		for _, need := range uniqueNames(n.spec().AllReferences()) {
			at := d.nodeIndexes[need]
			n.refersTo = append(n.refersTo, at)
			d.nodes[at].referredBy = append(d.nodes[at].referredBy, i)
		}
	}
}

// addError adds an error of the declaration.
func (d *graphDefinition) addError(err error) {
	if !errors.Is(err, ErrInvalidConfig) && !errors.Is(err, ErrInvalidName) {
		err = fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	d.err = errors.Join(d.err, err)
}

// lateDeclarationError returns an error if a node was declared after the declaration had ended. d may be nil.
func (d *graphDefinition) lateDeclarationError(workflow string) error {
	if d == nil || d.late.Load() == nil {
		return nil
	}
	return fmt.Errorf("graph %q: %w", workflow, *d.late.Load())
}

// addNodeError adds an error of one node.
func (d *graphDefinition) addNodeError(name string, err error) {
	d.addError(fmt.Errorf("node %q: %w", name, err))
}

// addNode declares a node. over is the node whose value is the list of items; nil means none. execute is what the node does once it begins.
func (d *graphDefinition) addNode(name, kind string, over AnyNode, o *nodeOptions, where uintptr, execute func(c *Ctx, in *NodeInput) (any, error)) *graphNode {
	if d.isFinished { // runs may be using the definition
		err := fmt.Errorf("%w: node %q is declared after the function that declares the nodes has returned: declare it in that function", ErrInvalidConfig, name)
		if d.isOfOneRun {
			panic(&lateDeclarationError{err})
		}
		d.late.Store(&err)
		return &graphNode{name: name, callSite: where}
	}
	n := &graphNode{graph: d, name: name, scopePrefix: name + naming.Separator, index: len(d.nodes), callSite: where, execute: execute, conditions: o.conditions, callsUserFunction: len(o.conditions) > 0, delay: o.delay}
	declared := graph.Node{Name: name, Kind: kind, Workflow: o.workflow, Unmet: graph.UnmetPolicy(o.unmetPolicy), Delayed: o.delay > 0}
	needs := o.needs
	if over != nil {
		needs = append([]AnyNode{over}, needs...)
		if over := over.declaredNode(); over != nil {
			declared.Over = over.name
		}
		if o.unmetPolicy == RunAnyway {
			o.setFirstError(fmt.Errorf("%w: OnUnmetNeed(RunAnyway): without the value of %q it has no items", ErrInvalidConfig, declared.Over))
		}
	}
	declared.Needs, declared.After = uniqueNames(d.nodeNames(name, needs)), uniqueNames(d.nodeNames(name, o.after))
	for _, c := range o.choices {
		declared.Choices = append(declared.Choices, graph.Choice{Of: d.nodeNames(name, c.nodes), K: c.k, Keep: c.losers == KeepLosers})
	}
	for _, c := range o.conditions {
		if of := c.node.declaredNode(); of != nil && !slices.Contains(declared.If, of.name) {
			declared.If = append(declared.If, of.name)
		}
	}
	if o.err != nil {
		d.addNodeError(name, o.err)
	}
	d.shape.Nodes, d.nodes = append(d.shape.Nodes, declared), append(d.nodes, n)
	return n
}

// lateDeclarationError is the error with which the declaration of a node panics after the function that declares the nodes of one run has
// returned.
type lateDeclarationError struct{ error }

func (e *lateDeclarationError) Unwrap() error { return e.error }

// nodeNames returns the names of the nodes that the node called name refers to.
func (d *graphDefinition) nodeNames(name string, nodes []AnyNode) (names []string) {
	for i, need := range nodes {
		switch {
		case isNil(need) || need.declaredNode() == nil:
			d.addNodeError(name, fmt.Errorf("the node at place %d of those that it needs is nil", i+1))
		case need.declaredNode().graph != d:
			d.addNodeError(name, fmt.Errorf("it needs %q, which is a node of another graph", need.declaredNode().name))
		default:
			names = append(names, need.declaredNode().name)
		}
	}
	return names
}

// uniqueNames returns the names, each once.
func uniqueNames(names []string) (once []string) {
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}
