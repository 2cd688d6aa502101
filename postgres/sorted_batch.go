package postgres

import (
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// sortedBatch holds a batch in the order in which its rows are locked. Steps with and without a row are separate. A sortedBatch
// belongs to one call of commitOnce, which returns it to the pool afterwards.
type sortedBatch struct {
	starts                  []*store.StartWrite
	tags                    []runTag
	startsWithPlace         []*store.StartWrite // those with a place
	newSteps, existingSteps []*store.StepWrite
	receives                []*store.ReceiveWrite // in the caller's order
	signals                 []*store.SignalWrite
	ownershipEnds           []*store.OwnershipEnd
	holds                   []*store.OwnershipEnd // the writes of the batch that hold a run
	wakes                   []wakeReason
	countedEnds             []wakeReason // ends of children that calls of their parents count
	runsToLock              []uuid.UUID  // runs that are locked first, each once
	despiteControl          bool         // steps are written despite a request to pause or cancel their runs
	newRowsMayExist         bool         // some of the new rows may already exist
	notifyWorkers           bool         // a start becomes claimable soon, perhaps for other workers
	startsArePlainRoots     bool         // the starts are roots without tags
	allIDsGenerated         bool         // the starts are plain roots, and no caller has given a name
	allFinish               bool         // all runs complete or are cancelled, at a known time
	shortLockWait           bool         // lock waits are limited to shortLockTimeout
}

func (w *sortedBatch) addBatch(b *store.Batch) {
	w.startsArePlainRoots = len(b.Starts) > 0
	w.starts = append(w.starts, b.Starts...)
	w.receives = append(w.receives, b.Receives...)
	w.signals = append(w.signals, b.Signals...)
	w.shortLockWait = b.ShortLockWait
	for _, item := range b.OwnershipEnds {
		if item.HoldsRun {
			w.holds = append(w.holds, item)
		} else {
			w.ownershipEnds = append(w.ownershipEnds, item)
		}
	}
	for _, item := range b.Steps {
		if item.RowExists {
			w.existingSteps = append(w.existingSteps, item)
		} else {
			w.newSteps = append(w.newSteps, item)
		}
	}
	slices.SortFunc(w.starts, store.CompareStarts)
	slices.SortFunc(w.newSteps, compareSteps)
	slices.SortFunc(w.existingSteps, compareSteps)
	slices.SortFunc(w.ownershipEnds, func(l, r *store.OwnershipEnd) int { return store.CompareUUIDsByShard(l.UUID, r.UUID) })
	for _, item := range w.starts {
		w.notifyWorkers = w.notifyWorkers || item.Run.Status == store.Pending && item.Run.WakeAt.Before(item.Run.CreatedAt.Add(maxStartDelayToNotify))
		w.startsArePlainRoots = w.startsArePlainRoots && !item.Run.Parent.Valid
		w.addTags(item)
		if item.Place != nil {
			w.startsWithPlace = append(w.startsWithPlace, item)
		}
	}
	w.startsArePlainRoots = w.startsArePlainRoots && len(w.tags) == 0 && len(w.startsWithPlace) == 0
	w.allIDsGenerated = w.startsArePlainRoots && !slices.ContainsFunc(w.starts, func(item *store.StartWrite) bool { return !store.IsNamedByUUID(&item.Run) })
	w.allFinish = len(w.ownershipEnds) > 0
	for _, item := range w.ownershipEnds {
		w.allFinish = w.allFinish && item.Status.IsTerminal() && !item.HasFailed() && !item.EndedAt.IsZero()
	}
	w.collectWakes()
	w.collectRunsToLock()
}

// collectRunsToLock sets the runs to lock first. There are none if the batch changes only rows of its own runs.
func (w *sortedBatch) collectRunsToLock() {
	for _, item := range w.starts {
		if item.Run.Parent.Valid {
			w.runsToLock = append(w.runsToLock, item.Run.Parent.UUID)
		}
	}
	for _, item := range w.receives {
		w.runsToLock = append(w.runsToLock, item.Step.Run)
	}
	for _, item := range w.wakes {
		w.runsToLock = append(w.runsToLock, item.run)
	}
	for _, item := range w.countedEnds {
		w.runsToLock = append(w.runsToLock, item.run)
	}
	if len(w.runsToLock) == 0 {
		return
	}
	for _, item := range slices.Concat(w.ownershipEnds, w.holds) {
		w.runsToLock = append(w.runsToLock, item.UUID)
	}
	slices.SortFunc(w.runsToLock, store.CompareUUIDsByShard)
	w.runsToLock = slices.Compact(w.runsToLock)
}

// ignoresControlRequests reports whether a step is written even if its run is to be paused or cancelled: on the second
// try, or if the same transaction releases the run, so that no second try follows. It is false for the
// marker of a child's start, which is refused together with the child.
func (w *sortedBatch) ignoresControlRequests(item *store.StepWrite) bool {
	if item.StartsChild() {
		return false
	}
	leaves := func() bool {
		_, found := slices.BinarySearchFunc(w.ownershipEnds, item.Step.Run, func(r *store.OwnershipEnd, id uuid.UUID) int { return store.CompareUUIDsByShard(r.UUID, id) })
		return found || slices.ContainsFunc(w.holds, func(r *store.OwnershipEnd) bool { return r.UUID == item.Step.Run })
	}
	return w.despiteControl || leaves()
}

// clear clears the items, so that the pool keeps no payload alive.
func (w *sortedBatch) clear() {
	clear(w.starts)
	clear(w.newSteps)
	clear(w.existingSteps)
	clear(w.tags)
	clear(w.startsWithPlace)
	clear(w.receives)
	clear(w.signals)
	clear(w.ownershipEnds)
	clear(w.holds)
	w.holds = w.holds[:0]
	w.starts, w.newSteps, w.existingSteps, w.ownershipEnds = w.starts[:0], w.newSteps[:0], w.existingSteps[:0], w.ownershipEnds[:0]
	w.tags, w.startsWithPlace, w.receives, w.signals = w.tags[:0], w.startsWithPlace[:0], w.receives[:0], w.signals[:0]
	clear(w.countedEnds)
	w.countedEnds = w.countedEnds[:0]
	w.wakes, w.runsToLock, w.despiteControl, w.newRowsMayExist, w.notifyWorkers = w.wakes[:0], w.runsToLock[:0], false, false, false
}

func compareSteps(l, r *store.StepWrite) int { return store.CompareSteps(&l.Step, &r.Step) }
