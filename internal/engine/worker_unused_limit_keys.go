package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

const (
	// unusedLimitKeyAge is how long a limit key must have been unused before it is deleted.
	unusedLimitKeyAge = 24 * time.Hour
	// unusedLimitKeysInterval is the mean time between two deletions by a worker. The first deletion comes sooner, so that a process
	// that lives only for an hour also deletes.
	unusedLimitKeysInterval   = time.Hour
	firstUnusedLimitKeysDelay = 10 * time.Minute
	unusedLimitKeysPerCall    = 500
	unusedLimitKeysPause      = 100 * time.Millisecond // between two calls
	unusedLimitKeysTimeout    = 10 * time.Second       // of one call
)

// unusedLimitKeysLoop deletes the rows of limit keys that are no longer used. There is a row for each key that was ever used with a limit,
// and a key may be the ID of an order.
func (w *worker) unusedLimitKeysLoop(ctx context.Context) {
	for wait := rand.N(firstUnusedLimitKeysDelay); wakeup.SleepCtx(ctx, wait); wait = unusedLimitKeysInterval/2 + rand.N(unusedLimitKeysInterval) {
		deleted, err := w.deleteUnusedLimitKeys(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("could not delete unused limit keys; trying again later", telemetry.KeyError, err)
		}
		if deleted > 0 {
			w.log.Info("deleted unused limit keys", telemetry.KeyCount, deleted)
		}
	}
}

// deleteUnusedLimitKeys reads the rows of all limit keys and deletes the unused ones.
func (w *worker) deleteUnusedLimitKeys(ctx context.Context) (deleted int, err error) {
	now := w.e.clock.Now()
	q := store.DeleteUnusedLimitKeysRequest{UsedBefore: now.Add(-unusedLimitKeyAge), Now: now, Limit: unusedLimitKeysPerCall}
	for {
		limitKeys, err := w.deleteUnusedLimitKeysPage(ctx, q)
		deleted += limitKeys.Deleted
		q.After = limitKeys.Next
		if err != nil || q.After == (store.LimitKey{}) || !wakeup.SleepCtx(ctx, unusedLimitKeysPause) {
			return deleted, err
		}
	}
}

func (w *worker) deleteUnusedLimitKeysPage(ctx context.Context, q store.DeleteUnusedLimitKeysRequest) (store.DeleteUnusedLimitKeysResult, error) {
	ctx, cancel := context.WithTimeout(ctx, unusedLimitKeysTimeout)
	defer cancel()
	return w.e.store.DeleteUnusedLimitKeys(ctx, q)
}
