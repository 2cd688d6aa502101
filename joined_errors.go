package durable

import (
	"fmt"
	"strings"
)

// maxShownErrors is the number of errors whose texts are in the text of a joinedErrors.
const maxShownErrors = 3

// joinedErrors wraps the errors of a Map's items, or of branches. errors.Is and errors.As find all of them. The text holds only the
// first maxShownErrors texts and the number of the others, because it is recorded and logged.
type joinedErrors struct{ errs []error }

// joinErrors returns an error that wraps the errors that are not nil, or nil if all are nil.
func joinErrors(errs []error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &joinedErrors{all}
}

// Error returns the texts of the first errors, one per line, and the number of the others.
func (e *joinedErrors) Error() string {
	var text strings.Builder
	for i, err := range e.errs {
		if i == maxShownErrors {
			fmt.Fprintf(&text, "\nand %d more", len(e.errs)-i)
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(err.Error())
	}
	return text.String()
}

// Unwrap returns all errors.
func (e *joinedErrors) Unwrap() []error { return e.errs }
