package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Pinned is an option of [Define]. Only workers of the version that started a run execute it (see Config.Version), while one of
// them lives, and for the grace period after the last of them was seen. Then workers of other versions execute it. Use it for
// workflows whose runs are short, so that each run ends with the code with which it began; keep the old version running until they
// have ended. Grace is at least 30 s; a smaller one, such as zero, counts as that.
//
// A run that a program without such a version has started belongs to the version that claims it first. Each worker follows the
// option in its own code.
func Pinned(grace time.Duration) WorkflowOption {
	return func(o *workflowOptions) {
		o.addOption(optionPinned, "Pinned")
		if o.pinned, o.pinnedGrace = true, grace; grace < 0 {
			o.fail(fmt.Errorf("%w: Pinned(%v): the grace period must not be negative", ErrInvalidConfig, grace))
		}
	}
}

// VersionWait describes why a due run waits for a worker although live workers execute its workflow: all of these workers have
// versions that may not execute the run yet, because it belongs to a later version, or is [Pinned] to another one. See
// Config.Version.
type VersionWait struct {
	Version string    // the version that started or executed the run
	Until   time.Time // when other workers take it, unless a worker of such a version reports again
}

// readVersionWait returns the VersionWait of a run, or nil.
func (e *Engine) readVersionWait(ctx context.Context, r *store.Run, now time.Time) (*VersionWait, error) {
	w, err := e.inner.VersionWaitReason(ctx, r, now)
	if w == nil || err != nil {
		return nil, err
	}
	return &VersionWait{Version: w.Version, Until: w.Until}, nil
}
