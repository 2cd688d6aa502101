package faults

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// deletionPoints is more than the points of a deletion.
const deletionPoints = 20

// deletionOf returns the deletion of a tree that ended long ago.
func deletionOf(ctx context.Context, s durable.Store, root string) (*store.DeleteTreesRequest, error) {
	found, err := s.GetRunsSelectingPayloads(ctx, []store.RunRef{{UUIDOrName: root}}, store.NoPayloads)
	if err != nil || found[0] == nil {
		return nil, err
	}
	now := time.Now()
	return &store.DeleteTreesRequest{Now: now, WithEvents: true, Trees: []store.DeleteTreeRequest{
		{Root: found[0].UUID, Name: root, Epoch: found[0].Epoch, EndedBefore: now.Add(-time.Hour)},
	}}, nil
}

func init() {
	// delete deletes tree ID, and dies at its point N. It says so if there is no such point, and dies then.
	scenarios["delete"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &fatalPoint{point: j.N, kind: s.Name(), last: deletionPoints}
		opened, done, err := traced(ctx, j, s, f)
		if err != nil {
			return err
		}
		defer done()
		d, err := deletionOf(ctx, opened, j.ID) // opens a connection
		if err != nil || d == nil {
			return fmt.Errorf("there is no run %s: %w", j.ID, err)
		}
		leave := f.enter()
		if s.Name() == "sqlite" {
			ctx = passContext{ctx, f.trip}
		}
		err = opened.DeleteTrees(ctx, d)
		leave()
		if err != nil {
			return err
		}
		say("deleted", f.trips.Load())
		die()
		return nil
	}
}

// oldTree commits a root that was retried once, and a hundred children, which all ended long ago. It returns their UUIDs.
func oldTree(t *testing.T, s durable.Store, id string) (all []uuid.UUID) {
	t.Helper()
	ended, epoch := time.Now().Add(-48*time.Hour).Truncate(time.Microsecond), store.Epoch{Count: 1, Nonce: 7}
	commit := func(b *store.Batch) {
		t.Helper()
		must(t, "commit", s.Commit(bounded(t), b))
	}
	run := store.Run{
		Name: id, Workflow: "flow", Queue: "default", Status: store.Running, Epoch: epoch, Owner: store.ValidNullUUID(uuid.New()), Input: []byte(`""`),
		CreatedAt: ended, StartedAt: ended, WakeAt: time.Now().Add(time.Hour),
	}
	run.UUID = store.NewUUIDAt(store.ShardOfName(id), ended)
	step := store.Step{Run: run.UUID, Name: "first", Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: epoch, StartedAt: ended, EndedAt: ended}
	commit(&store.Batch{Starts: []*store.StartWrite{{Run: run}}})
	commit(&store.Batch{Steps: []*store.StepWrite{{Step: step}}})
	all = append(all, run.UUID)
	kids, ends := new(store.Batch), new(store.Batch)
	for i := range 100 {
		kid := run
		kid.Name, kid.Parent = fmt.Sprint("kid-", i), uuid.NullUUID{UUID: run.UUID, Valid: true}
		kid.UUID = store.ChildUUID(run.UUID, kid.Name, ended, 1)
		kids.Starts = append(kids.Starts, &store.StartWrite{Run: kid, ParentEpoch: epoch})
		ends.OwnershipEnds = append(ends.OwnershipEnds, &store.OwnershipEnd{UUID: kid.UUID, ParentToWake: kid.Parent, Epoch: epoch, Status: store.Completed, EndedAt: ended, Now: ended})
		all = append(all, kid.UUID)
	}
	commit(kids)
	commit(ends)
	end := func(epoch store.Epoch) {
		commit(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run.UUID, Epoch: epoch, Status: store.Failed, EndedAt: ended, Now: ended}}})
	}
	end(epoch)
	p := &store.RepairRequest{RequestID: uuid.New(), Verb: "retry", Now: ended, Runs: []store.RunRepair{{
		Run: run.UUID, StateBefore: store.RunState{Found: true, Status: store.Failed, Epoch: epoch}, SupersededNumber: 1, CheckpointCount: 1, KeptSteps: []string{"first"},
		Epoch: epoch.Next(7), Status: store.Pending, WakeAt: ended,
	}}}
	must(t, "repair", s.ApplyRepair(bounded(t), p))
	claimed, err := s.Claim(bounded(t), store.ClaimQuery{
		Worker: uuid.New(), EpochNonce: 7, Now: time.Now(), LeaseUntil: time.Now().Add(time.Minute), Limit: 1,
		Filter: store.NewClaimFilter([]string{"flow"}, nil),
	})
	must(t, "claim", err)
	if len(claimed.Runs) != 1 {
		t.Fatalf("claimed %d runs", len(claimed.Runs))
	}
	end(claimed.Runs[0].Run.Epoch)
	return all
}

// Row 53: processes are killed at each round trip of a deletion, and between its statements on SQLite. A tree is there as a whole,
// with its checkpoints and its generations, or nothing of it is.
func TestRow53_DeathInADeletion(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.openIn(t)
		deaths := 0
		for point := int64(0); point < deletionPoints; point++ {
			id := fmt.Sprint("tree-", point)
			all := oldTree(t, s, id)
			p := spawn(t, job{Scenario: "delete", DB: db, ID: id, N: point})
			_, told := p.next("deleted")
			p.mustBeKilled(syscall.SIGKILL)
			statuses, err := s.Statuses(bounded(t), all)
			must(t, "read", err)
			left := 0
			for _, status := range statuses {
				if status != 0 {
					left++
				}
			}
			history, err := s.History(bounded(t), all[0])
			must(t, "read", err)
			archive, err := s.History(bounded(t), store.GenerationUUID(all[0], 1))
			must(t, "read", err)
			generations, err := s.SupersededGenerations(bounded(t), all[0], store.GenerationsQuery{})
			must(t, "read", err)
			if left != 0 && left != len(all) || (len(history) == 1) != (left > 0) || (len(archive) == 1) != (left > 0) || (len(generations) == 1) != (left > 0) {
				t.Errorf("point %d: %d runs, %d and %d checkpoints, %d generations are left", point, left, len(history), len(archive), len(generations))
			}
			if left > 0 {
				deaths++
			}
			d, err := deletionOf(bounded(t), s, id)
			must(t, "read", err)
			if d != nil {
				await(t, "the deletion to succeed", func() bool {
					must(t, "delete", s.DeleteTrees(bounded(t), d))
					return d.Trees[0].Outcome == store.Written
				})
			}
			if told {
				break
			}
		}
		if deaths < 3 {
			t.Errorf("only %d processes died in a deletion", deaths)
		}
		t.Logf("deaths=%d", deaths)
	})
}
