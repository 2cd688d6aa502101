package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

var steps = []test{
	{"a step is written whole", stepWhole},
	{"a replay is written", stepReplay},
	{"a later writer adopts", stepAdopts},
	{"only exactly the same is a replay", stepExactly},
	{"a terminal row is never updated", stepTerminal},
	{"an older epoch is fenced", stepOldEpoch},
	{"a run that does not run fences", stepNotRunning},
	{"a missing run fences", stepMissing},
	{"one name in two runs", stepTwoRuns},
	{"a large batch in any order", stepMany},
}

func stepWhole(b *fixture) {
	r := b.commitRunningRun("")
	var want []store.Step
	for i, kind := range []store.StepKind{store.KindStep, store.KindTx} {
		for j, status := range []store.StepStatus{store.StepStarted, store.StepBackoff, store.StepCompleted, store.StepFailed} {
			s := store.Step{Run: r.UUID, Name: fmt.Sprint(i, j), Kind: kind, Status: status, Attempt: int32(3 + j), Epoch: epochAt(1), StartedAt: b.afterStart(time.Duration(j))}
			s.StartedAt = b.afterStart(time.Duration(j) * time.Microsecond)
			switch status {
			case store.StepBackoff:
				s.Error, s.EndedAt, s.NextAt = []byte(`{"text":"no"}`), b.afterStart(time.Second), b.afterStart(time.Hour)
			case store.StepCompleted:
				s.Output, s.EndedAt = []byte(`{"n":1}`), b.afterStart(time.Second)
			case store.StepFailed:
				s.Error, s.EndedAt = []byte(`{"text":"never"}`), b.afterStart(time.Second)
			}
			wantOutcome(b, "step "+s.Name, b.commitStep(s, false).Outcome, store.Written)
			want = append(want, s)
		}
	}
	wantSteps(b, "history", b.history(r.UUID), want...)
	wantRun(b, "the run, which no step changes", b.row(r.UUID), r)
}

func stepReplay(b *fixture) {
	r := b.commitRunningRun("")
	marker, done := b.startedMarker(r.UUID, epochAt(1), 1, "marker"), b.completed(r.UUID, epochAt(1), "done")
	failed := b.completed(r.UUID, epochAt(1), "failed")
	failed.Status, failed.Output, failed.Error = store.StepFailed, nil, []byte(`"no"`)
	batch := &store.Batch{Steps: []*store.StepWrite{{Step: marker}, {Step: done}, {Step: failed}}}
	for _, when := range []string{"first", "replayed", "replayed after the end"} {
		for _, w := range batch.Steps {
			w.Outcome, w.RecordedStep, w.RunState = store.Fenced, &store.Step{}, store.RunState{Found: true} // results of an earlier try
		}
		b.commit(batch)
		for _, w := range batch.Steps {
			wantOutcome(b, w.Step.Name+", "+when, w.Outcome, store.Written)
			if w.RecordedStep != nil {
				b.Errorf("%s, %s: a row is attached to a written step", w.Step.Name, when)
			}
		}
		wantSteps(b, when, b.history(r.UUID), done, failed, marker)
		if when == "replayed" {
			wantOutcome(b, "finish", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1))).Outcome, store.Written)
		}
	}
}

func stepAdopts(b *fixture) {
	r := b.commitRunningRun("")
	first := b.completed(r.UUID, epochAt(1), "charge")
	b.commitStep(first, false)
	for _, exists := range []bool{false, true} {
		second := b.completed(r.UUID, epochAt(1), "charge")
		second.Attempt, second.Output = 2, []byte(`"second"`)
		w := b.commitStep(second, exists)
		what := fmt.Sprintf("the second writer (exists %v)", exists)
		wantOutcome(b, what, w.Outcome, store.AlreadyRecorded)
		wantRecorded(b, what, w.RecordedStep, first)
	}
	wantSteps(b, "history", b.history(r.UUID), first)
}

// stepExactly checks that only one of two values for the same attempt becomes the checkpoint,
// because a writer with the outcome Written continues with its own value.
func stepExactly(b *fixture) {
	r := b.commitRunningRun("")
	first := b.completed(r.UUID, epochAt(1), "charge")
	b.commitStep(first, false)
	for name, change := range map[string]func(*store.Step){
		"another output": func(s *store.Step) { s.Output = []byte(`"other"`) },
		"no output":      func(s *store.Step) { s.Output = nil },
		"empty output":   func(s *store.Step) { s.Output = []byte{} },
		"a failure":      func(s *store.Step) { s.Status, s.Output, s.Error = store.StepFailed, nil, []byte(`"no"`) },
	} {
		other := first
		change(&other)
		w := b.commitStep(other, false)
		wantOutcome(b, name+" of the same attempt", w.Outcome, store.AlreadyRecorded)
		wantRecorded(b, name+" of the same attempt", w.RecordedStep, first)
	}
	wantSteps(b, "history", b.history(r.UUID), first)
}

func stepTerminal(b *fixture) {
	for _, status := range []store.StepStatus{store.StepCompleted, store.StepFailed} {
		r := b.commitPendingRun("", b.now)
		b.claimOne(b.query(b.now), r.UUID)
		first := b.completed(r.UUID, epochAt(1), "charge")
		first.Status = status
		b.commitStep(first, false)
		b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID) // its lease has expired
		for _, second := range []store.Step{
			b.startedMarker(r.UUID, epochAt(2), 2, "charge"), b.backoff(r.UUID, epochAt(2), 2, "charge"), b.completed(r.UUID, epochAt(2), "charge"),
		} {
			what := fmt.Sprintf("%s over %s", second.Status, status)
			w := b.commitStep(second, true)
			wantOutcome(b, what, w.Outcome, store.AlreadyRecorded)
			wantRecorded(b, what, w.RecordedStep, first)
		}
		wantSteps(b, "history", b.history(r.UUID), first)
		b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(2))) // so that the next round claims its own run
	}
}

func stepOldEpoch(b *fixture) {
	r := b.commitPendingRun("", b.now)
	b.claimOne(b.query(b.now), r.UUID)
	marker := b.startedMarker(r.UUID, epochAt(1), 1, "marked")
	b.commitStep(marker, false)
	b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
	recorded := b.completed(r.UUID, epochAt(2), "recorded")
	b.commitStep(recorded, false)
	want := store.RunState{Found: true, Status: store.Running, Epoch: epochAt(2)}
	for _, epoch := range []store.Epoch{epochAt(1), epochAt(3)} {
		for _, name := range []string{"new", "marked", "recorded"} {
			s := b.completed(r.UUID, epoch, name)
			what := fmt.Sprintf("%s step at epoch %s of a run at 2", name, epoch)
			w := b.commitStep(s, name == "marked")
			wantOutcome(b, what, w.Outcome, store.Fenced)
			wantState(b, what, w.RunState, want)
		}
		for _, s := range []store.Step{b.startedMarker(r.UUID, epoch, 1, "begun"), b.backoff(r.UUID, epoch, 1, "tried")} {
			wantOutcome(b, fmt.Sprintf("%s step at epoch %s of a run at 2", s.Name, epoch), b.commitStep(s, false).Outcome, store.Fenced)
		}
	}
	wantSteps(b, "history", b.history(r.UUID), marker, recorded)
}

func stepNotRunning(b *fixture) {
	for _, status := range []store.Status{store.Pending, store.Waiting, store.Paused, store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.commitRunningRun("")
		marker := b.startedMarker(r.UUID, epochAt(1), 1, "begun")
		b.commitStep(marker, false)
		wantOutcome(b, status.String(), b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status}).Outcome, store.Written)
		for _, name := range []string{"new", "begun"} {
			w := b.commitStep(b.completed(r.UUID, epochAt(1), name), name == "begun")
			wantOutcome(b, "a "+name+" step of a run that is "+status.String(), w.Outcome, store.Fenced)
			wantState(b, status.String(), w.RunState, releasedRunState(status))
		}
		wantSteps(b, status.String(), b.history(r.UUID), marker)
	}
}

func stepMissing(b *fixture) {
	id, _ := store.NewRootIdentity("")
	for _, exists := range []bool{false, true} {
		w := b.commitStep(b.completed(id, epochAt(1), "charge"), exists)
		wantOutcome(b, "a step of no run", w.Outcome, store.Fenced)
		wantState(b, "a step of no run", w.RunState, store.RunState{})
	}
	wantSteps(b, "no run", b.history(id))
}

func stepMany(b *fixture) {
	batch := &store.Batch{}
	want := make(map[string][]store.Step)
	for range 10 {
		r := b.commitRunningRun("")
		for i := range 60 {
			s := b.completed(r.UUID, epochAt(1), fmt.Sprint("step-", i))
			s.Output = []byte(fmt.Sprintf(`"%s of %s"`, s.Name, r.UUID))
			batch.Steps = append(batch.Steps, &store.StepWrite{Step: s})
			want[r.UUID.String()] = append(want[r.UUID.String()], s)
		}
	}
	fenced := b.completed(batch.Steps[0].Step.Run, epochAt(7), "fenced")
	batch.Steps = append(batch.Steps, &store.StepWrite{Step: fenced})
	rand.Shuffle(len(batch.Steps), func(i, j int) { batch.Steps[i], batch.Steps[j] = batch.Steps[j], batch.Steps[i] })
	b.commit(batch)
	for _, w := range batch.Steps {
		outcome := store.Written
		if w.Step.Name == "fenced" {
			outcome = store.Fenced
		}
		wantOutcome(b, w.Step.Name, w.Outcome, outcome)
	}
	for _, history := range want {
		slices.SortFunc(history, func(l, r store.Step) int { return strings.Compare(l.Name, r.Name) })
		wantSteps(b, "history", b.history(history[0].Run), history...)
	}
}

func stepTwoRuns(b *fixture) {
	one, two := b.commitRunningRun("one"), b.commitRunningRun("two")
	first, second := b.completed(one.UUID, epochAt(1), "charge"), b.completed(two.UUID, epochAt(1), "charge")
	second.Output = []byte(`"two's"`)
	b.commit(&store.Batch{Steps: []*store.StepWrite{{Step: first}, {Step: second}}})
	wantSteps(b, "one", b.history(one.UUID), first)
	wantSteps(b, "two", b.history(two.UUID), second)
}
