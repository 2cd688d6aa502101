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
	run  func(b *bed)
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
		{"news", tidings},
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

// bed holds one case on one database. Its times are measured on the database's clock.
type bed struct {
	*testing.T
	ctx    context.Context
	s      store.Store
	now    time.Time // when the case began; whole microseconds
	worker uuid.UUID // the owner of the runs that running returns
}

func newBed(t *testing.T, s store.Store) *bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	b := &bed{T: t, ctx: ctx, s: s, worker: uuid.New()}
	b.now = b.clock()
	return b
}

func (b *bed) clock() time.Time {
	b.Helper()
	now, err := b.s.Now(b.ctx)
	if err != nil {
		b.Fatalf("Now: %v", err)
	}
	return now.Round(time.Microsecond)
}

// in returns the time d after the beginning of the case.
func (b *bed) in(d time.Duration) time.Time { return b.now.Add(d) }

// commit commits a batch, which must succeed.
func (b *bed) commit(batch *store.Batch) {
	b.Helper()
	if err := b.s.Commit(b.ctx, batch); err != nil {
		b.Fatalf("Commit: %v", err)
	}
}

func (b *bed) commitStart(r store.Run) *store.StartWrite {
	b.Helper()
	w := &store.StartWrite{Run: r}
	b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	return w
}

func (b *bed) commitStep(s store.Step, exists bool) *store.StepWrite {
	b.Helper()
	w := &store.StepWrite{Step: s, RowExists: exists}
	b.commit(&store.Batch{Steps: []*store.StepWrite{w}})
	return w
}

func (b *bed) commitRun(w store.OwnershipEnd) *store.OwnershipEnd {
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

// running returns a run that this case's worker owns from its start. The run is not committed.
func (b *bed) running(name string) store.Run {
	id, name := store.NewRootIdentity(name)
	return store.Run{
		UUID: id, Name: name, Workflow: "flow", Queue: "queue", Status: store.Running, Epoch: epochAt(1),
		Owner: owner(b.worker), Input: []byte("{}"),
		CreatedAt: b.now, StartedAt: b.now, WakeAt: b.in(time.Hour),
	}
}

// pending returns a run that any worker may claim from wakeAt on. The run is not committed.
func (b *bed) pending(name string, wakeAt time.Time) store.Run {
	r := b.running(name)
	r.Status, r.Epoch, r.Owner, r.StartedAt, r.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, time.Time{}, wakeAt
	return r
}

// started commits and returns a running run.
func (b *bed) started(name string) store.Run {
	b.Helper()
	r := b.running(name)
	wantOutcome(b, "start of "+short(r.Name), b.commitStart(r).Outcome, store.Written)
	return r
}

// queued commits and returns a pending run.
func (b *bed) queued(name string, wakeAt time.Time) store.Run {
	b.Helper()
	r := b.pending(name, wakeAt)
	wantOutcome(b, "start of "+short(r.Name), b.commitStart(r).Outcome, store.Written)
	return r
}

// completed returns the checkpoint of a step that succeeded at its first attempt.
func (b *bed) completed(run uuid.UUID, epoch store.Epoch, name string) store.Step {
	return store.Step{
		Run: run, Name: name, Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: epoch,
		Output: []byte(`"done"`), StartedAt: b.now, EndedAt: b.in(time.Second),
	}
}

// began returns the started marker of a step.
func (b *bed) began(run uuid.UUID, epoch store.Epoch, attempt int32, name string) store.Step {
	return store.Step{
		Run: run, Name: name, Kind: store.KindStep, Status: store.StepStarted, Attempt: attempt, Epoch: epoch, StartedAt: b.now,
	}
}

// backoff returns the checkpoint of a step whose attempt failed, and whose next attempt is due a
// minute after the beginning of the case.
func (b *bed) backoff(run uuid.UUID, epoch store.Epoch, attempt int32, name string) store.Step {
	s := b.began(run, epoch, attempt, name)
	s.Status, s.Error, s.EndedAt, s.NextAt = store.StepBackoff, []byte(`"try"`), b.in(time.Second), b.in(time.Minute)
	return s
}

// finish returns the write that completes a run.
func (b *bed) finish(run uuid.UUID, epoch store.Epoch) store.OwnershipEnd {
	return store.OwnershipEnd{
		UUID: run, Now: b.in(2 * time.Second), Epoch: epoch, Status: store.Completed, Output: []byte(`"all"`), EndedAt: b.in(2 * time.Second),
	}
}

// query returns a claim by a new worker at the given time, with leases of an hour.
func (b *bed) query(at time.Time) store.ClaimQuery {
	return store.ClaimQuery{
		Worker: uuid.New(), Nonce: nonce, Filter: store.NewClaimFilter([]string{"flow"}, nil), Limit: 100, MaxSuspects: 1,
		Now: at, LeaseUntil: at.Add(time.Hour),
	}
}

func (b *bed) claim(q store.ClaimQuery) store.ClaimResult {
	b.Helper()
	result, err := b.s.Claim(b.ctx, q)
	if err != nil {
		b.Fatalf("Claim: %v", err)
	}
	return result
}

// claimOne claims runs, which must be exactly the given run.
func (b *bed) claimOne(q store.ClaimQuery, run uuid.UUID) store.ClaimedRun {
	b.Helper()
	result := b.claim(q)
	if len(result.Runs) != 1 || result.Runs[0].Run.UUID != run {
		b.Fatalf("Claim at %v: got %v, want the run %s alone", q.Now.Sub(b.now), ids(result.Runs), run)
	}
	return result.Runs[0]
}

// row reads a run, which must exist.
func (b *bed) row(run uuid.UUID) store.Run {
	b.Helper()
	rows := b.get(run.String())
	if rows[0] == nil {
		b.Fatalf("Get: the run %s is not there", run)
	}
	return *rows[0]
}

func (b *bed) get(refs ...string) []*store.Run {
	b.Helper()
	all := make([]store.RunRef, len(refs))
	for i, text := range refs {
		all[i] = store.RunRef{UUIDOrName: text}
	}
	rows, err := b.s.Get(b.ctx, all)
	if err != nil {
		b.Fatalf("Get: %v", err)
	}
	if len(rows) != len(refs) {
		b.Fatalf("Get returned %d rows to %d references", len(rows), len(refs))
	}
	return rows
}

func (b *bed) history(run uuid.UUID) []store.Step {
	b.Helper()
	history, err := b.s.History(b.ctx, run)
	if err != nil {
		b.Fatalf("History: %v", err)
	}
	return history
}

func (b *bed) renew(h store.Heartbeat) store.RenewResult {
	b.Helper()
	pulse, err := b.s.Renew(b.ctx, h)
	if err != nil {
		b.Fatalf("Renew: %v", err)
	}
	return pulse
}

func (b *bed) workers() []store.Worker {
	b.Helper()
	workers, err := b.s.Workers(b.ctx)
	if err != nil {
		b.Fatalf("Workers: %v", err)
	}
	return workers
}

func owner(worker uuid.UUID) uuid.NullUUID { return uuid.NullUUID{UUID: worker, Valid: true} }
