package storetest

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

var markers = []test{
	{"a step goes from marker to backoff to its end", markerToEnd},
	{"a writer need not know of the row", markerUnknown},
	{"a writer may know of a row that is not there", markerGone},
	{"a late marker changes nothing", markerLate},
	{"the next epoch goes on from the last one's row", markerTakenOver},
	{"a replay of a series is written", markerReplay},
}

func markerToEnd(b *fixture) {
	r := b.commitRunningRun("")
	end := b.completed(r.UUID, epochAt(1), "charge")
	end.Attempt = 2
	for i, s := range []store.Step{
		b.startedMarker(r.UUID, epochAt(1), 1, "charge"), b.backoff(r.UUID, epochAt(1), 1, "charge"), b.startedMarker(r.UUID, epochAt(1), 2, "charge"), end,
	} {
		what := fmt.Sprintf("%s of attempt %d", s.Status, s.Attempt)
		wantOutcome(b, what, b.commitStep(s, i > 0).Outcome, store.Written)
		wantSteps(b, what, b.history(r.UUID), s)
	}
}

func markerUnknown(b *fixture) {
	r := b.commitRunningRun("")
	marker, back := b.startedMarker(r.UUID, epochAt(1), 1, "marker"), b.backoff(r.UUID, epochAt(1), 1, "backoff")
	b.commitStep(marker, false)
	b.commitStep(back, false)
	for _, before := range []store.Step{marker, back} {
		end := b.completed(r.UUID, epochAt(1), before.Name)
		wantOutcome(b, "insert over a "+before.Name, b.commitStep(end, false).Outcome, store.Written)
	}
	wantSteps(b, "history", b.history(r.UUID), b.completed(r.UUID, epochAt(1), "backoff"), b.completed(r.UUID, epochAt(1), "marker"))
}

func markerGone(b *fixture) {
	r := b.commitRunningRun("")
	end := b.completed(r.UUID, epochAt(1), "charge")
	wantOutcome(b, "update of no row", b.commitStep(end, true).Outcome, store.Written)
	wantSteps(b, "history", b.history(r.UUID), end)
}

func markerLate(b *fixture) {
	r := b.commitRunningRun("")
	end := b.completed(r.UUID, epochAt(1), "ended")
	b.commitStep(end, false)
	retried := b.backoff(r.UUID, epochAt(1), 2, "retried")
	b.commitStep(retried, false)
	for _, exists := range []bool{false, true} {
		what := fmt.Sprintf("a marker (exists %v)", exists)
		late := b.commitStep(b.startedMarker(r.UUID, epochAt(1), 1, "ended"), exists)
		wantOutcome(b, what+" after the end", late.Outcome, store.AlreadyRecorded)
		wantRecorded(b, what+" after the end", late.RecordedStep, end)
		for attempt := range int32(2) {
			late := b.commitStep(b.startedMarker(r.UUID, epochAt(1), attempt+1, "retried"), exists)
			wantOutcome(b, fmt.Sprintf("%s of attempt %d after the backoff of 2", what, attempt+1), late.Outcome, store.Written)
		}
	}
	wantSteps(b, "history", b.history(r.UUID), end, retried)
}

func markerTakenOver(b *fixture) {
	r := b.commitPendingRun("", b.now)
	b.claimOne(b.query(b.now), r.UUID)
	b.commitStep(b.startedMarker(r.UUID, epochAt(1), 5, "marked"), false)
	b.commitStep(b.backoff(r.UUID, epochAt(1), 5, "retried"), false)
	claimed := b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
	wantSteps(b, "history with the claim", claimed.History, b.startedMarker(r.UUID, epochAt(1), 5, "marked"), b.backoff(r.UUID, epochAt(1), 5, "retried"))
	marked, retried := b.startedMarker(r.UUID, epochAt(2), 6, "marked"), b.completed(r.UUID, epochAt(2), "retried")
	wantOutcome(b, "the next attempt's marker", b.commitStep(marked, true).Outcome, store.Written)
	wantOutcome(b, "the end", b.commitStep(retried, true).Outcome, store.Written)
	wantSteps(b, "history", b.history(r.UUID), marked, retried)
}

func markerReplay(b *fixture) {
	r := b.commitRunningRun("")
	marker, back := b.startedMarker(r.UUID, epochAt(1), 1, "charge"), b.backoff(r.UUID, epochAt(1), 1, "charge")
	for _, w := range []*store.StepWrite{{Step: marker}, {Step: back, RowExists: true}} {
		for range 2 {
			b.commit(&store.Batch{Steps: []*store.StepWrite{w}})
			wantOutcome(b, w.Step.Status.String(), w.Outcome, store.Written)
		}
	}
	wantSteps(b, "history", b.history(r.UUID), back)
}
