package engine

import (
	"cmp"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
)

// maxFailureTypeBytes bounds the type of a failure in the key of its group, in bytes, because the names of types with type parameters can be long.
const maxFailureTypeBytes = 256

// failureGroupKey returns the step and the type in the FailureKey of the run. The keys of the items of Maps are replaced by a star,
// so that the failures of all items are one group.
func (r *run) failureGroupKey(f *record.Failure) (step, errorType string) {
	errorType = cmp.Or(f.CauseType, f.Type)
	if errorType == "" && len(f.Codes) > 0 {
		errorType = f.Codes[0]
	}
	if len(errorType) > maxFailureTypeBytes {
		errorType = errorType[:maxFailureTypeBytes]
	}
	parts := strings.Split(naming.ParseDisplay(f.Step), naming.Separator)
	shown := parts[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	full := parts[0]
	for _, part := range parts[1:] {
		_, isItem := r.openedMaps[full]
		full += naming.Separator + part
		if isItem {
			part = "*"
		}
		shown += naming.Separator + part
	}
	return naming.Display(record.StorableText(shown)), record.StorableText(cmp.Or(errorType, "unknown"))
}
