package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const (
	// unusedLineAge is for how long nobody has used a line of a limit that is deleted.
	unusedLineAge = 24 * time.Hour
	// unusedLinesInterval is the mean time between two deletions by a worker. The first one follows sooner, so that a process which
	// lives for an hour deletes too.
	unusedLinesInterval   = time.Hour
	firstUnusedLinesDelay = 10 * time.Minute
	unusedLinesPerCall    = 500
	unusedLinesPause      = 100 * time.Millisecond // between two calls
)

// unusedLinesLoop deletes the lines of limits that nobody uses any more. There is one for each key that was ever used with a limit, and
// a key may be an order.
func (w *worker) unusedLinesLoop(ctx context.Context) {
	for wait := rand.N(firstUnusedLinesDelay); sleepCtx(ctx, wait); wait = unusedLinesInterval/2 + rand.N(unusedLinesInterval) {
		deleted, err := w.deleteUnusedLines(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("could not delete lines of limits that nobody uses; trying again later", telemetry.KeyError, err)
		}
		if deleted > 0 {
			w.log.Info("deleted lines of limits that nobody uses", telemetry.KeyCount, deleted)
		}
	}
}

// deleteUnusedLines reads all lines and deletes those that are not used.
func (w *worker) deleteUnusedLines(ctx context.Context) (deleted int, err error) {
	now := w.e.clock.Now()
	q := store.UnusedLinesQuery{UsedBefore: now.Add(-unusedLineAge), Now: now, Limit: unusedLinesPerCall}
	for {
		lines, err := w.deleteSomeUnusedLines(ctx, q)
		deleted += lines.Deleted
		q.After = lines.Next
		if err != nil || q.After == (store.PermitLineKey{}) || !sleepCtx(ctx, unusedLinesPause) {
			return deleted, err
		}
	}
}

func (w *worker) deleteSomeUnusedLines(ctx context.Context, q store.UnusedLinesQuery) (store.UnusedLines, error) {
	ctx, cancel := context.WithTimeout(ctx, permitTimeout)
	defer cancel()
	return w.e.store.DeleteUnusedLines(ctx, q)
}
