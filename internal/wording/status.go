package wording

import "github.com/seed8ec063be/durable"

// Statuses are the statuses that a run can have.
var Statuses = []durable.Status{
	durable.StatusPending, durable.StatusRunning, durable.StatusWaiting, durable.StatusPaused,
	durable.StatusCompleted, durable.StatusFailed, durable.StatusCancelled, durable.StatusExpired,
}

// StatusGroups are words that stand for several statuses.
var StatusGroups = map[string][]durable.Status{"live": Statuses[:4], "ended": Statuses[4:]}
