// Package storetest is the conformance suite of the stores. It tests the promises in the comments
// of package store on a real database. Both stores pass all of it.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return openTest(t) })
//		storetest.RunPair(t, func(t *testing.T) (a, b store.Store) { ... })
//	}
//
// No test sleeps or depends on the speed of the machine. A test sets the times that must be due, or
// waits for what it has caused, at most for patience.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// patience limits the duration of each case. Only a case that hangs reaches it.
const patience = 2 * time.Minute

// A test is one case. Its name is the promise that it tests.
type test struct {
	name string
	run  func(b *fixture)
}

// Run tests every promise that needs one handle only. open returns a store on a fresh, empty
// database, and closes it at the end of the test.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, noun := range []struct {
		name  string
		tests []test
	}{
		{"start", starts},
		{"step", steps},
		{"marker", markers},
		{"name", names},
		{"payload", payloads},
		{"run", runs},
		{"guard", guards},
		{"batch", batches},
		{"claim", claims},
		{"crash", crashes},
		{"hold", holds},
		{"suspect", suspects},
		{"lease", leases},
		{"overdue", overdues},
		{"nonce", nonces},
		{"outage", outages},
		{"history", histories},
		{"expire", expiries},
		{"get", gets},
		{"child", children},
		{"child ends", childEnds},
		{"signal", signals},
		{"receive", receives},
		{"control", controls},
		{"order", orders},
		{"terminate", terminations},
		{"deadline", deadlines},
		{"owned run changes", ownedRunChangeTests},
		{"list", lists},
		{"overview", overviews},
		{"changes", changes},
		{"tree", trees},
		{"tag", tags},
		{"token", tokens},
		{"permit", permits},
		{"limit", limits},
		{"queue", queues},
		{"admission", admissions},
		{"requeue", requeues},
		{"repair", repairs},
		{"fork", forks},
		{"retention", retentions},
		{"drift", drifts},
		{"continue", continues},
		{"sweep", sweeps},
		{"version", versions},
		{"schedule", schedules},
		{"fold", folds},
		{"event", events},
		{"act", acts},
		{"outline", outlines},
		{"trace", traces},
		{"context", contexts},
		{"race", races},
		{"control race", controlRaces},
	} {
		t.Run(noun.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range noun.tests {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newBed(t, open(t)))
				})
			}
		})
	}
}

// fixture holds one case on one database. Its times are measured on the database's clock.
type fixture struct {
	*testing.T
	ctx    context.Context
	store  store.Store
	now    time.Time // when the case began; whole microseconds
	worker uuid.UUID // the owner of the runs that running returns
}

func newBed(t *testing.T, s store.Store) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	b := &fixture{T: t, ctx: ctx, store: s, worker: uuid.New()}
	b.now = b.clock()
	return b
}

func (b *fixture) clock() time.Time {
	b.Helper()
	now, err := b.store.Now(b.ctx)
	if err != nil {
		b.Fatalf("Now: %v", err)
	}
	return now.Round(time.Microsecond)
}

// afterStart returns the time d after the beginning of the case.
func (b *fixture) afterStart(d time.Duration) time.Time { return b.now.Add(d) }

// commit commits a batch, which must succeed.
func (b *fixture) commit(batch *store.Batch) {
	b.Helper()
	if err := b.store.Commit(b.ctx, batch); err != nil {
		b.Fatalf("Commit: %v", err)
	}
}

func (b *fixture) commitStart(r store.Run) *store.StartWrite {
	b.Helper()
	w := &store.StartWrite{Run: r}
	b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	return w
}

func (b *fixture) commitStep(s store.Step, exists bool) *store.StepWrite {
	b.Helper()
	w := &store.StepWrite{Step: s, RowExists: exists}
	b.commit(&store.Batch{Steps: []*store.StepWrite{w}})
	return w
}

func (b *fixture) commitOwnershipEnd(w store.OwnershipEnd) *store.OwnershipEnd {
	b.Helper()
	if w.Now.IsZero() {
		w.Now = b.now
	}
	b.commit(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&w}})
	return &w
}

// nonce is the nonce of all claims and starts, except in the cases about nonces.
const nonce = 0xfade_cafe

// epochAt returns the epoch with the given count and the usual nonce.
func epochAt(count int32) store.Epoch { return store.Epoch{Count: count, Nonce: nonce} }

// newRunningRun returns a run that this case's worker owns from its start. The run is not committed.
func (b *fixture) newRunningRun(name string) store.Run {
	id, name := store.NewRootIdentity(name)
	return store.Run{
		UUID: id, Name: name, Workflow: "flow", Queue: "queue", Status: store.Running, Epoch: epochAt(1),
		Owner: owner(b.worker), Input: []byte("{}"),
		CreatedAt: b.now, StartedAt: b.now, WakeAt: b.afterStart(time.Hour),
	}
}

// newPendingRun returns a run that any worker may claim from wakeAt on. The run is not committed.
func (b *fixture) newPendingRun(name string, wakeAt time.Time) store.Run {
	r := b.newRunningRun(name)
	r.Status, r.Epoch, r.Owner, r.StartedAt, r.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, time.Time{}, wakeAt
	return r
}

// commitRunningRun commits and returns a running run.
func (b *fixture) commitRunningRun(name string) store.Run {
	b.Helper()
	r := b.newRunningRun(name)
	wantOutcome(b, "start of "+quoteName(r.Name), b.commitStart(r).Outcome, store.Written)
	return r
}

// commitPendingRun commits and returns a pending run.
func (b *fixture) commitPendingRun(name string, wakeAt time.Time) store.Run {
	b.Helper()
	r := b.newPendingRun(name, wakeAt)
	wantOutcome(b, "start of "+quoteName(r.Name), b.commitStart(r).Outcome, store.Written)
	return r
}

// completed returns the checkpoint of a step that succeeded at its first attempt.
func (b *fixture) completed(run uuid.UUID, epoch store.Epoch, name string) store.Step {
	return store.Step{
		Run: run, Name: name, Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: epoch,
		Output: []byte(`"done"`), StartedAt: b.now, EndedAt: b.afterStart(time.Second),
	}
}

// startedMarker returns the started marker of a step.
func (b *fixture) startedMarker(run uuid.UUID, epoch store.Epoch, attempt int32, name string) store.Step {
	return store.Step{
		Run: run, Name: name, Kind: store.KindStep, Status: store.StepStarted, Attempt: attempt, Epoch: epoch, StartedAt: b.now,
	}
}

// backoff returns the checkpoint of a step whose attempt failed, and whose next attempt is due a
// minute after the beginning of the case.
func (b *fixture) backoff(run uuid.UUID, epoch store.Epoch, attempt int32, name string) store.Step {
	s := b.startedMarker(run, epoch, attempt, name)
	s.Status, s.Error, s.EndedAt, s.NextAt = store.StepBackoff, []byte(`"try"`), b.afterStart(time.Second), b.afterStart(time.Minute)
	return s
}

// newCompletion returns the write that completes a run.
func (b *fixture) newCompletion(run uuid.UUID, epoch store.Epoch) store.OwnershipEnd {
	return store.OwnershipEnd{
		UUID: run, Now: b.afterStart(2 * time.Second), Epoch: epoch, Status: store.Completed, Output: []byte(`"all"`), EndedAt: b.afterStart(2 * time.Second),
	}
}

// query returns a claim by a new worker at the given time, with leases of an hour.
func (b *fixture) query(at time.Time) store.ClaimQuery {
	return store.ClaimQuery{
		Worker: uuid.New(), EpochNonce: nonce, Filter: store.NewClaimFilter([]string{"flow"}, nil), Limit: 100, MaxSuspects: 1,
		Now: at, LeaseUntil: at.Add(time.Hour),
	}
}

func (b *fixture) claim(q store.ClaimQuery) store.ClaimResult {
	b.Helper()
	result, err := b.store.Claim(b.ctx, q)
	if err != nil {
		b.Fatalf("Claim: %v", err)
	}
	return result
}

// claimOne claims runs, which must be exactly the given run.
func (b *fixture) claimOne(q store.ClaimQuery, run uuid.UUID) store.ClaimedRun {
	b.Helper()
	result := b.claim(q)
	if len(result.Runs) != 1 || result.Runs[0].Run.UUID != run {
		b.Fatalf("Claim at %v: got %v, want the run %s alone", q.Now.Sub(b.now), describeClaims(result.Runs), run)
	}
	return result.Runs[0]
}

// row reads a run, which must exist.
func (b *fixture) row(run uuid.UUID) store.Run {
	b.Helper()
	rows := b.get(run.String())
	if rows[0] == nil {
		b.Fatalf("Get: the run %s is not there", run)
	}
	return *rows[0]
}

func (b *fixture) get(refs ...string) []*store.Run {
	b.Helper()
	all := make([]store.RunRef, len(refs))
	for i, text := range refs {
		all[i] = store.RunRef{UUIDOrName: text}
	}
	rows, err := b.store.GetRuns(b.ctx, all)
	if err != nil {
		b.Fatalf("Get: %v", err)
	}
	if len(rows) != len(refs) {
		b.Fatalf("Get returned %d rows to %d references", len(rows), len(refs))
	}
	return rows
}

func (b *fixture) history(run uuid.UUID) []store.Step {
	b.Helper()
	history, err := b.store.History(b.ctx, run)
	if err != nil {
		b.Fatalf("History: %v", err)
	}
	return history
}

func (b *fixture) renew(h store.Heartbeat) store.RenewResult {
	b.Helper()
	pulse, err := b.store.RenewLeases(b.ctx, h)
	if err != nil {
		b.Fatalf("Renew: %v", err)
	}
	return pulse
}

func (b *fixture) workers() []store.Worker {
	b.Helper()
	workers, err := b.store.Workers(b.ctx)
	if err != nil {
		b.Fatalf("Workers: %v", err)
	}
	return workers
}

func owner(worker uuid.UUID) uuid.NullUUID { return uuid.NullUUID{UUID: worker, Valid: true} }
