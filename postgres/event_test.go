package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func types(events []store.Event) []store.EventType {
	var list []store.EventType
	for _, e := range events {
		list = append(list, e.Type)
	}
	return list
}

// TestEventsWaitForOlderTransactions: returned events are complete. An open transaction with an ID holds
// back all later events.
func TestEventsWaitForOlderTransactions(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		var all []store.Run
		var starts []*store.StartWrite
		for range 5 {
			run := running(uuid.New(), at)
			all, starts = append(all, run), append(starts, &store.StartWrite{Run: run})
		}
		begin(t, s, starts...)
		settled := func(after string, want int) []store.Event {
			t.Helper()
			var events []store.Event
			var err error
			for deadline := time.Now().Add(time.Minute); len(events) < want; { // other tests have transactions on this server too
				if events, err = s.Events(t.Context(), after, 10); err != nil || time.Now().After(deadline) {
					t.Fatalf("%d events, %v", len(events), err)
				}
			}
			return events
		}
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{finish(all[0].UUID, at), finish(all[1].UUID, at)}})
		first := settled("", 2)
		if first[0].Name != first[0].Run.String() || first[0].Workflow != "flow" || !first[0].At.Equal(at) || first[0].Type != store.EventCompleted {
			t.Errorf("the first event is %+v", first[0])
		}
		if one, err := s.Events(t.Context(), "", 1); err != nil || len(one) != 1 || one[0] != first[0] {
			t.Errorf("one event: %v, %v", one, err)
		}
		if rest, err := s.Events(t.Context(), first[0].Cursor, 10); err != nil || len(rest) != 1 || rest[0] != first[1] {
			t.Errorf("the rest: %v, %v", rest, err)
		}
		tx, err := s.userPool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: all[2].UUID, Epoch: epochAt(1), Status: store.Failed, EndedAt: at}}})
		if early, err := s.Events(t.Context(), first[1].Cursor, 10); err != nil || len(early) != 0 {
			t.Errorf("while a transaction is open: %v, %v", early, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := settled(first[1].Cursor, 1)
		if second[0].Run != all[2].UUID || second[0].Type != store.EventFailed {
			t.Errorf("the second are %v", second)
		}
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: all[3].UUID, Epoch: epochAt(1), Status: store.Cancelled, EndedAt: at}}})
		third := settled(second[0].Cursor, 1)
		if third[0].Type != store.EventCancelled {
			t.Errorf("the third are %v", third)
		}
		for _, text := range []string{"x", "1", "1-2-3", "-1-" + uuid.NewString() + "-4", "1-" + uuid.NewString() + "-99999", first[0].Cursor + " "} {
			if _, err := s.Events(t.Context(), text, 10); !errors.Is(err, store.ErrBadData) {
				t.Errorf("after %q: %v", text, err)
			}
		}
	})
}

// TestAClaimPausesRuns: a run whose owner died before it paused the run, and a run that kills its process,
// are paused and recorded as events, as is each lost lease.
func TestAClaimPausesRuns(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		paused, doomed := running(uuid.New(), at), running(uuid.New(), at)
		paused.WakeAt, doomed.WakeAt = at, at
		begin(t, s, &store.StartWrite{Run: paused}, &store.StartWrite{Run: doomed})
		order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{paused.UUID}, Reason: "mine", Actor: "me", Now: at})
		q := store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 10, MaxSuspects: 1, Now: at, LeaseUntil: at, MaxCrashes: 2}
		claims, err := s.Claim(t.Context(), q)
		if err != nil || len(claims.Runs) != 2 {
			t.Fatalf("the claims are %v, %v", claims, err)
		}
		for _, c := range claims.Runs {
			if (c.Run.Status == store.Paused) != (c.Run.UUID == paused.UUID) {
				t.Errorf("claimed was %+v", c.Run)
			}
		}
		got := row(t, s, paused.UUID)
		if got.Status != store.Paused || got.PauseOrHoldReason != "mine" || got.Crashes != 0 || got.Epoch != epochAt(1) || got.Owner.Valid || !got.WakeAt.IsZero() {
			t.Errorf("the paused run is %+v", got)
		}
		claims, err = s.Claim(t.Context(), q)
		if err != nil || len(claims.Runs) != 1 || claims.Runs[0].Run.Status != store.Paused || claims.Runs[0].Run.Control != store.PausedItself || !claims.Runs[0].Run.PausedAt.Equal(at) {
			t.Fatalf("the second claims are %v, %v", claims, err)
		}
		a := order(t, s, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{paused.UUID, doomed.UUID}})
		if a[0].ChangedCount != 1 || a[1].ChangedCount != 1 || row(t, s, doomed.UUID).Crashes != 0 {
			t.Errorf("the resume returned %+v", a)
		}
		n := make(map[store.EventType]int)
		for deadline := time.Now().Add(time.Minute); n[store.EventLeaseLost] != 3 || n[store.EventPaused] != 2; {
			events, err := s.Events(t.Context(), "", 100)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("the events are %v, %v", types(events), err)
			}
			clear(n)
			for _, e := range events {
				n[e.Type]++
			}
		}
	})
}

// A termination that waited for locks in its tree has later events than the changes that were committed
// meanwhile.
func TestEventsOfOneRunInOrder(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	root := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: root})
	between := childOf(root.UUID, "between", at)
	begin(t, s, between)
	last := childOf(root.UUID, "last", at)
	begin(t, s, last)
	order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{last.Run.UUID}})

	holder, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // after a commit there is nothing to undo
	if _, err := holder.Exec(t.Context(), "SELECT FROM durable.run WHERE id = $1 FOR UPDATE", between.Run.UUID); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.ControlRuns(t.Context(), &store.ControlRequest{Verb: store.VerbTerminate, Runs: []uuid.UUID{root.UUID}, Now: at})
	}()
	for waits := 0; waits == 0; { // it has locked the root, and waits for the run between
		err := s.userPool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
		if len(ended) > 0 {
			t.Fatalf("the control has not waited: %v", <-ended)
		}
	}
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: last.Run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at}}})
	if got := row(t, s, last.Run.UUID).Status; got != store.Paused {
		t.Fatalf("the last run is %v", got)
	}
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := row(t, s, last.Run.UUID).Status; got != store.Cancelled {
		t.Fatalf("the last run is %v in the end", got)
	}
	events, err := s.Events(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var types []store.EventType
	for _, e := range events {
		if e.Run == last.Run.UUID {
			types = append(types, e.Type)
		}
	}
	if len(types) != 2 || types[0] != store.EventPaused || types[1] != store.EventCancelled {
		t.Errorf("the events of the run are %v (4 paused, 7 cancelled): it was paused, and then cancelled", types)
	}
}
