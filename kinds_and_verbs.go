package durable

// Kind tells which durable call a checkpoint records, such as a step, a sleep or a child.
type Kind string

// The kinds of durable calls.
const (
	KindStep         Kind = "step"         // [Ctx.Step], [Ctx.Do], an item of [Ctx.Map]
	KindTx           Kind = "tx"           // the Tx of a store
	KindSleep        Kind = "sleep"        // [Ctx.Sleep], [Ctx.SleepUntil]
	KindChoice       Kind = "choice"       // [Any], [Quorum], [AllOrCancel]
	KindReceive      Kind = "receive"      // [Ctx.Receive], [Callback.Wait]
	KindChild        Kind = "child"        // [Ctx.Child], [Ctx.StartChild]
	KindMap          Kind = "map"          // [Ctx.Map]: the number of its items
	KindCompensation Kind = "compensation" // the execution of a compensation that [Ctx.Compensate] registered
	KindSignal       Kind = "signal"       // [Ctx.Signal], [Child.Signal]
	KindStart        Kind = "start"        // [Ctx.Start]
	KindTags         Kind = "tags"         // [Ctx.SetTags]
	KindCancel       Kind = "cancel"       // [Child.Cancel]
	KindNow          Kind = "now"          // [Ctx.Now]
	KindUUID         Kind = "uuid"         // [Ctx.UUID]
	KindPatch        Kind = "patch"        // [Ctx.Patched]
	KindFailure      Kind = "failure"      // the failure with which a run that has compensations ends; not a durable call
	KindKeyRenewal   Kind = "renewal"      // which steps got new idempotency keys in a repair; not a durable call
	KindGraph        Kind = "graph"        // the shape of a graph of [DefineGraph], or the skip of a node by its condition
)

// CheckpointStatus is the state of a durable call.
type CheckpointStatus string

// The states of a durable call.
const (
	CheckpointStarted   CheckpointStatus = "started"   // an attempt is under way, or the call waits; a sleep has this status until it is over
	CheckpointBackoff   CheckpointStatus = "backoff"   // the last attempt failed, and the next attempt is due at NextAt
	CheckpointCompleted CheckpointStatus = "completed" // the call has a result
	CheckpointFailed    CheckpointStatus = "failed"    // the call failed for good
	CheckpointCancelled CheckpointStatus = "cancelled" // the run or the branch of the call ended before the call had an outcome
)

// Verb names an operation on a run, a queue, a limit or a schedule, such as pause or cancel.
type Verb string

// The verbs.
const (
	VerbPause      Verb = "pause"
	VerbResume     Verb = "resume"
	VerbCancel     Verb = "cancel"
	VerbTerminate  Verb = "terminate"
	VerbSignal     Verb = "signal"
	VerbSetTimeout Verb = "set the timeout of"
	// VerbMove is the operation of Engine.MoveToQueue, and VerbSetPriority is the operation of Engine.SetPriority.
	VerbMove        Verb = "move"
	VerbSetPriority Verb = "set the priority of"
	// VerbQuiet is an operation on workers, and VerbSet, VerbReset and VerbDelete are operations on queues, limits and schedules; see OperatorChange.
	VerbQuiet  Verb = "quiet"
	VerbSet    Verb = "set"
	VerbReset  Verb = "reset"
	VerbDelete Verb = "delete"

	// VerbRetry to VerbFork are the operations of Engine.Retry, Engine.Override, Engine.Skip, Engine.Rerun and Engine.Fork.
	VerbRetry    Verb = "retry"
	VerbOverride Verb = "override"
	VerbSkip     Verb = "skip"
	VerbRerun    Verb = "rerun"
	VerbFork     Verb = "fork"

	VerbContinue Verb = "continue" // the operation of Ctx.ContinueAsNew
)
