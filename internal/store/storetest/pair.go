package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// RunPair tests everything that needs two handles on one database, as two processes have them. open
// returns two stores on one fresh, empty database, and closes them at the end of the test.
func RunPair(t *testing.T, open func(t *testing.T) (a, b store.Store)) {
	for _, c := range []struct {
		name string
		run  func(b *fixture, other store.Store)
	}{
		{"what one commits the other reads", pairReads},
		{"one takes over from the other", pairTakeover},
		{"a hint crosses over", pairHint},
		{"attending ends with its context", pairAttendEnds},
		{"the living are not dead", pairDead},
		{"who never attended is not dead", pairNeverAttended},
		{"a dead worker's runs are hinted at", pairExpired},
		{"one handle attends for two workers", pairTwo},
		{"news crosses over", pairNews},
		{"many senders: none lost, none twice", pairSenders},
		{"a signal against the end of the wait", raceTimeout},
		{"a signal against a park", raceWake},
		{"a child's end against its parent's park", raceChildEnd},
		{"ends of children against the parent's count", raceCount},
		{"a cancel against starts of children", raceOrphans},
		{"a cancel against the end", raceCancelFinish},
		{"a cancel against a claim", raceCancelClaim},
		{"a pause against a park and a resume", racePausePark},
		{"orders of overlapping trees", raceOverlap},
		{"events while both commit", raceEvents},
		{"of two repairs at once, one is made", raceRepairs},
		{"a repair against a claim", raceRepairClaim},
		{"a repair against a cancel", raceRepairCancel},
		{"a repair against signals", raceRepairSignals},
		{"a fence against a completion", raceFenceFinish},
		{"a fence against a checkpoint", raceFenceStep},
		{"a deletion against a repair", raceDeleteRepair},
		{"of two deletions at once, one deletes", raceDeletions},
		{"a deletion against the end of a detached child", raceDeleteDetached},
		{"both have one key for tokens", func(b *fixture, other store.Store) { tokenKeys(b, b.store, other) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			c.run(newBed(t, one), other)
		})
	}
}

// through returns the same case with the other handle as its store.
func (b *fixture) through(s store.Store) *fixture {
	other := *b
	other.store = s
	return &other
}

func pairReads(b *fixture, s store.Store) {
	other := b.through(s)
	r := b.commitRunningRun("order-42")
	wantRun(b, "read through the other", other.row(r.UUID), r)
	done := b.completed(r.UUID, epochAt(1), "charge")
	wantOutcome(b, "a step through the other", other.commitStep(done, false).Outcome, store.Written)
	wantSteps(b, "read back through the first", b.history(r.UUID), done)
	second := done
	second.Attempt = 2
	w := b.commitStep(second, false)
	wantOutcome(b, "a second writer", w.Outcome, store.AlreadyRecorded)
	wantRecorded(b, "a second writer", w.RecordedStep, done)
}

func pairTakeover(b *fixture, s store.Store) {
	other := b.through(s)
	r := b.commitPendingRun("", b.now)
	b.claimOne(b.query(b.now), r.UUID)
	b.commitStep(b.completed(r.UUID, epochAt(1), "charge"), false)
	got := other.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
	wantSteps(b, "the history that crossed over", got.History, b.completed(r.UUID, epochAt(1), "charge"))
	wantOutcome(b, "a step of the superseded", b.commitStep(b.completed(r.UUID, epochAt(1), "late"), false).Outcome, store.Fenced)
	wantOutcome(b, "a finish of the superseded", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1))).Outcome, store.Fenced)
	wantOutcome(b, "a finish of the owner", other.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(2))).Outcome, store.Written)
}

// listenCall is a call of Listen in the background.
type listenCall struct {
	hints               chan struct{} // buffers one hint that a run may be claimable
	ownedRunChangeHints chan struct{} // buffers one hint that the worker may have notifications
	stop                context.CancelFunc
	done                chan error
}

func (b *fixture) startListening(worker uuid.UUID) *listenCall {
	ctx, stop := context.WithCancel(b.ctx)
	a := &listenCall{hints: make(chan struct{}, 1), ownedRunChangeHints: make(chan struct{}, 1), stop: stop, done: make(chan error, 1)}
	note := func(of chan struct{}) {
		select {
		case of <- struct{}{}:
		default: // it holds a hint already
		}
	}
	go func() {
		a.done <- b.store.Listen(ctx, worker, func(h store.WakeHint) {
			if h&(store.HintClaim|store.HintAdmitted) != 0 {
				note(a.hints)
			}
			if h&store.HintOwnedRunChange != 0 {
				note(a.ownedRunChangeHints)
			}
		})
	}()
	b.Cleanup(stop)
	return a
}

// awaitListening makes runs claimable through another handle until the first hint arrives. After that,
// Listen misses no hint.
func (b *fixture) awaitListening(a *listenCall, other *fixture) {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		other.commitPendingRun("", b.now)
		select {
		case <-a.hints:
			return
		case <-tick.C:
		case err := <-a.done:
			b.Fatalf("Attend returned while its context lives: %v", err)
		case <-b.ctx.Done():
			b.Fatal("Attend never gave a hint of what another handle made claimable")
		}
	}
}

// dropBufferedHint removes the buffered hint. A hint that is still on its way may be taken for the hint of a
// later change: the contract allows superfluous hints.
func (b *fixture) dropBufferedHint(a *listenCall) {
	select {
	case <-a.hints:
	default:
	}
}

// wantHint waits for a hint.
func (b *fixture) wantHint(a *listenCall, of string) {
	b.Helper()
	select {
	case <-a.hints:
	case <-b.ctx.Done():
		b.Fatalf("no hint of %s", of)
	}
}

func (b *fixture) wantListenEnded(a *listenCall) {
	b.Helper()
	select {
	case err := <-a.done:
		if err != nil && !errors.Is(err, context.Canceled) {
			b.Errorf("Attend, after its context ended: got %v, want nil or %v", err, context.Canceled)
		}
	case <-b.ctx.Done():
		b.Fatal("Attend did not return after its context had ended")
	}
}

func pairHint(b *fixture, s store.Store) {
	other := b.through(s)
	a := b.startListening(b.worker)
	b.awaitListening(a, other)
	for round := range 5 {
		b.dropBufferedHint(a)
		switch round {
		case 0, 1, 2:
			other.commitPendingRun("", b.now)
		case 3, 4: // a run that its owner releases is claimable too
			r := other.commitRunningRun("")
			other.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now})
		}
		b.wantHint(a, fmt.Sprint("what another handle made claimable, round ", round))
	}
	a.stop()
	b.wantListenEnded(a)
}

func pairAttendEnds(b *fixture, s store.Store) {
	for range 3 { // later calls reconnect after the first call has released its resources
		a := b.startListening(b.worker)
		b.awaitListening(a, b.through(s))
		a.stop()
		b.wantListenEnded(a)
	}
	at := b.startListening(b.worker)
	at.stop() // before Listen has begun
	b.wantListenEnded(at)
	b.commit(&store.Batch{Starts: []*store.StartWrite{{Run: b.newRunningRun("")}}})
}

// pairDead checks that Dead never returns a live worker. Dead may miss a dead worker, because it
// only speeds up a takeover.
func pairDead(b *fixture, s store.Store) {
	other := b.through(s)
	b.renew(b.heartbeat())
	a := b.startListening(b.worker)
	b.awaitListening(a, other)
	b.renew(b.heartbeat())
	self := other.heartbeat()
	self.Worker.ID = uuid.New()
	other.renew(self)
	dead := func() []uuid.UUID {
		b.Helper()
		peers, err := s.DeadWorkers(b.ctx, self.Worker.ID, nil)
		if err != nil {
			b.Fatalf("DeadWorkers: %v", err)
		}
		return peers.Dead
	}
	for range 20 {
		if got := dead(); len(got) != 0 {
			b.Fatalf("dead: got %v, while %s attends and %s asks", got, b.worker, self.Worker.ID)
		}
	}
	if err := b.store.Close(); err != nil { // ends Listen at once, as the death of the process would
		b.Fatalf("Close: %v", err)
	}
	select {
	case <-a.done:
	case <-b.ctx.Done():
		b.Fatal("Attend did not return after its store was closed")
	}
	if got := dead(); slices.ContainsFunc(got, func(id uuid.UUID) bool { return id != b.worker }) {
		b.Errorf("dead: got %v, want %s or nobody", got, b.worker)
	}
}

func pairNeverAttended(b *fixture, s store.Store) {
	b.renew(b.heartbeat())
	if got, err := s.DeadWorkers(b.ctx, uuid.New(), nil); err != nil || len(got.Dead) != 0 {
		b.Errorf("dead: got %v, %v, want nobody: a worker without a presence may live", got, err)
	}
}

func pairExpired(b *fixture, s store.Store) {
	other := b.through(s)
	a := b.startListening(b.worker)
	b.awaitListening(a, other)
	dead := uuid.New()
	b.owned(dead, "dead's")
	b.dropBufferedHint(a)
	if n := other.endLeases(b.query(b.now), dead); n != 1 {
		b.Fatalf("freed %d runs, want 1", n)
	}
	b.wantHint(a, "a dead worker's run")
}

func pairTwo(b *fixture, s store.Store) {
	other := b.through(s)
	one, two := b.startListening(b.worker), b.startListening(uuid.New())
	b.awaitListening(one, other)
	b.awaitListening(two, other)
	one.stop()
	b.wantListenEnded(one)
	b.dropBufferedHint(two)
	other.commitPendingRun("", b.now)
	b.wantHint(two, "a run, after the other worker has left")
}
