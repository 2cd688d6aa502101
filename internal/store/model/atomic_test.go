//go:build model

package model_test

import (
	"context"
	"encoding/binary"
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

// family is a run at rest with so many children.
func family(t *testing.T, s store.Store, children int) []uuid.UUID {
	t.Helper()
	owner := uuid.NullUUID{UUID: workers[0], Valid: true}
	id := store.NewID(store.ShardOfName("family"))
	ids := []uuid.UUID{id}
	mustCommit(t, s, &store.Batch{Starts: []*store.Start{{Run: store.Run{
		ID: id, Name: "family", Workflow: "f", Queue: "q", Status: store.Running, Epoch: 1, Owner: owner, CreatedAt: base, StartedAt: base, WakeAt: base.Add(time.Hour),
	}}}})
	b := new(store.Batch)
	for i := range children {
		kid := store.NewChildID(id)
		ids = append(ids, kid)
		b.Starts = append(b.Starts, &store.Start{ParentEpoch: 1, Run: store.Run{
			ID: kid, Parent: uuid.NullUUID{UUID: id, Valid: true}, Name: fmt.Sprint(i), Workflow: "f", Queue: "q", Status: store.Pending, CreatedAt: base, WakeAt: base,
		}})
	}
	b.Runs = []*store.RunWrite{{ID: id, Now: base, Epoch: 1, Status: store.Waiting}}
	mustCommit(t, s, b)
	return ids
}

// All that an order changes is changed by one transaction: a process that dies in
// between leaves no tree that is half paused.
func TestAnOrderIsOneTransaction(t *testing.T) {
	for kind, open := range beds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			root := family(t, b.handles[0], 8)[0]
			for _, verb := range []store.Verb{store.VerbPause, store.VerbResume, store.VerbCancel} {
				n, err := b.transactions(t.Context(), func() error {
					return b.handles[0].Order(t.Context(), &store.Order{Verb: verb, Runs: []uuid.UUID{root}, Now: base})
				})
				if err != nil || n != 1 {
					t.Errorf("verb %d: %d transactions, %v, want 1", verb, n, err)
				}
			}
		})
	}
}

// Batches that concern the same runs lock them in one order, whatever order they come in:
// none is undone because it and another wait for each other. A lock on the run in the
// middle has each come as far as it gets alone.
func TestLocksAreSorted(t *testing.T) {
	b := beds["postgres"](t)
	ids := family(t, b.handles[0], 8)
	release, waiting, err := b.hold(t.Context(), ids[len(ids)/2])
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, s := range b.handles {
		batch := new(store.Batch)
		for _, id := range ids {
			batch.Signals = append(batch.Signals, &store.Signal{Run: id, ID: uuid.Must(uuid.NewV7()), Name: "go", CreatedAt: base})
		}
		if i == 1 {
			slices.Reverse(batch.Signals)
		}
		all.Go(func() {
			if err := s.Commit(t.Context(), batch); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	for n := 0; n < 2; {
		if n, err = waiting(); err != nil {
			t.Fatal(err)
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	all.Wait()
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
	id := store.NewID(store.ShardOfName("parent"))
	owner := uuid.NullUUID{UUID: workers[0], Valid: true}
	mustCommit(t, b.handles[0], &store.Batch{Starts: []*store.Start{{Run: store.Run{
		ID: id, Name: "parent", Workflow: "f", Queue: "q", Status: store.Running, Epoch: 1, Owner: owner, CreatedAt: base, StartedAt: base, WakeAt: base.Add(time.Hour),
	}}}})
	starts := make([]*store.Start, 8)
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range starts {
		starts[i] = &store.Start{ParentEpoch: 1, Run: store.Run{
			ID: store.NewChildID(id), Parent: uuid.NullUUID{UUID: id, Valid: true}, Name: fmt.Sprint(i), Workflow: "f", Queue: "q",
			Status: store.Pending, CreatedAt: base, WakeAt: base,
		}}
		all.Go(func() {
			<-gate
			if err := b.handles[i%2].Commit(t.Context(), &store.Batch{Starts: starts[i : i+1]}); err != nil {
				t.Errorf("start: %v", err)
			}
		})
	}
	all.Go(func() {
		<-gate
		if err := b.handles[round%2].Order(t.Context(), &store.Order{Verb: store.VerbCancel, Runs: []uuid.UUID{id}, Now: base}); err != nil {
			t.Errorf("cancel: %v", err)
		}
	})
	close(gate)
	all.Wait()
	tree, err := b.handles[0].Tree(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tree {
		if r.Control&store.CancelAsked == 0 {
			t.Errorf("round %d: %q is %s, and nothing is asked of it: it escaped the cancel of its parent", round, r.Name, r.Status)
		}
	}
	for _, w := range starts {
		found := slices.ContainsFunc(tree, func(r *store.Run) bool { return r.ID == w.Run.ID })
		if found != (w.Outcome == store.Written) {
			t.Errorf("round %d: the start of %q was answered %d, and its run is there: %v", round, w.Run.Name, w.Outcome, found)
		}
	}
}
