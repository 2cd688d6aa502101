package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable"
)

// The field Err of a run or checkpoint that has not failed can be used with errors.Is, as that of a failed one.
func TestNoFailureIsNoError(t *testing.T) {
	t.Parallel()
	var run durable.RunInfo
	var step durable.Checkpoint
	if errors.Is(run.Err, durable.ErrTimeout) || errors.Is(step.Err, durable.ErrTimeout) {
		t.Error("what has not failed has timed out")
	}
}

// If the function of a step returns an error of this library, errors.Is finds it in the recorded error of the step.
func TestSentinelsAreRecorded(t *testing.T) {
	for _, sentinel := range []error{
		durable.ErrCancelled, durable.ErrTimeout, durable.ErrPanic, durable.ErrGoexit, durable.ErrOutcomeUnknown, durable.ErrCompensation,
		durable.ErrDuplicateStep, durable.ErrNestedStep, durable.ErrDiverged, durable.ErrIDConflict, durable.ErrNotFound, durable.ErrState,
		durable.ErrInvalidCursor, durable.ErrNotRegistered, durable.ErrInvalidName, durable.ErrInvalidConfig, durable.ErrNotEncodable,
		durable.ErrPayloadTooLarge, durable.ErrUnavailable, durable.ErrNotReady, durable.ErrClosed, durable.ErrSchema, durable.ErrRefused, durable.ErrLocked, durable.ErrRejected,
		durable.ErrPermission,
		durable.ErrRunning, context.Canceled, context.DeadlineExceeded,
	} {
		_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("calls out", func(context.Context) error { return fmt.Errorf("called out: %w", sentinel) })
		})
		if !errors.Is(err, sentinel) {
			t.Errorf("%q is lost in %v", sentinel, err)
		}
	}
}

// The error of a step contains the step's name with its scope.
func TestStepErrorsNameTheirScope(t *testing.T) {
	for want, fn := range map[string]func(*durable.Ctx, int) (int, error){
		"prices/7": func(c *durable.Ctx, _ int) (int, error) {
			_, err := c.Map("prices", []int{7}, func(context.Context, int) (int, error) { return 0, errDeclined }, durable.Key(func(i int) string { return fmt.Sprint(i) }))
			return 0, err
		},
		"branch/answer": func(c *durable.Ctx, _ int) (int, error) {
			return c.Go("branch", func(c *durable.Ctx) (int, error) { return c.Receive[int]("answer", durable.Within(0)) }).Wait()
		},
		"outer/inner": func(c *durable.Ctx, _ int) (int, error) {
			return c.Go("outer", func(c *durable.Ctx) (int, error) {
				return c.Go("inner", func(*durable.Ctx) (int, error) { panic("boom") }).Wait()
			}).Wait()
		},
	} {
		_, err := durableCall(t, 0, fn)
		var run *durable.RunError
		if !errors.As(err, &run) || run.Step != want {
			t.Errorf("got %+v, want a failure of step %q", err, want)
		}
	}
}
