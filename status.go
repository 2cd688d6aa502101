package durable

// Status is the state of a run.
type Status string

// The states of a run. Completed, failed, cancelled and expired are final.
const (
	StatusPending   Status = "pending"
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusPaused    Status = "paused"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	StatusExpired   Status = "expired" // the run had not begun by its StartBy, or its Timeout was over, or the time of a receive with ElseExpire was over

	// StatusSuperseded is the status of a [Generation] that a repair superseded before its end. No run has the status
	// StatusSuperseded.
	StatusSuperseded Status = "superseded"
)

// liveStatuses are the statuses of runs that have not ended.
var liveStatuses = []Status{StatusPending, StatusRunning, StatusWaiting, StatusPaused}
