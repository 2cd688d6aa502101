package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var changes = []test{
	{"of a run and its checkpoints have marks", changeMarks},
}

func changeMarks(b *fixture) {
	r := b.commitRunningRun("")
	other := b.commitRunningRun("")
	marks := func() (own, others string) {
		b.Helper()
		got, err := b.store.RunFingerprints(b.ctx, []uuid.UUID{r.UUID, store.NewUUID(3), other.UUID}, 2)
		if err != nil || len(got) != 3 || got[1] != "" || got[0] == "" || got[2] == "" {
			b.Fatalf("the marks are %q, %v", got, err)
		}
		return got[0], got[2]
	}
	last, same := marks()
	changes := func(what string, want bool) {
		b.Helper()
		now, others := marks()
		if (now != last) != want || others != same {
			b.Errorf("after %s the marks are %q and %q, and were %q and %q", what, now, others, last, same)
		}
		last = now
	}
	changes("nothing", false)
	first := b.completed(r.UUID, r.Epoch, "a")
	first.Status, first.Output, first.EndedAt = store.StepStarted, nil, time.Time{}
	b.commit(&store.Batch{Steps: []*store.StepWrite{{Step: first}}})
	changes("a checkpoint", true)
	again := first
	again.Status, again.Attempt, again.NextAt = store.StepBackoff, first.Attempt, first.StartedAt.Add(time.Hour)
	b.commit(&store.Batch{Steps: []*store.StepWrite{{Step: again}}})
	changes("a failed attempt", true)
	b.commit(&store.Batch{Steps: []*store.StepWrite{{Step: b.completed(r.UUID, r.Epoch, "b")}}})
	changes("a second checkpoint", true)
	b.commit(&store.Batch{Steps: []*store.StepWrite{{Step: b.completed(r.UUID, r.Epoch, "c")}}})
	changes("a checkpoint above the limit", false)
	if err := b.store.ControlRuns(b.ctx, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{r.UUID}, Now: b.now}); err != nil {
		b.Fatal(err)
	}
	changes("a request to pause", true)
}
