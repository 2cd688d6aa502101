package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// sleeping returns a paused run that waits for a time in each possible way, and its checkpoints.
func (b *fixture) sleeping() (r store.Run, want []store.Step) {
	b.Helper()
	r = b.newRunningRun("")
	r.Deadline = b.afterStart(2 * time.Hour)
	b.commitStart(r)
	sleep := b.completed(r.UUID, epochAt(1), "asleep")
	sleep.Kind, sleep.Output, sleep.NextAt = store.KindSleep, nil, b.afterStart(time.Hour)
	wait, back := b.receive(r, "wait", "paid"), b.backoff(r.UUID, epochAt(1), 1, "retry")
	back.NextAt = b.afterStart(time.Hour)
	retry := b.completed(r.UUID, epochAt(1), "\x1frenewal")
	retry.Kind, retry.NextAt = store.KindKeyRenewal, b.afterStart(time.Hour)
	want = []store.Step{retry, sleep, b.completed(r.UUID, epochAt(1), "done"), back, wait.Step}
	b.commitReceive(wait)
	for _, s := range want[:4] {
		b.commitStep(s, false)
	}
	b.commitOwnershipEnd(b.park(r, b.afterStart(time.Hour)))
	wantSteps(b, "before the pause", b.history(r.UUID), want...)
	return r, want
}

func orderFreeze(b *fixture) {
	r, want := b.sleeping()
	pause, resume := b.newControlRequest(store.VerbPause, r.UUID), b.newControlRequest(store.VerbResume, r.UUID)
	pause.Now, resume.Now, resume.ShiftTimers = b.afterStart(20*time.Minute), b.afterStart(20*time.Minute+5*time.Hour), true
	b.controlRuns(pause)
	b.controlRuns(resume)
	for i := range want {
		if !want[i].NextAt.IsZero() {
			want[i].NextAt = want[i].NextAt.Add(5 * time.Hour)
		}
		if want[i].Status == store.StepBackoff { // the total timeout of a step counts from its start
			want[i].StartedAt = want[i].StartedAt.Add(5 * time.Hour)
		}
	}
	wantSteps(b, "what is waited for, five hours later", b.history(r.UUID), want...)
	got := b.row(r.UUID)
	if !got.Deadline.Equal(b.afterStart(7*time.Hour)) || !got.WakeAt.Equal(resume.Now) {
		b.Errorf("deadline %s, wakes at %s, want %s, and at once", show(got.Deadline), show(got.WakeAt), show(b.afterStart(7*time.Hour)))
	}
	b.controlRuns(resume)
	wantSteps(b, "the resume replayed", b.history(r.UUID), want...)
	wantRun(b, "the resume replayed", b.row(r.UUID), got)
}

func orderNoFreeze(b *fixture) {
	r, want := b.sleeping()
	pause, resume := b.newControlRequest(store.VerbPause, r.UUID), b.newControlRequest(store.VerbResume, r.UUID)
	pause.Now, resume.Now = b.afterStart(20*time.Minute), b.afterStart(20*time.Minute+5*time.Hour)
	b.controlRuns(pause)
	b.controlRuns(resume)
	wantSteps(b, "what is waited for", b.history(r.UUID), want...)
	if got := b.row(r.UUID); !got.Deadline.Equal(r.Deadline) {
		b.Errorf("deadline %s, want %s", show(got.Deadline), show(r.Deadline))
	}
}

// orderFreezeLate checks a run that learns of its pause after one of its sleeps has ended. The
// resume does not shift that sleep, but all others.
func orderFreezeLate(b *fixture) {
	r := b.newRunningRun("")
	b.commitStart(r)
	sleep := func(name string, seq int32, until time.Duration) store.Step {
		s := b.completed(r.UUID, epochAt(1), name)
		s.Kind, s.Output, s.Seq, s.NextAt = store.KindSleep, nil, seq, b.afterStart(until)
		return s
	}
	later := b.completed(r.UUID, epochAt(1), "later")
	later.Seq, later.StartedAt, later.EndedAt = 4, b.afterStart(30*time.Minute), b.afterStart(40*time.Minute)
	undo := b.completed(r.UUID, epochAt(1), "undo")
	undo.Kind, undo.Seq, undo.StartedAt, undo.EndedAt = store.KindCompensation, 6, b.afterStart(50*time.Minute), b.afterStart(50*time.Minute)
	want := []store.Step{
		sleep("over", 2, 30*time.Minute), sleep("not over", 3, 30*time.Minute+time.Second), later,
		sleep("begun later", 5, 30*time.Minute), undo,
	}
	for _, s := range want {
		b.commitStep(s, false)
	}
	pause, resume := b.newControlRequest(store.VerbPause, r.UUID), b.newControlRequest(store.VerbResume, r.UUID)
	pause.Now, resume.Now, resume.ShiftTimers = b.afterStart(20*time.Minute), b.afterStart(80*time.Minute), true
	b.controlRuns(pause)
	b.commitOwnershipEnd(b.park(r, b.afterStart(30*time.Minute)))
	b.controlRuns(resume)
	want[1].NextAt, want[3].NextAt = want[1].NextAt.Add(time.Hour), want[3].NextAt.Add(time.Hour)
	wantSteps(b, "an hour later", b.history(r.UUID), want...)
}
