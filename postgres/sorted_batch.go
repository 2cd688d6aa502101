package postgres

import (
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// sortedBatch holds a batch in the order in which its rows are locked. Steps with and without a row are
// separate. A sorted belongs to one call of commit, which returns it to the pool afterwards.
type sortedBatch struct {
	starts                  []*store.StartWrite
	tags                    []runTag
	placed                  []*store.StartWrite // those with a place
	newSteps, existingSteps []*store.StepWrite
	receives                []*store.ReceiveWrite // in the caller's order
	signals                 []*store.SignalWrite
	runs                    []*store.OwnershipEnd
	holds                   []*store.OwnershipEnd // the writes of the batch that hold a run
	wakes                   []wakeReason
	locks                   []uuid.UUID // runs that are locked first, each once
	despiteControl          bool        // steps are written despite a request to pause or cancel their runs
	met                     bool        // some of the new rows may already exist
	hints                   bool        // a start becomes claimable soon, perhaps for other workers
	plain                   bool        // the starts are roots without tags
	allUnnamed              bool        // plain, and no start was named by its caller
	finish                  bool        // all runs end with a terminal status, at a known time
	brief                   bool        // lock waits are limited to 20 ms
}

func (w *sortedBatch) addBatch(b *store.Batch) {
	w.plain = len(b.Starts) > 0
	w.starts = append(w.starts, b.Starts...)
	w.receives = append(w.receives, b.Receives...)
	w.signals = append(w.signals, b.Signals...)
	w.brief = b.ShortLockWait
	for _, item := range b.Runs {
		if item.Held {
			w.holds = append(w.holds, item)
		} else {
			w.runs = append(w.runs, item)
		}
	}
	for _, item := range b.Steps {
		if item.Exists {
			w.existingSteps = append(w.existingSteps, item)
		} else {
			w.newSteps = append(w.newSteps, item)
		}
	}
	slices.SortFunc(w.starts, store.CompareStarts)
	slices.SortFunc(w.newSteps, compareSteps)
	slices.SortFunc(w.existingSteps, compareSteps)
	slices.SortFunc(w.runs, func(l, r *store.OwnershipEnd) int { return store.CompareUUIDs(l.UUID, r.UUID) })
	for _, item := range w.starts {
		w.hints = w.hints || item.Run.Status == store.Pending && item.Run.WakeAt.Before(item.Run.CreatedAt.Add(notifyWithin))
		w.plain = w.plain && !item.Run.Parent.Valid
		w.addTags(item)
		if item.Place != nil {
			w.placed = append(w.placed, item)
		}
	}
	w.plain = w.plain && len(w.tags) == 0 && len(w.placed) == 0
	w.allUnnamed = w.plain && !slices.ContainsFunc(w.starts, func(item *store.StartWrite) bool { return !store.IsNamedByUUID(&item.Run) })
	w.finish = len(w.runs) > 0
	for _, item := range w.runs {
		w.finish = w.finish && item.Status.IsTerminal() && !item.EndedAt.IsZero()
	}
	w.collectWakes()
	w.collectLocks()
}

// collectLocks sets the runs to lock first. There are none if the batch changes only its own rows.
func (w *sortedBatch) collectLocks() {
	for _, item := range w.starts {
		if item.Run.Parent.Valid {
			w.locks = append(w.locks, item.Run.Parent.UUID)
		}
	}
	for _, item := range w.receives {
		w.locks = append(w.locks, item.Step.Run)
	}
	for _, item := range w.wakes {
		w.locks = append(w.locks, item.run)
	}
	if len(w.locks) == 0 {
		return
	}
	for _, item := range slices.Concat(w.runs, w.holds) {
		w.locks = append(w.locks, item.UUID)
	}
	slices.SortFunc(w.locks, store.CompareUUIDs)
	w.locks = slices.Compact(w.locks)
}

// ignoresControl reports whether a step is written even if its run is to be paused or cancelled: on the second
// try, or if the same transaction releases the run, so that no second try follows. It is false for the
// marker of a child's start, which is refused together with the child.
func (w *sortedBatch) ignoresControl(item *store.StepWrite) bool {
	if item.StartsChild() {
		return false
	}
	leaves := func() bool {
		_, found := slices.BinarySearchFunc(w.runs, item.Step.Run, func(r *store.OwnershipEnd, id uuid.UUID) int { return store.CompareUUIDs(r.UUID, id) })
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
	clear(w.placed)
	clear(w.receives)
	clear(w.signals)
	clear(w.runs)
	clear(w.holds)
	w.holds = w.holds[:0]
	w.starts, w.newSteps, w.existingSteps, w.runs = w.starts[:0], w.newSteps[:0], w.existingSteps[:0], w.runs[:0]
	w.tags, w.placed, w.receives, w.signals = w.tags[:0], w.placed[:0], w.receives[:0], w.signals[:0]
	w.wakes, w.locks, w.despiteControl, w.met, w.hints = w.wakes[:0], w.locks[:0], false, false, false
}

func compareSteps(l, r *store.StepWrite) int { return store.CompareSteps(&l.Step, &r.Step) }
