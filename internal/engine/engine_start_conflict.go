package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// startConflictError returns nil if the existing run found comes from the same start as asked, and an ErrIDConflict if it comes from
// another start with the same name. A run that has continued as new is compared by the input with which it was started.
func (e *Engine) startConflictError(ctx context.Context, asked, found *store.Run) error {
	if err := payload.Problem(found.Input); err != nil && asked.Workflow == found.Workflow {
		return fmt.Errorf("start run %q: it exists, and its input cannot be compared: %w", asked.Name, err)
	}
	var first []byte
	if asked.Workflow == found.Workflow && found.Epoch.Count > 1 {
		var err error
		if first, err = e.store.FirstInputHash(ctx, found.UUID); err != nil {
			return fmt.Errorf("start run %q: read the input with which it was started before: %w", asked.Name, err)
		}
	}
	switch sum := sha256.Sum256(asked.Input); {
	case first != nil && slices.Equal(first, sum[:]):
		return nil
	case first != nil:
		return fmt.Errorf("%w: run %q of workflow %q was started with another input, and has continued as new since: use another ID, or the input of its first generation",
			ErrIDConflict, asked.Name, asked.Workflow)
	case asked.Workflow != found.Workflow:
		return fmt.Errorf("%w: run %q is of workflow %q, and was asked for again as %q: use another ID",
			ErrIDConflict, asked.Name, found.Workflow, asked.Workflow)
	case string(asked.Input) != string(found.Input):
		return fmt.Errorf("%w: run %q of workflow %q exists with another input (%d bytes, now %d, different from byte %d on): use another ID, or the same input",
			ErrIDConflict, asked.Name, asked.Workflow, len(found.Input), len(asked.Input), firstDifference(found.Input, asked.Input))
	}
	return nil
}

// firstDifference returns the offset, from 0, of the first byte at which two texts differ.
func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
