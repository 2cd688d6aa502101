package durable_test

import (
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// The Err of what has not failed can be tested as that of what has.
func TestNoFailureIsNoError(t *testing.T) {
	t.Parallel()
	var run durable.RunInfo
	var step durable.Checkpoint
	if errors.Is(run.Err, durable.ErrTimeout) || errors.Is(step.Err, durable.ErrTimeout) {
		t.Error("what has not failed has timed out")
	}
}
