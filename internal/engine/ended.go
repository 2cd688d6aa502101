package engine

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// terminate is the suspension of a run that was ended by a termination: all its contexts end,
// and nothing is written any more.
func (r *run) terminate() {
	if r.ending.Load() {
		return // it has ended by itself
	}
	r.suspend(suspension{cause: ErrTerminated, status: store.Cancelled})
	r.endHard(ErrTerminated)
}

// fenced leaves a run whose write did not take: it was terminated, or lost.
func (r *run) fenced(state store.RunState) {
	if state.Found && state.Status == store.Cancelled && state.Epoch == r.row.Epoch {
		r.terminate()
		return
	}
	r.lose()
}

// lost leaves runs whose leases were not renewed. Which of them were terminated is asked; where that
// cannot be known, the lease is what was lost.
func (w *worker) lost(ctx context.Context, runs []*run) {
	if len(runs) == 0 {
		return
	}
	held := make([]store.Lease, len(runs))
	for i, r := range runs {
		held[i] = store.Lease{Run: r.row.ID, Epoch: r.row.Epoch, Deadline: r.expiry()}
	}
	news, err := w.e.store.Notifications(ctx, w.id, held)
	if err != nil {
		w.log.Warn("could not read why leases were lost", telemetry.KeyError, err)
	}
	ended := make(map[store.ID]bool, len(news.Ended))
	for _, l := range news.Ended {
		ended[l.Run] = true
	}
	for _, r := range runs {
		if ended[r.row.ID] {
			r.terminate()
		} else {
			r.lose()
		}
	}
}
