package fleet

import (
	"fmt"

	"github.com/seed8ec063be/durable"
)

// JudgeRun reports whether the run has ended or was paused, and returns an error unless it has
// completed.
func JudgeRun(run *durable.RunInfo) (ended bool, err error) {
	switch run.Status {
	case durable.StatusCompleted:
		return true, nil
	case durable.StatusFailed, durable.StatusCancelled, durable.StatusExpired:
		return true, run.Err
	case durable.StatusPaused:
		return true, fmt.Errorf("the run was paused: %s", run.Reason)
	}
	return false, nil
}
