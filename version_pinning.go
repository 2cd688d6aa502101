package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Pinned is an option of [Define]. Only workers of one version (see Config.Version) execute a pinned run, as long as such a
// worker lives, and for the grace period after the last of them was seen. After the grace period, a worker of any version may
// claim the run, and the run is then pinned to the version of this worker. Use Pinned for workflows whose runs are short, so
// that each run ends with the code with which it began. With Pinned, keep workers of the old version running until its runs
// have ended. The grace period is at least 30 s; a smaller value of grace, such as zero, counts as 30 s.
//
// A run is pinned to the version of the program that started it if workers of that version execute the workflow. If no worker of that
// version executes the workflow, for example because a client with a version of its own started the run, the run is pinned to the version
// of the worker that claims it first. [RunInfo].Version is the version to which a run is pinned. Each worker applies the option Pinned of
// its own code, and not of the code that started the run. A worker without an ordered version does not change the version of a run.
func Pinned(grace time.Duration) WorkflowOption {
	return func(o *workflowOptions) {
		o.addOptionOnce(optionPinned, "Pinned")
		if o.pinned, o.pinnedGrace = true, grace; grace < 0 {
			o.setFirstError(fmt.Errorf("%w: Pinned(%v): the grace period must not be negative", ErrInvalidConfig, grace))
		}
	}
}

// VersionWait describes why a due run waits although live workers execute the run's workflow. All live workers of the workflow
// have versions that may not execute the run yet, because the run belongs to a later version, is [Pinned] to another version, or
// does not fit their code. See Config.Version.
type VersionWait struct {
	Version  string    // the version that started or executed the run
	Diverged []string  // the versions whose code does not fit the run, and which do not execute the run before Until; see [Engine.Divergences]
	Until    time.Time // when workers of other versions execute the run, unless a worker of a permitted version sends a heartbeat before that time
}

// readVersionWait returns the VersionWait of a run, or nil.
func (e *Engine) readVersionWait(ctx context.Context, r *store.Run, now time.Time) (*VersionWait, error) {
	w, err := e.inner.VersionWait(ctx, r, now)
	if w == nil || err != nil {
		return nil, err
	}
	return &VersionWait{Version: w.RunVersion, Diverged: w.Diverged, Until: w.Until}, nil
}
