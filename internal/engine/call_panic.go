package engine

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

func panicFailure(value any, stack []byte) *record.Failure {
	f := &record.Failure{Message: "panic: " + PanicText(value), Type: fmt.Sprintf("%T", value), Codes: []string{record.CodePanic}, Stack: string(stack)}
	if err, ok := value.(error); ok && errors.Is(err, ErrOutsideStep) { // a retry would fail in the same way
		f.Codes, f.Permanent = append(f.Codes, record.CodeOutsideStep), true
	}
	return f
}

// PanicText returns the text of the value that was passed to panic. The Error or String method of this value may panic too, for example if
// it is called on a nil pointer. Package fmt recovers from most panics of Error and String methods, and PanicText recovers from the others.
func PanicText(value any) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("a %T, whose text cannot be had", value)
		}
	}()
	if err, ok := value.(error); ok {
		return err.Error()
	}
	return fmt.Sprint(value)
}

func kindMismatchError(r *store.Run, name string, recorded, asked store.StepKind) error {
	return fmt.Errorf("%w: %q in run %q of workflow %q is recorded as a %s, and the code now asks for a %s: give the new call another name, or bring back the old one",
		ErrDiverged, naming.Display(name), r.NameOrUUID(), r.Workflow, recorded, asked)
}
