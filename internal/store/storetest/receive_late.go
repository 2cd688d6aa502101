package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// arrived commits a signal with the given arrival time. The signal must be new.
func (b *fixture) arrived(r store.Run, name string, at time.Time) store.SignalWrite {
	b.Helper()
	w := b.message(r.UUID, name, 0)
	w.ArrivedAt = at
	wantOutcome(b, "signal "+name, b.commitSignal(w).Outcome, store.Written)
	return w
}

// waiting returns a run, and its receive, which waits until the given time.
func (b *fixture) waiting(until time.Time) (store.Run, *store.ReceiveWrite) {
	b.Helper()
	r := b.commitRunningRun("")
	w := b.receive(r, "wait", "paid")
	w.Step.NextAt = until
	b.wantWaiting("the wait", b.commitReceive(w))
	return r, w
}

func receiveLate(b *fixture) {
	r, wait := b.waiting(b.afterStart(time.Hour))
	late := b.arrived(r, "paid", b.afterStart(time.Hour+time.Microsecond))
	b.wantWaiting("a look after the time", b.commitReceive(wait))
	end := b.timeout(r, "wait", "paid")
	b.wantWaiting("the end", b.commitReceive(end))
	b.wantSignalReceived("another receive", b.commitReceive(b.receive(r, "next", "paid")), late.Payload)

	r, _ = b.waiting(b.afterStart(time.Hour))
	late = b.arrived(r, "paid", b.afterStart(2*time.Hour)) // its creation time and ID come before those of the next signal
	last := b.arrived(r, "paid", b.afterStart(time.Hour))
	b.wantSignalReceived("the end of the wait, by one that came at the very last moment", b.commitReceive(b.timeout(r, "wait", "paid")), last.Payload)
	b.wantSignalReceived("another receive", b.commitReceive(b.receive(r, "next", "paid")), late.Payload)

	r, _ = b.waiting(b.afterStart(time.Hour))
	late = b.arrived(r, "paid", b.afterStart(2*time.Hour))
	next := b.receive(r, "wait", "paid")
	next.Step.Attempt, next.Step.NextAt = 2, time.Time{}
	b.wantSignalReceived("the next attempt, without a time", b.commitReceive(next), late.Payload)
}

func receiveStamped(b *fixture) {
	r, wait := b.waiting(b.afterStart(-time.Second))
	w := b.message(r.UUID, "paid", -3600) // the sender's clock is an hour behind
	b.commitSignal(w)
	b.wantWaiting("a wait that was over a second ago", b.commitReceive(wait))
	end := b.timeout(r, "wait", "paid")
	end.Step.NextAt = wait.Step.NextAt
	b.wantWaiting("its end", b.commitReceive(end))

	r, _ = b.waiting(b.afterStart(time.Hour))
	w = b.message(r.UUID, "paid", 7200) // the sender's clock is two hours ahead
	b.commitSignal(w)
	b.wantSignalReceived("a wait that is over in an hour", b.commitReceive(b.timeout(r, "wait", "paid")), w.Payload)
}

func receiveBegins(b *fixture) {
	r := b.commitRunningRun("")
	w := b.arrived(r, "paid", b.afterStart(time.Hour))
	over := b.timeout(r, "wait", "paid")
	over.Step.NextAt = b.afterStart(-time.Hour)
	b.wantSignalReceived("a wait that is over at its first look", b.commitReceive(over), w.Payload)
}

// pausedWait has a run wait until an hour from now. The run is paused after twenty minutes for five
// hours, and a signal arrives two hours from now. pausedWait returns the receive that the next
// owner commits, and the signal.
func (b *fixture) pausedWait(freeze bool) (*store.ReceiveWrite, store.SignalWrite) {
	b.Helper()
	r, _ := b.waiting(b.afterStart(time.Hour))
	b.commitOwnershipEnd(b.park(r, b.afterStart(time.Hour)))
	pause, resume := b.newControlRequest(store.VerbPause, r.UUID), b.newControlRequest(store.VerbResume, r.UUID)
	pause.Now, resume.Now, resume.ShiftTimers = b.afterStart(20*time.Minute), b.afterStart(20*time.Minute+5*time.Hour), freeze
	b.controlRuns(pause)
	w := b.arrived(r, "paid", b.afterStart(2*time.Hour))
	b.controlRuns(resume)
	b.claimOne(b.query(resume.Now), r.UUID)
	r.Epoch = epochAt(2)
	return b.commitReceive(b.timeout(r, "wait", "paid")), w
}

func receivePaused(b *fixture) {
	w, signal := b.pausedWait(false)
	b.wantWaiting("the end of the wait", w)
	r := store.Run{UUID: w.Step.Run, Epoch: w.Step.Epoch}
	b.wantSignalReceived("another receive", b.commitReceive(b.receive(r, "next", "paid")), signal.Payload)
}

func receiveFrozen(b *fixture) {
	w, signal := b.pausedWait(true)
	b.wantSignalReceived("the end of the wait", w, signal.Payload)
}
