package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// sorted holds a batch in the order in which its rows are locked. Steps with and without a row are
// separate. A sorted belongs to one call of commit, which returns it to the pool afterwards.
type sorted struct {
	starts         []*store.Start
	tags           []tagging
	fresh, known   []*store.StepWrite
	receives       []*store.Receive // in the caller's order
	signals        []*store.Signal
	runs           []*store.RunWrite
	holds          []*store.RunWrite // the writes of the batch that hold a run
	wakes          []wake
	locks          []uuid.UUID // runs that are locked first, each once
	despiteControl bool        // steps are written despite a request to pause or cancel their runs
	met            bool        // some of the new rows may already exist
	hints          bool        // a start becomes claimable soon, perhaps for other workers
	plain          bool        // the starts are roots without tags
	made           bool        // plain, and no start was named by its caller
	finish         bool        // all runs end with a terminal status, at a known time
	brief          bool        // lock waits are limited to 20 ms
}

func (w *sorted) fill(b *store.Batch) {
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
			w.known = append(w.known, item)
		} else {
			w.fresh = append(w.fresh, item)
		}
	}
	slices.SortFunc(w.starts, byStart)
	slices.SortFunc(w.fresh, byStep)
	slices.SortFunc(w.known, byStep)
	slices.SortFunc(w.runs, func(a, b *store.RunWrite) int { return compareUUIDs(a.UUID, b.UUID) })
	for _, item := range w.starts {
		w.hints = w.hints || item.Run.Status == store.Pending && item.Run.WakeAt.Before(item.Run.CreatedAt.Add(farOff))
		w.plain = w.plain && !item.Run.Parent.Valid
		w.tag(item)
	}
	w.plain = w.plain && len(w.tags) == 0
	w.made = w.plain && !slices.ContainsFunc(w.starts, func(item *store.Start) bool { return !store.NamedByUUID(&item.Run) })
	w.finish = len(w.runs) > 0
	for _, item := range w.runs {
		w.finish = w.finish && item.Status.Terminal() && !item.EndedAt.IsZero()
	}
	w.collectWakes()
	w.lock()
}

// lock sets the runs to lock first. There are none if the batch changes only its own rows.
func (w *sorted) lock() {
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
	slices.SortFunc(w.locks, compareUUIDs)
	w.locks = slices.Compact(w.locks)
}

// anyway reports whether a step is written even if its run is to be paused or cancelled: on the second
// try, or if the same transaction releases the run, so that no second try follows. It is false for the
// marker of a child's start, which is refused together with the child.
func (w *sorted) anyway(item *store.StepWrite) bool {
	if mark(item) {
		return false
	}
	leaves := func() bool {
		_, found := slices.BinarySearchFunc(w.runs, item.Step.Run, func(r *store.RunWrite, id uuid.UUID) int { return compareUUIDs(r.UUID, id) })
		return found || slices.ContainsFunc(w.holds, func(r *store.RunWrite) bool { return r.UUID == item.Step.Run })
	}
	return w.despiteControl || leaves()
}

// mark reports whether the write is the marker that a child was started.
func mark(item *store.StepWrite) bool {
	return item.Step.Kind == store.KindChild && !item.Step.Status.Terminal()
}

// empty clears the items, so that the pool keeps no payload alive.
func (w *sorted) empty() {
	clear(w.starts)
	clear(w.fresh)
	clear(w.known)
	clear(w.tags)
	clear(w.receives)
	clear(w.signals)
	clear(w.runs)
	clear(w.holds)
	w.holds = w.holds[:0]
	w.starts, w.fresh, w.known, w.runs = w.starts[:0], w.fresh[:0], w.known[:0], w.runs[:0]
	w.tags, w.receives, w.signals = w.tags[:0], w.receives[:0], w.signals[:0]
	w.wakes, w.locks, w.despiteControl, w.met, w.hints = w.wakes[:0], w.locks[:0], false, false, false
}

func compareUUIDs(a, b uuid.UUID) int {
	if c := cmp.Compare(store.ShardOf(a), store.ShardOf(b)); c != 0 {
		return c
	}
	return bytes.Compare(a[:], b[:])
}

// byStart orders starts by the key on which they can conflict. Their UUIDs never conflict.
func byStart(a, b *store.Start) int {
	if c := cmp.Compare(store.ShardOf(a.Run.UUID), store.ShardOf(b.Run.UUID)); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Run.Parent.UUID[:], b.Run.Parent.UUID[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.Run.Name, b.Run.Name)
}

func byStep(a, b *store.StepWrite) int {
	if c := compareUUIDs(a.Step.Run, b.Step.Run); c != 0 {
		return c
	}
	return cmp.Compare(a.Step.Name, b.Step.Name)
}

// changedRows holds the number of rows that each section changed.
type changedRows struct{ starts, fresh, known, signals, runs int64 }

// If a start becomes due later than farOff after its creation, its commit sends no notification, because
// workers poll before that. Transactions that notify have to commit one after the other.
const farOff = time.Minute

// startTries bounds the tries of a start whose parent was paused at the write, and resumed when it was
// read back.
const startTries = 5

// Commit implements store.Store. Without conflicts it takes one round trip, and the row counts of the
// command tags confirm all writes. Otherwise a second round trip, with a new snapshot, reads the rows
// back.
func (s *database) Commit(ctx context.Context, b *store.Batch) (err error) {
	if b.Len() == 0 {
		return nil
	}
	ctx, done := s.hosts.patient(ctx)
	defer func() { done(&err) }()
	whole, era := b, s.timeline.eras.Load()
	for try := 1; ; try++ {
		left, err := s.commit(ctx, b)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return s.timeline.acknowledge(era, whole)
		}
		if try == startTries {
			return errGone(left[0])
		}
		b = withMarks(b, left)
	}
}

// withMarks returns a batch of the given starts and of their markers in the parents' histories. A start
// and its marker are written together or not at all.
func withMarks(b *store.Batch, starts []*store.Start) *store.Batch {
	again := &store.Batch{Starts: starts}
	for _, start := range starts {
		for _, item := range b.Steps {
			if mark(item) && start.Run.Parent.Valid && item.Step.Run == start.Run.Parent.UUID && item.Step.Name == start.Run.Name {
				again.Steps = append(again.Steps, item)
			}
		}
	}
	return again
}

// commit writes the batch in one transaction, and returns the starts that have to be retried.
func (s *database) commit(ctx context.Context, b *store.Batch) (left []*store.Start, err error) {
	w := s.scratch.Get().(*sorted)
	defer func() {
		w.empty()
		s.scratch.Put(w)
	}()
	w.fill(b)
	var took changedRows
	write := func() error {
		return s.once(ctx, s.engine, "commit", func(batch *pgx.Batch) { s.queue(batch, w) },
			func(res results) error { return w.count(res, &took) })
	}
	if err = write(); taken(err) { // everything was rolled back
		w.met = true
		err = write()
	}
	if err != nil {
		return nil, s.refused(b, err)
	}
	return s.answer(ctx, w, took)
}

// queue adds the statements of all non-empty sections to the pipeline.
func (s *database) queue(batch *pgx.Batch, w *sorted) {
	if w.brief {
		batch.Queue(s.sql.lockWait, briefly)
	}
	if len(w.locks) > 0 {
		batch.Queue(s.sql.lock, lockArgs(w.locks)...)
	}
	switch {
	case w.made && !w.met:
		batch.Queue(s.sql.startMade, startArgs(w.starts)...)
	case w.plain:
		batch.Queue(s.sql.start, startArgs(w.starts)...)
	case len(w.starts) > 0:
		batch.Queue(s.sql.startAny, startAnyArgs(w.starts, w.tags)...)
	}
	switch {
	case len(w.fresh) > 0 && w.met:
		batch.Queue(s.sql.stepInsertAgain, stepArgs(w.fresh, w.anyway)...)
	case len(w.fresh) == 1:
		batch.Queue(s.sql.stepInsertOne, stepArgs(w.fresh, w.anyway)...)
	case len(w.fresh) > 0:
		batch.Queue(s.sql.stepInsert, stepArgs(w.fresh, w.anyway)...)
	}
	if len(w.known) > 0 {
		batch.Queue(s.sql.stepUpdate, stepArgs(w.known, w.anyway)...)
	}
	for _, item := range w.receives {
		batch.Queue(s.sql.receive, append(oneStep(&item.Step), item.Signal)...)
	}
	if len(w.signals) > 0 {
		batch.Queue(s.sql.signal, signalArgs(w.signals)...)
	}
	switch {
	case len(w.runs) > 0 && w.finish:
		batch.Queue(s.sql.runFinish, finishArgs(w.runs)...)
	case len(w.runs) > 0:
		batch.Queue(s.sql.runLeave, append(leaveArgs(w.runs), channel(s.schema))...)
	}
	for _, item := range w.holds {
		batch.Queue(s.sql.runHold, store.ShardOf(item.UUID), one(item.UUID), item.Epoch.Number(), instant(*moment(item)), item.Reason, int32(item.MaxCrashes), nullText(&item.Trace))
	}
	if len(w.wakes) > 0 {
		batch.Queue(s.sql.wake, append(wakeArgs(w.wakes), channel(s.schema))...)
	}
	if w.hints {
		batch.Queue(s.sql.notify, channel(s.schema), "")
	}
}

// count reads the results of the statements that queue added.
func (w *sorted) count(res results, took *changedRows) error {
	if w.brief {
		if err := tally(res, 1, nil); err != nil {
			return err
		}
	}
	for _, section := range []struct {
		items int
		took  *int64 // nil: the count does not matter
	}{
		{len(w.locks), nil},
		{len(w.starts), &took.starts},
		{len(w.fresh), &took.fresh},
		{len(w.known), &took.known},
	} {
		if err := tally(res, section.items, section.took); err != nil {
			return err
		}
	}
	for _, item := range w.receives {
		if err := received(res, item); err != nil {
			return err
		}
	}
	if err := tally(res, len(w.signals), &took.signals); err != nil {
		return err
	}
	if w.finish {
		if err := tally(res, len(w.runs), &took.runs); err != nil {
			return err
		}
	} else if len(w.runs) > 0 {
		if err := each(res, func(rows pgx.Rows) error { return rows.Scan(&took.runs, nil) }); err != nil {
			return err
		}
	}
	for _, item := range w.holds {
		if err := wasHeld(res, item); err != nil {
			return err
		}
	}
	if err := tally(res, len(w.wakes), nil); err != nil {
		return err
	}
	if w.hints {
		return tally(res, 1, nil)
	}
	return nil
}

// tally reads the row count of a section, unless the section is empty.
func tally(res results, items int, took *int64) error {
	if items == 0 {
		return nil
	}
	tag, err := res.Exec()
	if took != nil {
		*took = tag.RowsAffected()
	}
	return err
}

// answer sets the outcomes of a committed batch, except for the starts that it returns.
func (s *database) answer(ctx context.Context, w *sorted, took changedRows) (left []*store.Start, err error) {
	ask := s.onEngine(ctx)
	if took.starts == int64(len(w.starts)) {
		for _, item := range w.starts {
			item.Outcome, item.Existing, item.State = store.Written, nil, store.RunState{}
		}
	} else if left, err = s.settleStarts(ask, w.starts); err != nil {
		return nil, err
	}
	var short []*store.StepWrite
	for _, part := range []struct {
		items []*store.StepWrite
		took  int64
	}{{w.fresh, took.fresh}, {w.known, took.known}} {
		if part.took == int64(len(part.items)) {
			for _, item := range part.items {
				item.Outcome, item.Recorded, item.State = store.Written, nil, store.RunState{}
			}
		} else {
			short = append(short, part.items...)
		}
	}
	if err := s.settleSteps(ask, short, true); err != nil {
		return nil, err
	}
	if err := s.settleReceives(ask, w.receives); err != nil {
		return nil, err
	}
	if took.signals == int64(len(w.signals)) {
		for _, item := range w.signals {
			item.Outcome, item.Existing, item.State = store.Written, nil, store.RunState{}
		}
	} else if err := s.settleSignals(ask, w.signals); err != nil {
		return nil, err
	}
	var missed []*store.RunWrite
	if took.runs < int64(len(w.runs)) {
		missed = append(missed, w.runs...)
	} else {
		for _, item := range w.runs {
			item.Outcome, item.State = store.Written, store.RunState{}
		}
	}
	for _, item := range w.holds {
		if item.Outcome == 0 {
			missed = append(missed, item)
		}
	}
	if len(missed) > 0 {
		return left, s.settleRuns(ask, missed)
	}
	return left, nil
}
