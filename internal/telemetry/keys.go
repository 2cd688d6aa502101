// Package telemetry names what durable tells about itself: the keys of its log
// lines, its metrics and its spans. It uses OpenTelemetry's API only, so that a
// program without an SDK pays next to nothing, and slog, silent at Info while idle.
//
// IDs are attributes of spans and log lines, never of metrics: they would make a
// series per run.
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
)

// Attributes of spans and metrics.
const (
	AttrWorkflow  = "durable.workflow.name"
	AttrStep      = "durable.step.name"
	AttrQueue     = "durable.queue.name"
	AttrOutcome   = "durable.outcome"
	AttrErrorType = "error.type"
	AttrFollowed  = "durable.wait.followed_by"

	// On spans only.
	AttrRunID   = "durable.run.id"
	AttrRunName = "durable.run.name"
	AttrAttempt = "durable.attempt"
	AttrEpoch   = "durable.epoch"
)

// Outcomes of a start.
const (
	StartCreated       = "created"
	StartExisting      = "existing" // the same start was made before
	StartInTransaction = "in_transaction"
	StartRefused       = "refused"
)

// What follows a wait whose time was over.
const (
	FollowedByError      = "error" // the receive fails
	FollowedByValue      = "value" // it goes on with one
	FollowedByCancel     = "cancel"
	FollowedByExpiry     = "expiry"
	FollowedByEscalation = "escalation" // and the wait goes on
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
)
