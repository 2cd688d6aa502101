package durable

import (
	"fmt"
	"strings"
)

// toldErrors is how many of many errors the text of joined tells.
const toldErrors = 3

// manyErrors are the errors of a Map's items, or of branches. All of them are found by errors.Is and errors.As; the
// text tells the first few and counts the others, since it is recorded and logged.
type manyErrors struct{ all []error }

// joined returns the errors that are not nil as one; nil if there are none.
func joined(errs []error) error {
	var all []error
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &manyErrors{all}
}

// Error tells the first errors, one in a line, and how many more there are.
func (e *manyErrors) Error() string {
	var text strings.Builder
	for i, err := range e.all {
		if i == toldErrors {
			fmt.Fprintf(&text, "\nand %d more", len(e.all)-i)
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
func (e *manyErrors) Unwrap() []error { return e.all }
