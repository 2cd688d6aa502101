package engine

import (
	"context"
	"fmt"
)

// OutsideWorkflow returns ErrOutsideStep for a call, in words, that writes and is made with the context of a workflow
// function outside of its steps: nothing records that it was made, so that every replay makes it again. instead is
// the durable call to make, if there is one.
func OutsideWorkflow(ctx context.Context, call, instead string) error {
	s, workflow := ctx.Value(WorkflowKey{}).(*Scope)
	if !workflow || s.nested() {
		return nil
	}
	if instead != "" {
		instead = "use " + instead + ", or "
	}
	return fmt.Errorf("%w: %s with the Ctx of run %q of workflow %q is not recorded, and every replay would make it again: %smake the call in a step, with the context that its function gets",
		ErrOutsideStep, call, s.ID(), s.Workflow(), instead)
}
