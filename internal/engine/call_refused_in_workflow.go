package engine

import (
	"context"
	"fmt"
)

// CheckOutsideWorkflow returns ErrOutsideStep if a call that writes is made with the context of a workflow function, outside of its steps.
// No checkpoint records such a call, so every replay would repeat the call. The argument call describes the call in words. The argument
// instead names the durable call to use, and is empty if there is none.
func CheckOutsideWorkflow(ctx context.Context, call, instead string) error {
	s, workflow := ctx.Value(ScopeContextKey{}).(*Scope)
	if !workflow || s.isInsideCall() {
		return nil
	}
	if instead != "" {
		instead = "use " + instead + ", or "
	}
	return fmt.Errorf("%w: %s with the Ctx of run %q of workflow %q is not recorded, and every replay would make it again: %smake the call in a step, with the context that its function gets",
		ErrOutsideStep, call, s.RunNameOrUUID(), s.Workflow(), instead)
}
