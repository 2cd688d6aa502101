package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var outlines = []test{
	{"what a run waits for", outlineOpen},
	{"how far its maps are", outlineMaps},
	{"another run's, and no run's", outlineNone},
}

func (b *fixture) outline(run uuid.UUID, now time.Time) store.RunProgress {
	b.Helper()
	got, err := b.store.RunProgress(b.ctx, run, now)
	if err != nil {
		b.Fatalf("Outline: %v", err)
	}
	return got
}

func outlineOpen(b *fixture) {
	r := b.commitRunningRun("")
	sleep := b.completed(r.UUID, epochAt(1), "asleep")
	sleep.Kind, sleep.Output, sleep.NextAt = store.KindSleep, nil, b.afterStart(time.Hour)
	over := sleep
	over.Name, over.NextAt = "over", b.afterStart(time.Minute)
	failed := b.completed(r.UUID, epochAt(1), "failed")
	failed.Status, failed.Output, failed.Error = store.StepFailed, nil, []byte(`"no"`)
	retry := b.completed(r.UUID, epochAt(1), "\x1frenewal")
	retry.Kind, retry.NextAt = store.KindKeyRenewal, b.afterStart(time.Hour)
	wait := b.receive(r, "wait", "paid")
	child := b.openChildStep(r, b.commitPendingChild(r, "charge"))
	began, back := b.startedMarker(r.UUID, epochAt(1), 1, "began"), b.backoff(r.UUID, epochAt(1), 3, "backoff")
	b.commitReceive(wait)
	for _, s := range []store.Step{retry, sleep, over, failed, child, began, back, b.completed(r.UUID, epochAt(1), "done")} {
		b.commitStep(s, false)
	}
	wantSteps(b, "open", b.outline(r.UUID, b.afterStart(10*time.Minute)).OpenCalls, retry, sleep, back, began, child, wait.Step)
	wantSteps(b, "open an hour later", b.outline(r.UUID, b.afterStart(2*time.Hour)).OpenCalls, back, began, child, wait.Step)
	b.commitOwnershipEnd(b.park(r, time.Time{}))
	wantSteps(b, "open while nobody executes it", b.outline(r.UUID, b.afterStart(2*time.Hour)).OpenCalls, back, began, child, wait.Step)
}

// inside separates the name of a scope from the name of a call in it.
const inside = "\x1f"

func outlineMaps(b *fixture) {
	r := b.commitRunningRun("")
	want := make(map[string]int)
	for name, size := range map[string]int{"resize": 5, "resize2": 2, "empty": 0, "it's 100%_": 3, "rés": 2, "branch" + inside + "resize": 4} {
		m := b.completed(r.UUID, epochAt(1), name)
		m.Kind, m.Output = store.KindMap, []byte(fmt.Sprint(size))
		b.commitStep(m, false)
		want[name] = 0
		for i := range size {
			item := b.completed(r.UUID, epochAt(1), fmt.Sprint(name, inside, i))
			switch i % 3 {
			case 0:
				want[name]++
			case 1:
				item.Status, item.Output, item.Error = store.StepFailed, nil, []byte(`"no"`)
				want[name]++
			default:
				item = b.backoff(r.UUID, epochAt(1), 1, item.Name)
			}
			b.commitStep(item, false)
		}
	}
	got := b.outline(r.UUID, b.now).Maps
	var last string
	for _, m := range got {
		done, ok := want[m.Step.Name]
		if !ok || m.DoneCount != done || m.Step.Name < last {
			b.Errorf("map %s: %d done, want %d, in the order of names", quoteName(m.Step.Name), m.DoneCount, done)
		}
		last = m.Step.Name
		b.wantRow("map "+quoteName(m.Step.Name), m.Step)
	}
	if len(got) != len(want) {
		b.Errorf("got %d maps, want %d", len(got), len(want))
	}
}

func outlineNone(b *fixture) {
	one, two := b.commitRunningRun("one"), b.commitRunningRun("two")
	b.commitReceive(b.receive(two, "wait", "paid"))
	b.tag(two.UUID, store.Tag{Key: "team", Value: "red"})
	for _, id := range []uuid.UUID{one.UUID, uuid.New()} {
		if got := b.outline(id, b.now); len(got.OpenCalls)+len(got.Maps)+len(got.Tags) != 0 {
			b.Errorf("got %+v, want nothing", got)
		}
	}
}
