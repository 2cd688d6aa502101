package durable

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// NodeOption configures one node of a graph: [Needs], [NeedsAny], [NeedsQuorum], [After], [When], [OnUnmetNeed], or an option
// of the call that the node makes ([StepOption], [MapOption], [StartOption] or [ReceiveOption]).
type NodeOption interface{ applyToNode(o *nodeOptions) }

// nodeOptions are the options of one node.
type nodeOptions struct {
	givenOptions
	accepted    nodeOptionKinds
	needs       []AnyNode
	after       []AnyNode
	choices     []quorumNeed
	conditions  []nodeCondition
	unmetPolicy UnmetNeedPolicy
	workflow    string

	stepOptions    []StepOption
	mapOptions     []MapOption
	startOptions   []StartOption
	receiveOptions []ReceiveOption
	receives       receiveOptions // what receiveOptions set
	verify, key    any            // what Verify and Key set; nil: not given
	delay          time.Duration
}

// nodeOptionKinds is a set of the kinds of call options that a node accepts.
type nodeOptionKinds uint8

const (
	acceptsStepOptions nodeOptionKinds = 1 << iota
	acceptsMapOptions
	acceptsStartOptions
	acceptsReceiveOptions
)

// quorumNeed is a need that NeedsAny or NeedsQuorum has declared: k of the nodes.
type quorumNeed struct {
	k      int
	losers LoserPolicy
	nodes  []AnyNode
}

// nodeCondition is the condition of an option When.
type nodeCondition struct {
	node  AnyNode
	holds func(in *NodeInput) bool
}

const optionUnmetNeed optionSet = 1

type nodeOptionFunc func(*nodeOptions)

func (f nodeOptionFunc) applyToNode(o *nodeOptions) { f(o) }

func (f StepOption) applyToNode(o *nodeOptions) { o.stepOptions = append(o.stepOptions, f) }

func (f MapOption) applyToNode(o *nodeOptions) { o.mapOptions = append(o.mapOptions, f) }

func (f StartOption) applyToNode(o *nodeOptions) { o.startOptions = append(o.startOptions, f) }

func (f ReceiveOption) applyToNode(o *nodeOptions) { o.receiveOptions = append(o.receiveOptions, f) }

// newNodeOptions applies the options of a node, and checks those of its call.
func newNodeOptions(opts []NodeOption, takes nodeOptionKinds) *nodeOptions {
	o := &nodeOptions{accepted: takes}
	for i, option := range opts {
		if option == nil {
			o.setFirstError(fmt.Errorf("%w: the NodeOption at place %d of %d is nil: leave it out", ErrInvalidConfig, i+1, len(opts)))
			continue
		}
		option.applyToNode(o)
	}
	o.checkCallOptions()
	return o
}

// checkCallOptions checks the options of the node's call, and takes the delay out of them.
func (o *nodeOptions) checkCallOptions() {
	var maps mapOptions
	o.setFirstError(errors.Join(applyOptions(o.mapOptions, &maps), maps.err))
	var steps stepOptions
	o.setFirstError(errors.Join(applyOptions(slices.Concat(maps.stepOptions, o.stepOptions), &steps), steps.err, steps.check()))
	if steps.given&optionUndoes != 0 {
		o.setFirstError(fmt.Errorf("%w: the node has the option Undoes: it is for Compensate only", ErrInvalidConfig))
	}
	o.verify, o.key = steps.verify, maps.key
	var starts startOptions
	o.setFirstError(errors.Join(applyOptions(o.startOptions, &starts), starts.err))
	o.setFirstError(starts.checkNoStartKey("a child belongs to its parent alone: leave the option out"))
	o.setFirstError(errors.Join(applyOptions(o.receiveOptions, &o.receives), o.receives.err))
	refuse := func(given bool, takes nodeOptionKinds, what, instead string) {
		if given && o.accepted&takes == 0 {
			o.setFirstError(fmt.Errorf("%w: the node does not take a %s: %s", ErrInvalidConfig, what, instead))
		}
	}
	refuse(len(o.stepOptions) > 0, acceptsStepOptions, "StepOption", "it is for Graph.Step and Graph.Each")
	refuse(len(o.mapOptions) > 0, acceptsMapOptions, "MapOption", "it is for Graph.Each")
	refuse(starts.given&^optionDelay != 0, acceptsStartOptions, "StartOption other than Delay", "it is for Graph.Child and Graph.EachChild: a step is executed by the worker that executes its run")
	refuse(len(o.receiveOptions) > 0, acceptsReceiveOptions, "ReceiveOption", "it is for Graph.Receive")
	if starts.given&optionID != 0 {
		o.setFirstError(fmt.Errorf("%w: the node has the option ID: a child is named by its node, leave the option out", ErrInvalidConfig))
	}
	if o.accepted&acceptsStartOptions == 0 {
		o.delay = max(starts.delay, 0)
	}
}

// Needs makes the declared node wait until all the given nodes have completed. The declared node reads the values of the given
// nodes with [Node.Of].
func Needs(nodes ...AnyNode) NodeOption {
	return nodeOptionFunc(func(o *nodeOptions) { o.needs = append(o.needs, nodes...) })
}

// NeedsAny makes the declared node wait until one of the given nodes has completed; see [NeedsQuorum].
func NeedsAny(others LoserPolicy, nodes ...AnyNode) NodeOption {
	return NeedsQuorum(1, others, nodes...)
}

// NeedsQuorum makes the declared node wait until k of the given nodes have completed. Before the node that has the option NeedsQuorum
// begins, the run records which of the given nodes are the winners, so that every replay has the same winners. The declared node reads the
// winners' values with [Node.Get]. Get returns [ErrNotChosen] for nodes that did not win, even if they complete later.
//
// With [CancelLosers], the nodes that did not win are cancelled, together with their children and with the nodes that only
// losers need. A node that did not win is not cancelled if it is the output node, or if another unfinished node needs it. A
// node that refers to the loser only with [After], or only in choices that the loser has lost, does not count as needing the
// loser. If a node loses several choices, it is therefore cancelled only by the last of these choices. A loser that has not
// begun is over at once. A loser that has begun is over when its calls have returned, and keeps its own result if the choice
// refused none of them: [Engine.Graph] shows the loser as cancelled until then, and as completed or failed afterwards. With
// [KeepLosers] the nodes that did not win continue, and the run waits for them.
//
// A node may have several of the options NeedsAny and NeedsQuorum, in addition to [Needs]. If fewer than k of the given nodes
// can still complete, because the other nodes failed or were skipped, the need is not met; see [OnUnmetNeed]. The argument k
// must be at least 1 and at most the number of given nodes.
func NeedsQuorum(k int, others LoserPolicy, nodes ...AnyNode) NodeOption {
	return nodeOptionFunc(func(o *nodeOptions) {
		if others != KeepLosers && others != CancelLosers {
			o.setFirstError(fmt.Errorf("%w: the LoserPolicy %d is unknown: use KeepLosers or CancelLosers", ErrInvalidConfig, others))
		}
		o.choices = append(o.choices, quorumNeed{k, others, nodes})
	})
}

// After makes the declared node wait until all the given nodes are over, whether they completed, failed, were skipped or were
// cancelled. The declared node reads the values of the given nodes with [Node.Get].
func After(nodes ...AnyNode) NodeOption {
	return nodeOptionFunc(func(o *nodeOptions) { o.after = append(o.after, nodes...) })
}

// When skips the declared node unless condition returns true for the value of n. The declared node needs n as with [Needs]. The
// condition is part of the workflow function, and must be deterministic. The condition is called when all needs of the declared
// node are met. A skip is recorded, so that newer code with another condition does not change the skip. If a node has several
// When options, the node is skipped unless all conditions return true.
func When[T any](n *Node[T], condition func(T) bool) NodeOption {
	return nodeOptionFunc(func(o *nodeOptions) {
		if condition == nil {
			o.setFirstError(fmt.Errorf("%w: When(%q) has no condition", ErrInvalidConfig, n.Name()))
			return
		}
		o.needs = append(o.needs, n)
		o.conditions = append(o.conditions, nodeCondition{n, func(in *NodeInput) bool {
			v, err := n.Get(in)
			return err == nil && condition(v)
		}})
	})
}

// UnmetNeedPolicy determines what happens to a node if one of its needs is not met, because a node failed, was skipped or was cancelled.
type UnmetNeedPolicy string

// The policies of [OnUnmetNeed].
const (
	// SkipNode skips a node with an unmet need: the node never begins, and the nodes that need it have an unmet need too.
	// SkipNode is the default.
	SkipNode UnmetNeedPolicy = ""
	// FailRun fails the run if a need of the node is not met. The run then cancels all nodes that are not over, as it cancels
	// the losers of a choice, and no further node begins. The decision to fail the run is recorded. The run's error is the
	// failure because of which the need was not met, even if the output node has completed.
	FailRun UnmetNeedPolicy = "fail"
	// RunAnyway lets a node begin when all nodes that it needs are over, whether they completed or not. A node with RunAnyway
	// reads the values of the nodes that it needs with [Node.Get].
	RunAnyway UnmetNeedPolicy = "run"
)

// OnUnmetNeed sets what happens to the node if one of its needs is not met. The default is [SkipNode].
func OnUnmetNeed(p UnmetNeedPolicy) NodeOption {
	return nodeOptionFunc(func(o *nodeOptions) {
		o.addOptionOnce(optionUnmetNeed, "OnUnmetNeed")
		o.unmetPolicy = p
		if p != SkipNode && p != FailRun && p != RunAnyway {
			o.setFirstError(fmt.Errorf("%w: OnUnmetNeed(%q): use SkipNode, FailRun or RunAnyway", ErrInvalidConfig, p))
		}
	})
}
