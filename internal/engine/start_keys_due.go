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

// dueStartKeysLoop releases the runs of starts that wait, in this process or in whichever is first. It makes one
// query a poll while there is nothing to do.
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
			w.log.Warn("could not look at the starts that wait; trying again", telemetry.KeyError, err)
		}
		if done < len(due) { // others are at work, or the database does not take it
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

// releaseDueStarts looks at each key, in random order, so that several workers seldom meet. It returns at how many
// it has looked.
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

// maxConsecutiveStartKeyChecks bounds how often one key is looked at in a row: to cancel, and then to release.
const maxConsecutiveStartKeyChecks = 4

// processDueStartKey does what is due for one key: it cancels runs that were replaced, and releases the run that
// waits. It reports whether it saw the row; if not, another process has locked or deleted it.
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

// cancelReplacedRuns cancels runs that a start with the same key has replaced. If the process dies before, the
// row of the key stays due.
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
