package storetest

import (
	"errors"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var batches = []test{
	{"an empty batch", func(b *fixture) { b.commit(&store.Batch{}) }},
	{"a whole life in one batch", batchLife},
	{"every outcome in one batch", batchOutcomes},
	{"a bad value fails all or nothing", batchBadValue},
}

// batchLife checks that a batch writes its Starts before its Steps, and its Steps before its Runs.
func batchLife(b *fixture) {
	r := b.newRunningRun("")
	finish := b.newCompletion(r.UUID, epochAt(1))
	batch := &store.Batch{
		Starts:        []*store.StartWrite{{Run: r}},
		Steps:         []*store.StepWrite{{Step: b.completed(r.UUID, epochAt(1), "a")}, {Step: b.completed(r.UUID, epochAt(1), "b")}},
		OwnershipEnds: []*store.OwnershipEnd{&finish},
	}
	for _, when := range []string{"first", "replayed"} {
		b.commit(batch)
		wantOutcome(b, "start, "+when, batch.Starts[0].Outcome, store.Written)
		wantOutcome(b, "step a, "+when, batch.Steps[0].Outcome, store.Written)
		wantOutcome(b, "step b, "+when, batch.Steps[1].Outcome, store.Written)
		wantOutcome(b, "finish, "+when, finish.Outcome, store.Written)
	}
	if got := b.row(r.UUID); got.Status != store.Completed || got.Owner.Valid || !got.WakeAt.IsZero() {
		b.Errorf("the run: %s, owner %s, wake %s, want completed without either", got.Status, show(got.Owner), show(got.WakeAt))
	}
	wantSteps(b, "history", b.history(r.UUID), batch.Steps[0].Step, batch.Steps[1].Step)
}

func batchOutcomes(b *fixture) {
	had, gone, going := b.commitRunningRun("had"), b.commitRunningRun("gone"), b.commitRunningRun("going")
	recorded := b.completed(going.UUID, epochAt(1), "recorded")
	b.commitStep(recorded, false)
	b.commitOwnershipEnd(b.newCompletion(gone.UUID, epochAt(1)))
	second := recorded
	second.Attempt = 2
	fresh, newcomer := b.newRunningRun("had"), b.newRunningRun("new")
	late, mine := b.newCompletion(gone.UUID, epochAt(1)), b.newCompletion(had.UUID, epochAt(1))
	late.Status = store.Failed
	batch := &store.Batch{
		Starts: []*store.StartWrite{{Run: fresh}, {Run: newcomer}},
		Steps: []*store.StepWrite{
			{Step: second},
			{Step: b.completed(had.UUID, epochAt(1), "new")},
			{Step: b.completed(gone.UUID, epochAt(1), "late")},
			{Step: b.completed(uuid.New(), epochAt(1), "nowhere")},
			{Step: b.completed(newcomer.UUID, epochAt(1), "first")},
		},
		OwnershipEnds: []*store.OwnershipEnd{&late, &mine},
	}
	b.commit(batch)
	for i, want := range []store.WriteOutcome{store.AlreadyRecorded, store.Written} {
		wantOutcome(b, "start "+batch.Starts[i].Run.Name, batch.Starts[i].Outcome, want)
	}
	for i, want := range []store.WriteOutcome{store.AlreadyRecorded, store.Written, store.Fenced, store.Fenced, store.Written} {
		wantOutcome(b, "step "+batch.Steps[i].Step.Name, batch.Steps[i].Outcome, want)
	}
	wantRecorded(b, "step recorded", batch.Steps[0].RecordedStep, recorded)
	wantOutcome(b, "late finish", late.Outcome, store.Fenced)
	wantOutcome(b, "finish", mine.Outcome, store.Written)
}

// batchBadValue commits texts that the database may be unable to hold. The store either refuses the
// batch and writes nothing of it, or writes all of it and keeps the text bytewise.
func batchBadValue(b *fixture) {
	had := b.commitRunningRun("had")
	for _, bad := range []string{"a\x00b", "\x00", "\xff", "caf\xc3", "\xed\xa0\x80"} {
		for place, spoil := range map[string]func(*store.Batch){
			"a step's name":    func(c *store.Batch) { c.Steps[1].Step.Name = bad },
			"a run's name":     func(c *store.Batch) { c.Starts[1].Run.Name = bad },
			"a workflow":       func(c *store.Batch) { c.Starts[1].Run.Workflow = bad },
			"a queue":          func(c *store.Batch) { c.Starts[1].Run.Queue = bad },
			"a version":        func(c *store.Batch) { c.Starts[1].Run.Version = bad },
			"a trace":          func(c *store.Batch) { c.Starts[1].Run.Trace = bad },
			"a pause's reason": func(c *store.Batch) { c.OwnershipEnds[0].HoldReason = bad },
		} {
			batch := b.validBatch(had)
			spoil(batch)
			err := b.store.Commit(b.ctx, batch)
			if err != nil && !errors.Is(err, store.ErrBadData) {
				b.Errorf("%q as %s: got %v, want ErrBadData or success", bad, place, err)
			}
			b.wantAllOrNothing(quoteName(bad)+" as "+place, batch, err == nil)
		}
	}
	batch := b.validBatch(had)
	b.commit(batch) // the failed batches left nothing behind
	b.wantAllOrNothing("a good batch", batch, true)
}

// validBatch returns a valid batch of starts, steps and a pause. The caller makes one of its items
// bad.
func (b *fixture) validBatch(had store.Run) *store.Batch {
	paused := b.commitRunningRun("")
	pending := b.newPendingRun("", b.now)
	pending.Name = "pending " + pending.Name
	batch := &store.Batch{
		Starts:        []*store.StartWrite{{Run: b.newRunningRun("")}, {Run: pending}, {Run: b.newRunningRun("")}},
		OwnershipEnds: []*store.OwnershipEnd{{UUID: paused.UUID, Now: b.now, Epoch: epochAt(1), Status: store.Paused, HoldReason: "by hand"}},
	}
	for range 3 {
		batch.Steps = append(batch.Steps, &store.StepWrite{Step: b.completed(had.UUID, epochAt(1), uuid.NewString())})
	}
	return batch
}

func (b *fixture) wantAllOrNothing(what string, batch *store.Batch, all bool) {
	b.Helper()
	for _, w := range batch.Starts {
		rows := b.get(w.Run.UUID.String())
		if (rows[0] != nil) != all {
			b.Errorf("%s: the start of %s is there: %v, want %v", what, quoteName(w.Run.Name), rows[0] != nil, all)
		} else if all {
			wantRun(b, what, *rows[0], w.Run)
		}
	}
	there := make(map[string]bool)
	for _, s := range b.history(batch.Steps[0].Step.Run) {
		there[s.Name] = true
	}
	for _, w := range batch.Steps {
		if there[w.Step.Name] != all {
			b.Errorf("%s: the step %s is there: %v, want %v", what, quoteName(w.Step.Name), there[w.Step.Name], all)
		}
	}
	for _, w := range batch.OwnershipEnds {
		row := b.row(w.UUID)
		if (row.Status == w.Status) != all || (all && row.PauseOrHoldReason != w.HoldReason) {
			b.Errorf("%s: the run is %s, reason %q; want its pause written: %v", what, row.Status, row.PauseOrHoldReason, all)
		}
	}
}
