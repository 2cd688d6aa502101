package engine

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
)

// DescribeStatus returns the status of the run as words that complete a sentence such as "the run is ...". If the run is paused or held,
// DescribeStatus also returns who paused the run, and why: `paused by "ann" (stock is counted)`.
func DescribeStatus(r *store.Run) string {
	text := r.Status.String()
	switch {
	case IsHeldForDrift(r):
		text = "held"
	case r.Status == store.Paused && r.PausedBy != "":
		text += fmt.Sprintf(" by %q", r.PausedBy)
	case r.Status == store.Pending && r.PauseOrHoldReason != "":
		text += " and held"
	case r.Status == store.Running && r.PauseOrHoldReason != "":
		text += " and was held before"
	}
	if r.PauseOrHoldReason != "" {
		text += " (" + r.PauseOrHoldReason + ")"
	}
	return text
}

// IsHeldForDrift reports whether the run is paused for no other reason than that the code does not match the run's history.
func IsHeldForDrift(r *store.Run) bool {
	return r.Status == store.Paused && r.Control&store.HeldForDrift != 0 && r.Control&store.PausedMask == 0
}

// describeHowToContinue returns, as the end of a sentence, how a run that is paused or held can continue. It is empty for other runs.
func describeHowToContinue(r *store.Run) string {
	switch {
	case IsHeldForDrift(r):
		return " until a worker whose code fits its history executes it"
	case r.Status == store.Paused && r.Control&store.PausedForRepair != 0:
		return " and continues after its repair"
	case r.Status == store.Paused && r.Control&store.PausedMask == store.PausedByAncestor:
		return " and continues after Engine.Resume of the ancestor that was paused"
	case r.Status == store.Paused:
		return " and continues after Engine.Resume"
	case r.Status == store.Pending && r.PauseOrHoldReason != "":
		return " and is tried again by itself"
	}
	return ""
}
