package engine

import (
	"context"

	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A claim brings histories that are small. The rest of a longer one is read in parts before the run's
// function is called, under the lease, which is renewed meanwhile as for any run in memory: so a
// history may take longer to read than a claim, or a lease, lasts.
const (
	partBytes   = 1 << 20 // read at a time
	restsAtOnce = 2       // histories, so that connections are left to everything else
)

// readRest reads the rest of the history, and reports false if the run leaves before that is done.
func (r *run) readRest() bool {
	ctx, cancel := context.WithCancel(r.hard) // not r.ctx: a run that is to be cancelled is executed once more
	defer cancel()
	defer context.AfterFunc(r.ctx, func() {
		if r.gone() {
			cancel()
		}
	})()
	select {
	case r.w.rests <- struct{}{}:
		defer func() { <-r.w.rests }()
	case <-ctx.Done():
	}
	for wait := firstWait; r.rest.More; {
		if r.gone() || ctx.Err() != nil {
			return false
		}
		steps, rest, err := r.e.store.HistoryFrom(ctx, r.row.ID, r.rest.From, partBytes)
		if err != nil {
			if ctx.Err() == nil {
				r.logger().Warn("could not read the history of a run; trying again", telemetry.KeyError, err)
			}
			if !pause(ctx, wait) {
				return false
			}
			wait = min(2*wait, longWait)
			continue
		}
		wait = firstWait
		r.remember(steps)
		r.rest = rest
	}
	r.losersOf()
	r.live.Store(r.recorded == 0)
	return true
}
