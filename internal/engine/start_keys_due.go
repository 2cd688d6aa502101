package engine

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// startKeysPerQuery is how many keys one query returns.
const startKeysPerQuery = 100

// startKeyActor is the actor of the cancels that starts cause.
const startKeyActor = "durable"

// dueStartKeysLoop releases the runs of debounced and throttled starts when they are due. Every worker does this, and the first one
// releases the run. While nothing is due, the loop makes one query for each poll.
func (w *worker) dueStartKeysLoop(ctx context.Context) {
	failed := firstClaimRetryDelay
	for ctx.Err() == nil {
		due, next, err := w.e.store.DueStartKeys(ctx, w.e.clock.Now(), startKeysPerQuery)
		done := 0
		if err == nil {
			done, err = w.releaseDueStarts(ctx, due)
		}
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			w.stopIfFatal(err)
			w.logFailure("could not look at the starts that wait; trying again", err)
		}
		if done < len(due) { // other workers check these keys, or the database rejects the writes
			if !wakeup.SleepCtx(ctx, failed/2+rand.N(failed)) {
				return
			}
			failed = min(2*failed, maxClaimRetryDelay)
			continue
		}
		failed = firstClaimRetryDelay
		if len(due) > 0 {
			continue
		}
		w.awaitNotificationOrDue(ctx, w.startKeyHints, w.otherWorkers.PollInterval(w.e.cfg.Poll), next)
	}
}

// releaseDueStarts processes each due key. The order is random, so that several workers seldom process the same key at the same time.
// It returns how many keys it has processed.
func (w *worker) releaseDueStarts(ctx context.Context, due []store.StartKey) (done int, err error) {
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, key := range due {
		if ctx.Err() != nil {
			return done, nil
		}
		looked, failed := w.e.processDueStartKey(ctx, key)
		if failed != nil {
			err = fmt.Errorf("key %q of workflow %q: %w", key.Key, key.Workflow, failed)
		} else if looked {
			done++
		}
	}
	return done, err
}

// maxConsecutiveStartKeyChecks bounds how often one key is processed in a row: a first time to cancel the replaced run, for example,
// and then to release the waiting run.
const maxConsecutiveStartKeyChecks = 4

// processDueStartKey does what is due for one key: it cancels runs that were replaced, and releases the run that
// waits. It reports whether it has read the row. If it has not, another process has locked or deleted the row.
func (e *Engine) processDueStartKey(ctx context.Context, key store.StartKey) (looked bool, err error) {
	rows, _ := e.queueRows.ReadRowsIfStale(ctx)
	gated := func(queue string) bool {
		row, found := rows[queue]
		return found && !row.Deleted
	}
	for range maxConsecutiveStartKeyChecks {
		l := &startkey.Check{Key: key, Now: e.clock.Now(), NeedsPlace: gated}
		seen := false
		change := l.ChangeRequest(true)
		plan := change.Plan
		change.Plan = func(at store.StartKeySnapshot) *store.StartKeyWrite {
			seen = true
			return plan(at)
		}
		if err := e.store.UpdateStartKeyRow(ctx, change); err != nil {
			return seen, err
		}
		if l.Err != nil {
			return seen, l.Err
		}
		if l.Released != uuid.Nil {
			e.telemetry.Log.Debug("a start that waited has begun", telemetry.KeyRun, l.Released, telemetry.KeyWorkflow, key.Workflow)
			e.worker().wakeLoops()
		}
		if len(l.Cancels) == 0 {
			return seen, nil
		}
		looked = seen
		if err := e.cancelReplacedRuns(ctx, key, l.Cancels); err != nil {
			return looked, err
		}
	}
	return looked, nil
}

// cancelReplacedRuns cancels runs that a start with the same key has replaced. If the process dies before that, the row of the key
// stays due.
func (e *Engine) cancelReplacedRuns(ctx context.Context, key store.StartKey, runs []uuid.UUID) error {
	o := &store.ControlRequest{
		Verb: store.VerbCancel, Scope: store.CancelWholeTree, Runs: runs, Actor: startKeyActor,
		Reason: fmt.Sprintf("a newer start with the key %.100q replaces it", key.Key),
	}
	o.Now, o.Error = e.clock.Now(), record.Cancelled(o.Reason, o.Actor).Encode()
	if err := e.store.ControlRuns(ctx, o); err != nil {
		return err
	}
	e.logCancelledRuns(o)
	e.worker().wakeLoops()
	return nil
}
