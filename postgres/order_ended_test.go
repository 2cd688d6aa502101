package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// TestAControlOperationLocksNoEndedRun: a control request locks no ended run, but reaches live runs below one.
func TestAControlOperationLocksNoEndedRun(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		root := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: root})
		ended, unbegun := childOf(root.UUID, "ended", at), childOf(root.UUID, "unbegun", at)
		begin(t, s, ended)
		beneath := childOf(ended.Run.UUID, "beneath", at)
		begin(t, s, beneath)
		unbegun.Run.Status, unbegun.Run.Epoch, unbegun.Run.Owner, unbegun.Run.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, at
		begin(t, s, unbegun)
		order(t, s, &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{unbegun.Run.UUID}})
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{finish(ended.Run.UUID, at)}})

		tx, err := s.userPool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over if it fails
		if _, err := tx.Exec(t.Context(), "SELECT FROM "+s.schema+".run WHERE id IN ($1, $2) FOR UPDATE", ended.Run.UUID, unbegun.Run.UUID); err != nil {
			t.Fatal(err)
		}
		results := order(t, s, &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{root.UUID}, Now: at.Add(time.Second)})
		if want := (store.ControlResult{Found: true, Status: store.Running, RequestedCount: 2}); results[0] != want {
			t.Errorf("the cancel returned %+v, not %+v", results[0], want)
		}
		if got := row(t, s, beneath.Run.UUID); got.Control != store.CancelRequested {
			t.Errorf("the run beneath one that has ended is %+v", got)
		}
	})
}
