package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// changedRowCounts holds the number of rows that each section changed.
type changedRowCounts struct{ starts, newSteps, existingSteps, signals, runs int64 }

// If a start becomes due later than maxStartDelayToNotify after its creation, its commit sends no notification, because
// workers poll before that. Transactions that notify have to commit one after the other.
const maxStartDelayToNotify = time.Minute

// maxStartTries bounds the tries of a start whose parent was paused when the start was written, but resumed when the parent was read
// back.
const maxStartTries = 5

// Commit implements store.Store. Without conflicts it takes one round trip, and the row counts of the
// command tags confirm all writes. Otherwise a second round trip, with a new snapshot, reads the rows
// back.
func (s *database) Commit(ctx context.Context, b *store.Batch) (err error) {
	if b.Len() == 0 {
		return nil
	}
	ctx, done := s.hosts.boundFlushDuration(ctx)
	defer func() { done(&err) }()
	whole, era := b, s.rewindDetector.rewindCount.Load()
	for try := 1; ; try++ {
		left, err := s.commitOnce(ctx, b)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return s.rewindDetector.recordAcknowledgedBatch(era, whole)
		}
		if try == maxStartTries {
			return startConflictGoneError(left[0])
		}
		b = newBatchWithStartMarkers(b, left)
	}
}

// newBatchWithStartMarkers returns a batch of the given starts and of their markers in the parents' histories. A start
// and its marker are written together or not at all.
func newBatchWithStartMarkers(b *store.Batch, starts []*store.StartWrite) *store.Batch {
	again := &store.Batch{Starts: starts}
	for _, start := range starts {
		for _, item := range b.Steps {
			if item.StartsChild() && start.Run.Parent.Valid && item.Step.Run == start.Run.Parent.UUID && item.Step.Name == start.Run.Name {
				again.Steps = append(again.Steps, item)
			}
		}
	}
	return again
}

// commitOnce writes the batch in one transaction, and returns the starts that have to be retried.
func (s *database) commitOnce(ctx context.Context, b *store.Batch) (left []*store.StartWrite, err error) {
	w := s.batchPool.Get().(*sortedBatch)
	defer func() {
		w.clear()
		s.batchPool.Put(w)
	}()
	w.addBatch(b)
	var took changedRowCounts
	write := func() error {
		return s.runBatch(ctx, s.enginePool, "commit", func(batch *pgx.Batch) { s.addStatements(batch, w) },
			func(res statementResults) error { return w.readRowCounts(res, &took) })
	}
	if err = write(); isUniqueViolation(err) { // everything was rolled back
		w.newRowsMayExist = true
		err = write()
	}
	if err != nil {
		return nil, s.handleLockTimeout(b, err)
	}
	return s.setBatchOutcomes(ctx, w, took)
}

// addStatements adds the statements of all non-empty sections to the pipeline.
func (s *database) addStatements(batch *pgx.Batch, w *sortedBatch) {
	if w.shortLockWait {
		batch.Queue(s.statements.setLockTimeout, shortLockTimeout)
	}
	if len(w.runsToLock) > 0 {
		batch.Queue(s.statements.runsLockForBatch, runIDArgs(w.runsToLock)...)
	}
	switch {
	case len(w.starts) == 1 && w.allIDsGenerated && !w.newRowsMayExist && s.hasSingleItemStatements():
		batch.Queue(s.statements.runInsertGeneratedID, runInsertOneArgs(w.starts[0])...)
	case w.allIDsGenerated && !w.newRowsMayExist:
		batch.Queue(s.statements.runInsertGeneratedIds, startArgs(w.starts)...)
	case len(w.starts) == 1 && w.startsArePlainRoots && s.hasSingleItemStatements():
		batch.Queue(s.statements.runInsertOne, runInsertOneArgs(w.starts[0])...)
	case w.startsArePlainRoots:
		batch.Queue(s.statements.runInsert, startArgs(w.starts)...)
	case len(w.starts) > 0:
		s.addStartsOfAnyKind(batch, w)
	}
	switch {
	case len(w.newSteps) > 0 && w.newRowsMayExist:
		batch.Queue(s.statements.stepInsertIfAbsent, stepArgs(w.newSteps, w.ignoresControlRequests)...)
	case len(w.newSteps) == 1 && s.hasSingleItemStatements():
		batch.Queue(s.statements.stepInsertOne, stepInsertOneArgs(w.newSteps[0], w.ignoresControlRequests(w.newSteps[0]))...)
	case len(w.newSteps) > 0:
		batch.Queue(s.statements.stepInsert, stepArgs(w.newSteps, w.ignoresControlRequests)...)
	}
	if len(w.existingSteps) > 0 {
		batch.Queue(s.statements.stepUpdate, stepArgs(w.existingSteps, w.ignoresControlRequests)...)
	}
	for _, item := range w.receives {
		batch.Queue(s.statements.signalReceive, append(singleStepArgs(&item.Step), item.Signal, cmp.Or(item.Receiver, item.Step.Name))...)
	}
	for signals := range w.signalStatements() {
		if sender := &signals[0].ActorAndReason; sender.HasActorOrReason() {
			batch.Queue(s.statements.signalInsertWithEvent, append(signalArgs(signals), actorReasonArgs(sender)...)...)
		} else {
			batch.Queue(s.statements.signalInsert, signalArgs(signals)...)
		}
	}
	switch {
	case len(w.ownershipEnds) == 1 && w.allFinish && s.hasSingleItemStatements():
		batch.Queue(s.statements.runFinishOne, runFinishOneArgs(w.ownershipEnds[0])...)
	case len(w.ownershipEnds) > 0 && w.allFinish:
		batch.Queue(s.statements.runFinish, runFinishArgs(w.ownershipEnds)...)
	case len(w.ownershipEnds) > 0:
		batch.Queue(s.statements.runEndOwnership, append(ownershipEndArgs(w.ownershipEnds), notifyChannel(s.schema))...)
	}
	for _, item := range w.holds {
		if d := item.Divergence; d != nil {
			batch.Queue(s.statements.runHoldForDrift, store.ShardOf(item.UUID), pgUUID(item.UUID), item.Epoch.EncodeInt64(), pgTime(*ownershipEndTime(item)), item.HoldReason,
				textOrNull(&item.Trace), d.Version, pgTime(d.At), d.Call, d.Detail)
			continue
		}
		batch.Queue(s.statements.runHoldAfterRejectedWrite, store.ShardOf(item.UUID), pgUUID(item.UUID), item.Epoch.EncodeInt64(), pgTime(*ownershipEndTime(item)), item.HoldReason, int32(item.MaxCrashes), textOrNull(&item.Trace), item.NotCountedAsCrash)
	}
	if len(w.wakes) > 0 {
		batch.Queue(s.statements.runWake, append(wakeArgs(w.wakes), notifyChannel(s.schema))...)
	}
	if len(w.countedEnds) > 0 {
		batch.Queue(s.statements.childEndsCountAndWakeParents, append(childEndCountArgs(w.countedEnds), notifyChannel(s.schema))...)
	}
	if w.notifyWorkers {
		batch.Queue(s.statements.notify, notifyChannel(s.schema), "")
	}
}

// hasSingleItemStatements reports whether a section of one item has a statement of its own. It is false only in a test of the statements
// for many items.
func (s *database) hasSingleItemStatements() bool { return s.statements.stepInsertOne != "" }

// addStartsOfAnyKind adds the starts of any kind.
func (s *database) addStartsOfAnyKind(batch *pgx.Batch, w *sortedBatch) {
	if len(w.startsWithPlace) > 0 {
		batch.Queue(s.statements.runInsertWithPlace, startWithPlaceArgs(w.starts, w.tags, w.startsWithPlace)...)
	} else {
		batch.Queue(s.statements.runInsertAny, runInsertAnyArgs(w.starts, w.tags)...)
	}
}

// readRowCounts reads the results of the statements that addStatements has added.
func (w *sortedBatch) readRowCounts(res statementResults, took *changedRowCounts) error {
	if w.shortLockWait {
		if err := readRowCount(res, 1, nil); err != nil {
			return err
		}
	}
	for _, section := range []struct {
		items int
		took  *int64 // nil: the count does not matter
	}{
		{len(w.runsToLock), nil},
		{len(w.starts), &took.starts},
		{len(w.newSteps), &took.newSteps},
		{len(w.existingSteps), &took.existingSteps},
	} {
		if err := readRowCount(res, section.items, section.took); err != nil {
			return err
		}
	}
	for _, item := range w.receives {
		if err := readReceiveResult(res, item); err != nil {
			return err
		}
	}
	if err := w.readInsertedSignalCount(res, took); err != nil {
		return err
	}
	if w.allFinish {
		if err := readRowCount(res, len(w.ownershipEnds), &took.runs); err != nil {
			return err
		}
	} else if len(w.ownershipEnds) > 0 {
		if err := eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&took.runs, nil) }); err != nil {
			return err
		}
	}
	for _, item := range w.holds {
		if err := readHoldResult(res, item); err != nil {
			return err
		}
	}
	for _, wakes := range [][]wakeReason{w.wakes, w.countedEnds} {
		if err := readRowCount(res, len(wakes), nil); err != nil {
			return err
		}
	}
	if w.notifyWorkers {
		return readRowCount(res, 1, nil)
	}
	return nil
}

// readRowCount reads the row count of a section, unless the section is empty. If the statement returns columns, readRowCount counts
// the returned rows, because the command tag of Citus also counts rows that ON CONFLICT has skipped.
func readRowCount(res statementResults, items int, took *int64) error {
	if items == 0 {
		return nil
	}
	if took == nil {
		_, err := res.Exec()
		return err
	}
	rows, err := res.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	*took = 0
	for rows.Next() {
		*took++
	}
	if len(rows.FieldDescriptions()) == 0 {
		*took = rows.CommandTag().RowsAffected()
	}
	return rows.Err()
}

// setBatchOutcomes sets the outcomes of a committed batch, except for the starts that it returns.
func (s *database) setBatchOutcomes(ctx context.Context, w *sortedBatch, took changedRowCounts) (left []*store.StartWrite, err error) {
	ask := s.roundTripFuncOnEnginePool(ctx)
	if took.starts == int64(len(w.starts)) {
		for _, item := range w.starts {
			item.Outcome, item.ExistingRun, item.RunState = store.Written, nil, store.RunState{}
		}
	} else if left, err = s.setStartOutcomes(ask, w.starts); err != nil {
		return nil, err
	}
	if err := s.setStepOutcomesOrRetry(ask, slices.Concat(markWrittenIfCountMatches(w.newSteps, took.newSteps), markWrittenIfCountMatches(w.existingSteps, took.existingSteps))); err != nil {
		return nil, err
	}
	if err := s.setReceiveOutcomes(ask, w.receives); err != nil {
		return nil, err
	}
	if took.signals == int64(len(w.signals)) {
		for _, item := range w.signals {
			item.Outcome, item.ExistingSignal, item.RunState = store.Written, nil, store.RunState{}
		}
	} else if err := s.setSignalOutcomes(ask, w.signals); err != nil {
		return nil, err
	}
	return left, s.setOwnershipEndOutcomes(ask, w.unwrittenOwnershipEnds(took.runs))
}

// markWrittenIfCountMatches sets the outcome Written for all items if the statement changed as many rows as there are items.
// Otherwise it returns the items.
func markWrittenIfCountMatches(items []*store.StepWrite, took int64) []*store.StepWrite {
	if took != int64(len(items)) {
		return items
	}
	for _, item := range items {
		item.Outcome, item.RecordedStep, item.RunState = store.Written, nil, store.RunState{}
	}
	return nil
}

// unwrittenOwnershipEnds returns the ownership ends that may have changed no row: all except holds, if fewer rows changed than there
// are such ends, and the holds without an outcome.
func (w *sortedBatch) unwrittenOwnershipEnds(took int64) (missed []*store.OwnershipEnd) {
	if took < int64(len(w.ownershipEnds)) {
		missed = append(missed, w.ownershipEnds...)
	} else {
		for _, item := range w.ownershipEnds {
			item.Outcome, item.RunState = store.Written, store.RunState{}
		}
	}
	for _, item := range w.holds {
		if item.Outcome == 0 {
			missed = append(missed, item)
		}
	}
	return missed
}
