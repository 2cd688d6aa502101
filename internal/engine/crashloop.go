package engine

import "fmt"

// A run whose process dies, or that is held, Config.MaxCrashes times in a row without a new checkpoint is paused by
// the store, or, with Config.FailCrashed, claimed as any other and failed here. That is an end like
// others, so its children are cancelled, its parent is woken, and a cancel goes first. If the
// process dies on the way, the next claim comes here again. Its function is not called, since that may be what
// kills the process; so what it would undo is not undone.

// pauseAt is how many crashes in a row have the store pause a run. Zero: any number.
func (c *Config) pauseAt() int {
	if c.FailCrashed {
		return 0
	}
	return c.MaxCrashes
}

// isCrashLoop reports whether the run is to fail for its crashes: there is no new checkpoint since.
func (r *run) isCrashLoop() bool {
	cfg := &r.e.cfg
	return cfg.FailCrashed && cfg.MaxCrashes > 0 && int(r.row.Crashes) >= cfg.MaxCrashes && r.recorded <= r.progress
}

// crashFailure is the error of a run that fails for its crashes. If a cancel or a timeout goes first, their error
// says that nothing was undone.
func (r *run) crashFailure() *Failure {
	text := fmt.Sprintf("its process died or lost its lease, or the run was held, %d times in a row without a new checkpoint", r.row.Crashes)
	if r.row.Reason != "" {
		text += " (" + r.row.Reason + ")"
	}
	const skipped = "its compensations were not executed"
	if r.isDoomed() {
		r.undone = append(r.undone, text+": "+skipped)
	}
	return &Failure{Message: text + "; " + skipped, Type: "crash loop", Codes: []string{CodeCrashLoop}}
}
