// Package telemetry defines durable's metrics, its spans and the keys of its log lines. It uses only
// the API of OpenTelemetry, so that it costs almost nothing in a program without an SDK. It logs with
// slog, and an idle engine logs nothing at level Info.
//
// UUIDs and names of runs are attributes of spans and log lines. They are never attributes of metrics, because that would
// create a time series for every run.
package telemetry

// Keys of log lines.
const (
	KeyRun         = "run"
	KeyName        = "name"
	KeyWorkflow    = "workflow"
	KeyStep        = "step"
	KeyAttempt     = "attempt"
	KeyMaxAttempts = "max_attempts"
	KeyCrashes     = "crashes"
	KeyMaxCrashes  = "max_crashes"
	KeyEpoch       = "epoch"
	KeyWorker      = "worker"
	KeyVersion     = "version"
	KeyWorkflows   = "workflows"
	KeySteps       = "steps"
	KeyQueues      = "queues"
	KeyQueue       = "queue"
	KeyPriority    = "priority"
	KeySince       = "since"
	KeyStore       = "store"
	KeyReason      = "reason"
	KeyActor       = "actor"
	KeyError       = "error"
	KeyErrorType   = "error_type"
	KeyStack       = "stack"
	KeyCount       = "count"
	KeyNextAt      = "next_at"
	KeySignals     = "signals"
	KeySource      = "source"
	KeySchedule    = "schedule"
	KeyScheduledAt = "scheduled_at"
	KeyOutcome     = "outcome"
	KeyLimit       = "limit"
	KeyVerb        = "verb" // what an operator has done, or a repair
	KeyGeneration  = "generation"
	KeyGenerations = "generations" // how many
	KeyEvents      = "events"      // how many
)

// Attributes of spans and metrics.
const (
	AttrWorkflow   = "durable.workflow.name"
	AttrStep       = "durable.step.name"
	AttrQueue      = "durable.queue.name"
	AttrLimit      = "durable.limit.name"
	AttrQueueState = "durable.queue.state"
	AttrOutcome    = "durable.outcome"
	AttrErrorType  = "error.type"
	AttrFollowed   = "durable.wait.followed_by"
	AttrSchedule   = "durable.schedule.name"

	// On spans only.
	AttrRunUUID = "durable.run.uuid"
	AttrRunName = "durable.run.name"
	AttrAttempt = "durable.attempt"
	AttrEpoch   = "durable.epoch"
)

// Outcomes of a start.
const (
	StartCreated       = "created"
	StartExisting      = "existing" // the run was started before, with the same input
	StartInTransaction = "in_transaction"
	StartRefused       = "refused"
)

// Values of AttrFollowed: the consequence of a timeout while a run waits for a signal.
const (
	FollowedByError      = "error"      // the receive returns an error
	FollowedByValue      = "value"      // the receive returns a default value
	FollowedByCancel     = "cancel"     // the run is cancelled
	FollowedByExpiry     = "expiry"     // the run expires
	FollowedByEscalation = "escalation" // a function is called, and the run continues to wait
)

// Outcomes of a run's segment in one process.
const (
	OutcomeCompleted = "completed"
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
	OutcomeExpired   = "expired"
	OutcomeParked    = "parked"
	OutcomePaused    = "paused"
	OutcomeReleased  = "released"
	OutcomeLost      = "lost"
	OutcomeHeld      = "held"
	OutcomeRetried   = "retried"   // the run failed, and goes on as its next generation
	OutcomeContinued = "continued" // the run goes on as its next generation
)
