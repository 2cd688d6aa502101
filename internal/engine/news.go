package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// bell is rung to have something looked at; ringing it twice before that is once.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) poke() {
	select {
	case b <- struct{}{}:
	default:
	}
}

const firstDeaf = 20 * time.Millisecond // until the next try when news could not be read

// newsLoop reads what was asked of the runs in memory, and which of them were woken, when a
// hint or a renewal says that there may be something. The fence of each flush tells
// the first of these as well.
func (w *worker) newsLoop(ctx context.Context) {
	wait := firstDeaf
	for {
		select {
		case <-w.news:
		case <-ctx.Done():
			return
		}
		runs := w.snapshot()
		if len(runs) == 0 {
			continue
		}
		if err := w.hear(ctx, runs); err != nil {
			w.log.Warn("could not read what was asked of the runs here; trying again", telemetry.KeyError, err)
			if !pause(ctx, wait) {
				return
			}
			wait = min(2*wait, w.e.cfg.Lease/3)
			w.news.poke()
			continue
		}
		wait = firstDeaf
	}
}

// hear tells the runs their news; all of them that they were woken, if an answer may have
// been lost. No run parks between the question and the answer: the database would not
// know any more that it was woken, and the run not yet.
func (w *worker) hear(ctx context.Context, runs []*run) error {
	w.hearing.Lock()
	defer w.hearing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.e.cfg.Lease/3)
	defer cancel()
	held := make([]store.Lease, len(runs))
	here := make(map[uuid.UUID]*run, len(runs))
	due := make([]bool, len(runs))
	for i, r := range runs {
		due[i] = r.deadlineCame.Load()
		held[i] = store.Lease{Run: r.row.ID, Epoch: r.row.Epoch, Deadline: r.expiry()}
		here[r.row.ID] = r
	}
	news, err := w.e.store.Notifications(ctx, w.id, held)
	if err != nil {
		for _, r := range runs {
			r.wake()
		}
		return err
	}
	for _, l := range news.Ended {
		if r := here[l.Run]; r != nil && r.row.Epoch == l.Epoch {
			r.terminate()
		}
	}
	for _, l := range news.Deadlines {
		if r := here[l.Run]; r != nil && r.row.Epoch == l.Epoch {
			r.setDeadline(l.Deadline)
		}
	}
	for i, r := range runs {
		if due[i] {
			r.expire()
		}
	}
	for _, a := range news.Requests {
		if r := here[a.Run]; r != nil && r.row.Epoch == a.Epoch {
			r.asked(a.Control)
		}
	}
	for _, id := range news.Woken {
		if r := here[id]; r != nil {
			r.wake()
		}
	}
	if len(news.Woken) > 0 {
		w.e.waiters.fresh.poke()
	}
	return nil
}

// wake has the run's waits look again. It may leave before they have; then it is
// claimable at once, since the database has told of this and will not again.
func (r *run) wake() {
	r.stirred.Store(true)
	r.inbox.wake()
}
