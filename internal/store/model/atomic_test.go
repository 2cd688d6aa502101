package model_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// commitFrames counts the transactions in an SQLite log, https://sqlite.org/fileformat2.html
// section 4: the header names the page size and a salt, and the last frame of each
// transaction has a size of the file.
func commitFrames(path string) (n int, err error) {
	log, err := os.ReadFile(path + "-wal")
	if err != nil || len(log) < 32 {
		return 0, err
	}
	frame := 24 + int(binary.BigEndian.Uint32(log[8:]))
	salt := log[16:24]
	for at := 32; at+frame <= len(log) && slices.Equal(log[at+8:at+16], salt); at += frame {
		if binary.BigEndian.Uint32(log[at+4:]) != 0 {
			n++
		}
	}
	return n, nil
}

func mustCommit(t *testing.T, s store.Store, b *store.Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// begun starts a run that the first worker owns, and returns its ID.
func begun(t *testing.T, s store.Store) uuid.UUID {
	t.Helper()
	id := store.NewUUID(store.ShardOfName("parent"))
	mustCommit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: store.Run{
		UUID: id, Name: "parent", Workflow: "f", Queue: "q", Status: store.Running, Epoch: firstEpoch, Owner: uuid.NullUUID{UUID: workers[0], Valid: true},
		CreatedAt: base, StartedAt: base, WakeAt: base.Add(time.Hour),
	}}}})
	return id
}

// beneath is a child that anybody may claim.
func beneath(parent uuid.UUID, name string) store.Run {
	return store.Run{
		UUID: store.NewChildUUID(parent), Parent: uuid.NullUUID{UUID: parent, Valid: true}, Name: name, Workflow: "f", Queue: "q",
		Status: store.Pending, CreatedAt: base, WakeAt: base,
	}
}

// family is a run at rest with so many children.
func family(t *testing.T, s store.Store, children int) []uuid.UUID {
	t.Helper()
	id := begun(t, s)
	ids := []uuid.UUID{id}
	b := new(store.Batch)
	for i := range children {
		kid := beneath(id, fmt.Sprint(i))
		ids = append(ids, kid.UUID)
		b.Starts = append(b.Starts, &store.StartWrite{ParentEpoch: firstEpoch, Run: kid})
	}
	b.OwnershipEnds = []*store.OwnershipEnd{{UUID: id, Now: base, Epoch: firstEpoch, Status: store.Waiting}}
	mustCommit(t, s, b)
	return ids
}

// All that an order changes is changed by one transaction: a process that dies in
// between leaves no tree that is half paused.
func TestAControlOperationIsOneTransaction(t *testing.T) {
	for kind, open := range beds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			root := family(t, b.handles[0], 8)[0]
			for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbResume, store.VerbCancel} {
				n, err := b.transactions(t.Context(), func() error {
					return b.handles[0].ControlRuns(t.Context(), &store.ControlRequest{Verb: verb, Runs: []uuid.UUID{root}, Now: base})
				})
				if err != nil || n != 1 {
					t.Errorf("verb %d: %d transactions, %v, want 1", verb, n, err)
				}
			}
		})
	}
}

// Batches that concern the same runs lock them in one order, whatever order they come in:
// none is undone because it and another wait for each other. So what waits for the run in
// the middle holds those before it, and no other.
func TestLocksAreSorted(t *testing.T) {
	t.Parallel()
	b := beds["postgres"](t)
	ids := family(t, b.handles[0], 8)
	want := make([]string, len(ids))
	for i, id := range ids {
		want[i] = id.String()
	}
	slices.Sort(want) // they are of one shard
	middle := len(want) / 2
	for _, order := range []string{"in order", "in reverse"} {
		if err := b.third.hold(t.Context(), uuid.MustParse(want[middle]), 0); err != nil {
			t.Fatal(err)
		}
		batch := new(store.Batch)
		for _, id := range want {
			batch.Signals = append(batch.Signals, &store.SignalWrite{Run: uuid.MustParse(id), ID: uuid.Must(uuid.NewV7()), Name: "go", CreatedAt: base, ArrivedAt: base})
		}
		if order == "in reverse" {
			slices.Reverse(batch.Signals)
		}
		done := make(chan error, 1)
		go func() {
			err := b.handles[0].Commit(t.Context(), batch)
			for heldUp(err) { // its patience is short
				err = b.handles[0].Commit(t.Context(), batch)
			}
			done <- err
		}()
		if got := whatWaits(t, b.third, done); !slices.Equal(got, want[:middle]) {
			t.Errorf("%s: what waits for run %d of %d has locked %d others: %v, want those before it: %v", order, middle, len(want), len(got), got, want[:middle])
		}
		if err := errors.Join(b.third.release(t.Context(), false), <-done); err != nil {
			t.Fatal(order, err)
		}
	}
}

// whatWaits returns what the one call that waits for s, and is not done, has locked.
func whatWaits(t *testing.T, s *session, done chan error) []string {
	for {
		if len(done) > 0 {
			t.Fatal("it waits for nothing:", <-done)
		}
		before, err := s.waiters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(before) == 0 {
			continue
		}
		locked, err := s.locked(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		after, err := s.waiters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(after, before) { // it has waited all the time
			return locked
		}
	}
}

// So are names of steps and of runs that are new. What two batches in opposite orders find
// in their way in the middle is taken out of it when both are there: then each has what the
// other needs next, unless both came from the same side.
func TestNewNamesAreSorted(t *testing.T) {
	t.Parallel()
	b := beds["postgres"](t)
	const names = 9
	run := begun(t, b.handles[0])
	for what, c := range map[string]struct {
		taken string
		args  []any
		add   func(batch *store.Batch, name string)
	}{
		"steps": {
			`INSERT INTO durable.step (started_at, epoch, attempt, shard, kind, status, run_id, name) VALUES (now(), 1, 1, $1, 1, 3, $2, $3)`,
			[]any{store.ShardOf(run), run.String()},
			func(batch *store.Batch, name string) {
				batch.Steps = append(batch.Steps, &store.StepWrite{Step: store.Step{
					Run: run, Name: name, Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: firstEpoch, StartedAt: base, EndedAt: base,
				}})
			},
		},
		"starts": {
			`INSERT INTO durable.run (created_at, epoch, shard, status, id, workflow, queue, lane, name) VALUES (now(), 0, $1, 1, $2, 'f', 'q', 0, $3)`,
			[]any{store.ShardOf(run), store.NewUUID(store.ShardOf(run)).String()},
			func(batch *store.Batch, name string) {
				r := beneath(run, name) // of the same shard
				r.Parent = uuid.NullUUID{}
				batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
			},
		},
	} {
		try := func(round int) error {
			name := func(i int) string { return fmt.Sprint(what, "-", round, "-", i) }
			if err := b.third.make(t.Context(), c.taken, append(slices.Clone(c.args), name(names/2))...); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, len(b.handles))
			for i, s := range b.handles {
				batch := new(store.Batch)
				for k := range names {
					if i == 1 {
						k = names - 1 - k
					}
					c.add(batch, name(k))
				}
				go func() { done <- s.Commit(t.Context(), batch) }()
			}
			for waiters := 0; waiters < len(b.handles) && len(done) == 0; {
				list, err := b.third.waiters(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				waiters = len(list)
			}
			return errors.Join(b.third.release(t.Context(), false), <-done, <-done)
		}
		// Patience may have ended before the release. Those that wait for each other, do so
		// in each round.
		err := try(0)
		for round := 1; err != nil && round < 4; round++ {
			t.Log(what, err)
			err = try(round)
		}
		if err != nil {
			t.Errorf("%s: two batches wait for each other: %v", what, err)
		}
	}
}

// A child's start and what is asked of its parent happen one after the other: a start that
// meets a cancel which is not committed yet waits for it, and then starts nothing.
func TestAStartWaitsForWhatIsAskedOfItsParent(t *testing.T) {
	t.Parallel()
	b := beds["postgres"](t)
	for _, asked := range []store.ControlBits{store.CancelRequested, store.PausedItself} {
		for _, tags := range [][]store.Tag{nil, {{Key: "t", Value: "1"}}} {
			if err := b.empty(t.Context()); err != nil {
				t.Fatal(err)
			}
			parent := begun(t, b.handles[0])
			start := &store.StartWrite{Run: beneath(parent, "kid"), ParentEpoch: firstEpoch, Tags: tags}
			if err := b.third.hold(t.Context(), parent, asked); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				err := b.handles[0].Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{start}})
				for err == nil && start.Outcome == store.Locked {
					err = b.handles[0].Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{start}})
				}
				done <- err
			}()
			waits := false
			for !waits && len(done) == 0 {
				waiters, err := b.third.waiters(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				waits = len(waiters) > 0
			}
			if err := errors.Join(b.third.release(t.Context(), true), <-done); err != nil {
				t.Fatal(err)
			}
			tree, err := b.handles[0].RunTree(t.Context(), parent, false)
			if err != nil {
				t.Fatal(err)
			}
			if !waits || start.Outcome != store.Fenced || len(tree) != 1 {
				t.Errorf("control %d, tags %v: the start has waited: %v, returned %d, and %d runs are there: want true, %d, 1", asked, tags, waits, start.Outcome, len(tree), store.Fenced)
			}
		}
	}
}

// A child is started by a run that goes on running, or not at all: not while that is being
// cancelled, and not after its takeover.
func TestNoOrphanIsStarted(t *testing.T) {
	for kind, open := range beds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			for round := range 20 {
				if err := b.empty(context.Background()); err != nil {
					t.Fatal(err)
				}
				orphans(t, b, round)
			}
		})
	}
}

func orphans(t *testing.T, b *bed, round int) {
	id := begun(t, b.handles[0])
	starts := make([]*store.StartWrite, 8)
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range starts {
		starts[i] = &store.StartWrite{ParentEpoch: firstEpoch, Run: beneath(id, fmt.Sprint(i))}
		all.Go(func() {
			<-gate
			if err := b.handles[i%2].Commit(t.Context(), &store.Batch{Starts: starts[i : i+1]}); err != nil {
				t.Errorf("start: %v", err)
			}
		})
	}
	all.Go(func() {
		<-gate
		if err := b.handles[round%2].ControlRuns(t.Context(), &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{id}, Now: base}); err != nil {
			t.Errorf("cancel: %v", err)
		}
	})
	close(gate)
	all.Wait()
	tree, err := b.handles[0].RunTree(t.Context(), id, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tree {
		if r.Control&store.CancelRequested == 0 {
			t.Errorf("round %d: %q is %s, and nothing is asked of it: it escaped the cancel of its parent", round, r.Name, r.Status)
		}
	}
	for _, w := range starts {
		found := slices.ContainsFunc(tree, func(r *store.Run) bool { return r.UUID == w.Run.UUID })
		if found != (w.Outcome == store.Written) {
			t.Errorf("round %d: the start of %q returned %d, and its run is there: %v", round, w.Run.Name, w.Outcome, found)
		}
	}
}

// firstEpoch is that of every run that its creator owns.
var firstEpoch = store.Epoch{Count: 1, Nonce: 7}
