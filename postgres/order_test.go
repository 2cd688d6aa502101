package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// TestOrder pauses, resumes and cancels a tree with a run in each state.
func TestOrder(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		root := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: root})
		runs, waits, begun := childOf(root.UUID, "runs", at), childOf(root.UUID, "waits", at), childOf(root.UUID, "begun", at)
		begin(t, s, runs, waits, begun)
		below := childOf(waits.Run.UUID, "below", at)
		below.Run.Status, below.Run.Epoch, below.Run.Owner, below.Run.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, at
		begin(t, s, below)
		commit(t, s, &store.Batch{
			Steps: []*store.StepWrite{done(begun.Run.UUID, "a", at)},
			OwnershipEnds: []*store.OwnershipEnd{
				{UUID: waits.Run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at, WakeAt: at.Add(time.Hour)},
				{UUID: begun.Run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at},
			},
		})
		status := func(want ...store.Status) {
			t.Helper()
			var got []store.Status
			for _, id := range []uuid.UUID{root.UUID, runs.Run.UUID, waits.Run.UUID, begun.Run.UUID, below.Run.UUID} {
				got = append(got, row(t, s, id).Status)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("the statuses are %v, not %v", got, want)
			}
		}
		a := order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{waits.Run.UUID}, Reason: "mine", Actor: "me"})
		if want := (store.ControlResult{Found: true, Status: store.Waiting, ChangedCount: 2}); a[0] != want {
			t.Errorf("the pause returned %+v, not %+v", a[0], want)
		}
		order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{root.UUID}, Reason: "all", Actor: "ops"})
		status(store.Running, store.Running, store.Paused, store.Paused, store.Paused)
		if got := row(t, s, waits.Run.UUID); got.PauseOrHoldReason != "mine" || got.PausedBy != "me" || got.PausedAt.IsZero() || got.Control != store.PausedMask || !got.WakeAt.IsZero() {
			t.Errorf("the paused child is %+v", got)
		}
		late := childOf(root.UUID, "late", at)
		commit(t, s, &store.Batch{Starts: []*store.StartWrite{late}})
		if late.Outcome != store.Fenced || late.RunState.Control != store.PausedItself {
			t.Errorf("a child of a paused run: outcome %d, %+v", late.Outcome, late.RunState)
		}
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: root.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at, WakeAt: at}}})
		if got := row(t, s, root.UUID); got.Status != store.Paused || got.PauseOrHoldReason != "all" || !got.WakeAt.IsZero() {
			t.Errorf("the parked root is %+v", got)
		}
		order(t, s, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{root.UUID}})
		status(store.Pending, store.Running, store.Paused, store.Pending, store.Paused)
		order(t, s, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{waits.Run.UUID}})
		status(store.Pending, store.Running, store.Pending, store.Pending, store.Pending)
		a = order(t, s, &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{root.UUID, uuid.New()}, Reason: "enough", Actor: "me", Error: []byte(`{"message":"cancelled"}`)})
		if a[0].ChangedCount != 1 || a[0].RequestedCount != 4 || a[1].Found {
			t.Errorf("the cancel returned %+v", a)
		}
		status(store.Pending, store.Running, store.Pending, store.Pending, store.Cancelled)
		if got := row(t, s, below.Run.UUID); string(got.Error) != `{"message":"cancelled"}` || got.CancelReason != "enough" || got.CancelledBy != "me" || got.EndedAt.IsZero() || !got.WakeAt.IsZero() {
			t.Errorf("the cancelled run is %+v", got)
		}
		counts, err := s.RunTreeCounts(t.Context(), root.UUID, time.Now())
		if err != nil || counts.RunsByStatus[store.Cancelled] != 1 || counts.RunsByStatus[store.Running] != 1 || counts.RunsByStatus[store.Pending] != 3 {
			t.Errorf("the counts are %v, %v", counts, err)
		}
		tree, err := s.RunTree(t.Context(), root.UUID, true)
		if err != nil || len(tree) != 5 || tree[0].UUID != root.UUID || tree[4].UUID != below.Run.UUID || tree[0].Input != nil {
			t.Errorf("the tree is %v, %v", tree, err)
		}
	})
}

// TestCancelGoesBeforeAnEnd: a run that is to be cancelled can neither complete nor fail, and no write
// gives it a wrong status.
func TestCancelGoesBeforeAnEnd(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		run := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: run})
		order(t, s, &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{run.UUID}})
		step := done(run.UUID, "last", at)
		end := finish(run.UUID, at)
		commit(t, s, &store.Batch{Steps: []*store.StepWrite{step}})
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end}})
		want := store.RunState{Found: true, Status: store.Running, Epoch: epochAt(1), Control: store.CancelRequested}
		if step.Outcome != store.Written || step.RunState != want {
			t.Errorf("a step: outcome %d, %+v", step.Outcome, step.RunState)
		}
		if end.Outcome != store.Fenced || end.RunState != want {
			t.Errorf("an end: outcome %d, %+v", end.Outcome, end.RunState)
		}
		child, mark := childOf(run.UUID, "child", at), done(run.UUID, "child", at)
		mark.Step.Kind, mark.Step.Status = store.KindChild, store.StepStarted
		commit(t, s, &store.Batch{Starts: []*store.StartWrite{child}, Steps: []*store.StepWrite{mark, done(run.UUID, "other", at)}})
		if child.Outcome != store.Fenced || child.RunState != want || mark.Outcome != store.Fenced || mark.RunState != want {
			t.Errorf("a child: outcome %d, %+v; its mark: outcome %d", child.Outcome, child.RunState, mark.Outcome)
		}
		if history, err := s.History(t.Context(), run.UUID); err != nil || len(history) != 2 {
			t.Errorf("the history is %v, %v", history, err)
		}
		park := &store.OwnershipEnd{UUID: run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at, WakeAt: at.Add(time.Hour)}
		final := done(run.UUID, "in the same flush", at)
		for range 2 { // the second is a repeated call
			commit(t, s, &store.Batch{Steps: []*store.StepWrite{final}, OwnershipEnds: []*store.OwnershipEnd{park}})
			if final.Outcome != store.Written {
				t.Errorf("a step with the park: outcome %d", final.Outcome)
			}
			if got := row(t, s, run.UUID); park.Outcome != store.Written || got.Status != store.Pending || !got.WakeAt.Equal(at) {
				t.Errorf("a park: outcome %d, %+v", park.Outcome, got)
			}
		}
	})
}

// TestFreeze resumes a run whose timers and deadline lay ahead when it was paused.
func TestFreeze(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s).Truncate(time.Second)
		run := running(uuid.New(), at)
		run.Deadline = at.Add(time.Hour)
		begin(t, s, &store.StartWrite{Run: run})
		sleep := func(name string, until time.Time) *store.StepWrite {
			w := done(run.UUID, name, at)
			w.Step.Kind, w.Step.NextAt = store.KindSleep, until
			return w
		}
		wait := receive(run.UUID, "wait", "never", at)
		commit(t, s, &store.Batch{
			Steps:         []*store.StepWrite{sleep("over", at.Add(time.Minute)), sleep("ahead", at.Add(time.Hour))},
			Receives:      []*store.ReceiveWrite{wait},
			OwnershipEnds: []*store.OwnershipEnd{{UUID: run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at, WakeAt: at.Add(time.Hour)}},
		})
		order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{run.UUID}, Now: at.Add(10 * time.Minute)})
		for range 2 { // the second is a repeated call
			order(t, s, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{run.UUID}, Now: at.Add(30 * time.Minute), ShiftTimers: true})
		}
		if got := row(t, s, run.UUID).Deadline; !got.Equal(at.Add(80 * time.Minute)) {
			t.Errorf("the deadline moved by %v", got.Sub(run.Deadline))
		}
		history, err := s.History(t.Context(), run.UUID)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]time.Duration{"over": time.Minute, "ahead": 80 * time.Minute, "wait": 80 * time.Minute}
		for _, step := range history {
			if got := step.NextAt.Sub(at); got != want[step.Name] {
				t.Errorf("%s is due after %v, not %v", step.Name, got, want[step.Name])
			}
		}
	})
}

// TestNoChildEscapes starts children of runs as fast as it can while these runs are cancelled.
func TestNoChildEscapes(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	for i := range 10 {
		root := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: root})
		var all sync.WaitGroup
		started := make(chan struct{}, 100)
		for j := range 2 {
			all.Go(func() {
				for k := 0; ; k++ {
					child := childOf(root.UUID, fmt.Sprintf("child-%d-%d", j, k), at)
					if err := s.Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{child}}); err != nil {
						t.Error(err)
						return
					}
					if child.Outcome != store.Written {
						return
					}
					select {
					case started <- struct{}{}:
					default:
					}
				}
			})
		}
		for range i {
			<-started
		}
		order(t, s, &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{root.UUID}})
		all.Wait()
		tree, err := s.RunTree(t.Context(), root.UUID, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range tree {
			if run.Control != store.CancelRequested {
				t.Errorf("%s of %d escaped", run.Name, len(tree))
			}
		}
	}
}

// TestOpposingOrders: control requests to overlapping trees finish, and so do commits at the same time.
func TestOpposingOrders(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	root := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: root})
	ids := []uuid.UUID{root.UUID}
	for i := range 20 {
		child := childOf(ids[i/2], fmt.Sprint("child-", i), at)
		begin(t, s, child)
		ids = append(ids, child.Run.UUID)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 10 {
				o := &store.ControlRequest{Verb: store.ControlVerb(1 + j%2), Runs: []uuid.UUID{ids[(i*7+j)%len(ids)]}, Now: at}
				if err := s.ControlRuns(t.Context(), o); err != nil {
					t.Error(err)
				}
				b := &store.Batch{Signals: []*store.SignalWrite{signal(ids[(i*5+j)%len(ids)], "x", "1", at), signal(ids[(i*3+j)%len(ids)], "x", "2", at)}}
				if err := s.Commit(t.Context(), b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestAControlOperationIsRetried ends the session of a control request while it waits for a lock.
func TestAControlOperationIsRetried(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	run := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: run})
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over if it fails
	if err := s.signalInTx(t.Context(), tx, store.RunRef{UUIDOrName: run.Name}, signal(run.UUID, "x", "1", at)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.ControlRuns(t.Context(), &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{run.UUID}, Now: at})
	}()
	killed := 0
	for deadline := time.Now().Add(time.Minute); killed == 0; {
		err := s.userPool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
			return conn.QueryRow(t.Context(), `
				SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&killed)
		})
		if err != nil || time.Now().After(deadline) {
			t.Fatal("the order does not wait", err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := row(t, s, run.UUID); got.Control != store.PausedItself {
		t.Errorf("the run's control is %d", got.Control)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{run.UUID}, Now: at}); !errors.Is(err, context.Canceled) {
		t.Errorf("an order without time: %v", err)
	}
}

// A day has 24 hours, whatever the server's time zone.
func TestFreezeOverSummerTime(t *testing.T) {
	s := openAt(t, with(pgtest.URL(t), "timezone=Europe/Berlin"))
	paused := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC) // clocks go forward on the 29th
	due := paused.Add(30 * time.Hour)
	run := running(uuid.New(), paused)
	run.Deadline = due
	begin(t, s, &store.StartWrite{Run: run})
	sleep := done(run.UUID, "nap", paused)
	sleep.Step.Kind, sleep.Step.NextAt = store.KindSleep, due
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{sleep}})
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: paused, WakeAt: due}}})
	order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{run.UUID}, Now: paused})
	const pause = 72 * time.Hour
	order(t, s, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{run.UUID}, Now: paused.Add(pause), ShiftTimers: true})
	history, err := s.History(t.Context(), run.UUID)
	if err != nil {
		t.Fatal(err)
	}
	if got := history[0].NextAt; !got.Equal(due.Add(pause)) {
		t.Errorf("the sleep ends at %v, want %v: %v off", got, due.Add(pause), got.Sub(due.Add(pause)))
	}
	if got := row(t, s, run.UUID).Deadline; !got.Equal(due.Add(pause)) {
		t.Errorf("the deadline is %v, want %v: %v off", got, due.Add(pause), got.Sub(due.Add(pause)))
	}
}
