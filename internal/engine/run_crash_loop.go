package engine

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/record"
)

// A run may crash Config.MaxCrashes times in a row without a new checkpoint: its process dies, or the run is held. The start of a child
// counts as a new checkpoint, and so does its recorded end; see store.Step.Progress. The store then pauses the run. With
// Config.FailAtMaxCrashes, the store does not pause the run: a worker claims it like any other run, and the run fails here. As at any
// failure, the run's children are cancelled and its parent is woken, and a requested cancel has precedence over the failure. If the process
// dies before the end is written, the worker that claims the run next writes it. The workflow function is not called, because it may be
// what kills the process. So no compensations are registered, and none are executed.

// crashesBeforePause returns after how many crashes in a row the store pauses a run. Zero means never.
func (c *Config) crashesBeforePause() int {
	if c.FailAtMaxCrashes {
		return 0
	}
	return c.MaxCrashes
}

// isCrashLoop reports whether the run must fail because it crashed too often without a new checkpoint.
func (r *run) isCrashLoop() bool {
	cfg := &r.e.cfg
	return cfg.FailAtMaxCrashes && cfg.MaxCrashes > 0 && int(r.row.Crashes) >= cfg.MaxCrashes && r.progress <= r.progressAtCrash
}

// crashLoopFailure returns the error of a run that fails because of its crashes. If a cancel or a timeout has
// precedence, crashLoopFailure adds to that error that no compensation was executed.
func (r *run) crashLoopFailure() *record.Failure {
	text := fmt.Sprintf("its process died or lost its lease, or the run was held, %d times in a row without a new checkpoint", r.row.Crashes)
	if r.row.PauseOrHoldReason != "" {
		text += " (" + r.row.PauseOrHoldReason + ")"
	}
	const skipped = "its compensations were not executed"
	if r.isForcedToEnd() {
		r.compensations.failureTexts = append(r.compensations.failureTexts, text+": "+skipped)
	}
	return &record.Failure{Message: text + "; " + skipped, Type: "crash loop", Codes: []string{record.CodeCrashLoop}}
}
