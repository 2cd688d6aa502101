package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// TestSignalsAreTakenInOrder sends and receives signals in one batch and in several, by two steps.
func TestSignalsAreTakenInOrder(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		run := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: run})
		second, first := signal(run.UUID, "go", "2", at.Add(time.Second)), signal(run.UUID, "go", "1", at)
		first.Key = "once"
		again := signal(run.UUID, "go", "3", at)
		again.Key = "once"
		nobody := signal(uuid.New(), "go", "4", at)
		wait := receive(run.UUID, "early", "other", at)
		b := &store.Batch{Receives: []*store.ReceiveWrite{wait}, Signals: []*store.SignalWrite{second, first, again, nobody}}
		for _, when := range []string{"first", "replayed"} {
			commit(t, s, b)
			if wait.Outcome != store.Written || wait.RecordedStep.Status != store.StepStarted {
				t.Errorf("%s: a wait: outcome %d, %+v", when, wait.Outcome, wait.RecordedStep)
			}
			if first.Outcome != store.Written || second.Outcome != store.Written || nobody.Outcome != store.Fenced || nobody.RunState.Found {
				t.Errorf("%s: outcomes %d, %d, %d", when, first.Outcome, second.Outcome, nobody.Outcome)
			}
			if again.Outcome != store.AlreadyRecorded || again.ExistingSignal.ID != first.ID || string(again.ExistingSignal.Payload) != "1" || again.ExistingSignal.Key != "once" || !again.ExistingSignal.CreatedAt.Equal(at) {
				t.Errorf("%s: a key used twice: outcome %d, %+v", when, again.Outcome, again.ExistingSignal)
			}
		}
		a, c, d := receive(run.UUID, "a", "go", at), receive(run.UUID, "c", "go", at), receive(run.UUID, "d", "go", at)
		b = &store.Batch{Receives: []*store.ReceiveWrite{c, a, d}}
		commit(t, s, b)
		if string(c.RecordedStep.Output) != "1" || string(a.RecordedStep.Output) != "2" || d.RecordedStep.Status != store.StepStarted || c.RecordedStep.EndedAt.IsZero() {
			t.Errorf("taken were %+v, %+v, %+v", c.RecordedStep, a.RecordedStep, d.RecordedStep)
		}
		commit(t, s, &store.Batch{Signals: []*store.SignalWrite{signal(run.UUID, "go", "5", at)}})
		commit(t, s, b) // as if the result had been lost
		if c.Outcome != store.AlreadyRecorded || string(c.RecordedStep.Output) != "1" || a.Outcome != store.AlreadyRecorded || d.Outcome != store.Written || string(d.RecordedStep.Output) != "5" {
			t.Errorf("replayed: outcomes %d, %d, %d", c.Outcome, a.Outcome, d.Outcome)
		}
		var left int
		if err := s.userPool.QueryRow(t.Context(), "SELECT count(*) FROM durable.signal WHERE step IS NULL").Scan(&left); err != nil || left != 0 {
			t.Errorf("%d signals are left, %v", left, err)
		}
		stale := receive(run.UUID, "a", "go", at)
		stale.Step.Epoch = store.Epoch{}
		commit(t, s, &store.Batch{Receives: []*store.ReceiveWrite{stale}, OwnershipEnds: []*store.OwnershipEnd{finish(run.UUID, at)}})
		if stale.Outcome != store.Fenced || stale.RunState.Epoch != epochAt(1) {
			t.Errorf("an older epoch: outcome %d, %+v", stale.Outcome, stale.RunState)
		}
		late := signal(run.UUID, "go", "6", at)
		commit(t, s, &store.Batch{Signals: []*store.SignalWrite{late, first}})
		if late.Outcome != store.Fenced || late.RunState.Status != store.Completed || first.Outcome != store.Written {
			t.Errorf("after the end: outcomes %d, %d", late.Outcome, first.Outcome)
		}
	})
}

// TestReceiveKeepsItsTimes: a wait that is recorded again keeps its start and its time limit.
func TestReceiveKeepsItsTimes(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	run := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: run})
	wait := receive(run.UUID, "a", "go", at)
	wait.Step.EndedAt = at // the end, if there is a signal
	commit(t, s, &store.Batch{Receives: []*store.ReceiveWrite{wait}})
	wait.Step.StartedAt, wait.Step.NextAt = at.Add(time.Minute), at.Add(time.Hour*2)
	commit(t, s, &store.Batch{Receives: []*store.ReceiveWrite{wait}})
	if got := wait.RecordedStep; !got.EndedAt.IsZero() || !got.StartedAt.Equal(at) || !got.NextAt.Equal(at.Add(time.Hour)) {
		t.Errorf("it waits from %v to %v", got.StartedAt, got.NextAt)
	}
	over := *wait
	over.Step.Status, over.Step.Error, over.Step.EndedAt = store.StepFailed, []byte(`"late"`), at.Add(time.Hour)
	order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{run.UUID}})
	commit(t, s, &store.Batch{Receives: []*store.ReceiveWrite{&over}})
	if over.Outcome != store.Written || over.RecordedStep.Status != store.StepFailed || over.RunState.Control != store.PausedItself {
		t.Errorf("its end: outcome %d, %+v, %+v", over.Outcome, over.RecordedStep, over.RunState)
	}
}

// TestEveryWakeIsFound: the end of a child or a signal wakes a run before, while and after it parks.
func TestEveryWakeIsFound(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		worker := uuid.New()
		parent := running(worker, at)
		begin(t, s, &store.StartWrite{Run: parent})
		one, two := childOf(parent.UUID, "one", at), childOf(parent.UUID, "two", at)
		begin(t, s, one, two)
		end := func(child *store.StartWrite, epoch store.Epoch) *store.OwnershipEnd {
			w := finish(child.Run.UUID, at)
			w.ParentToWake, w.Now, w.Epoch = child.Run.Parent, at, epoch
			return w
		}
		held := []store.Lease{{Run: parent.UUID, Epoch: epochAt(1)}}
		woken := func(want int) {
			t.Helper()
			news, err := s.OwnedRunChanges(t.Context(), worker, held)
			if err != nil || len(news.Woken) != want || len(news.ControlRequests) != 0 {
				t.Errorf("the news is %+v, %v", news, err)
			}
		}
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end(one, epochAt(7))}}) // by another worker
		woken(0)
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end(one, epochAt(1))}})
		woken(1)
		woken(0)
		sent := signal(parent.UUID, "go", "1", at)
		park := &store.OwnershipEnd{UUID: parent.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at, WakeAt: at.Add(time.Hour)}
		commit(t, s, &store.Batch{Signals: []*store.SignalWrite{sent}})
		for range 2 { // the second is a repeated call
			commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{park}})
			if got := row(t, s, parent.UUID); park.Outcome != store.Written || got.Status != store.Waiting || !got.WakeAt.Equal(at) {
				t.Errorf("parked when it was woken: outcome %d, %+v", park.Outcome, got)
			}
		}
		q := store.ClaimQuery{Worker: worker, Filter: flow, Limit: 1, Now: at, LeaseUntil: at.Add(time.Minute)}
		if claims, err := s.Claim(t.Context(), q); err != nil || len(claims.Runs) != 1 || claims.Runs[0].Run.UUID != parent.UUID {
			t.Fatalf("the claims are %v, %v", claims, err)
		}
		park.Epoch = epochAt(2)
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{park}})
		if got := row(t, s, parent.UUID); !got.WakeAt.Equal(park.WakeAt) {
			t.Errorf("parked in peace: %+v", got)
		}
		late := end(two, epochAt(1))
		late.Now = at.Add(time.Minute)
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{late}})
		if got := row(t, s, parent.UUID); got.Status != store.Waiting || !got.WakeAt.Equal(late.Now) {
			t.Errorf("woken when it was parked: %+v", got)
		}
	})
}

// TestHintsGoWhereTheyBelong: only its own worker is notified of a change to a run, and all workers of
// claimable runs.
func TestHintsGoWhereTheyBelong(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := openBeside(t, mode)
			at := now(t, s)
			worker := uuid.New()
			a, other := attend(t, s, worker), attend(t, s, uuid.New())
			run, idle := running(worker, at), running(uuid.New(), at)
			begin(t, s, &store.StartWrite{Run: run}, &store.StartWrite{Run: idle})
			commit(t, s, &store.Batch{Signals: []*store.SignalWrite{signal(run.UUID, "go", "1", at)}})
			a.hinted(t, store.HintOwnedRunChange)
			order(t, s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{run.UUID}})
			a.hinted(t, store.HintOwnedRunChange)
			news, err := s.OwnedRunChanges(t.Context(), worker, []store.Lease{{Run: run.UUID, Epoch: epochAt(1)}, {Run: idle.UUID, Epoch: epochAt(1)}})
			if err != nil || len(news.ControlRequests) != 1 || news.ControlRequests[0] != (store.PendingControl{Run: run.UUID, Epoch: epochAt(1), Control: store.PausedItself}) {
				t.Errorf("the news is %+v, %v", news, err)
			}
			commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: idle.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at}}})
			commit(t, s, &store.Batch{Signals: []*store.SignalWrite{signal(idle.UUID, "go", "1", at)}})
			a.hinted(t, store.HintClaim)
			other.hinted(t, store.HintClaim)
			commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run.UUID, Epoch: epochAt(1), Status: store.Paused, Now: at}}})
			order(t, s, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{run.UUID}})
			other.hinted(t, store.HintClaim)
			select {
			case <-other.hints[store.HintOwnedRunChange]:
				t.Error("another worker's news were told")
			default:
			}
		})
	}
}

// TestOwnedRunChangesPassALockedRow: a change to a locked row is reported, each time.
func TestOwnedRunChangesPassALockedRow(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	worker := uuid.New()
	run := running(worker, at)
	begin(t, s, &store.StartWrite{Run: run})
	commit(t, s, &store.Batch{Signals: []*store.SignalWrite{signal(run.UUID, "go", "1", at)}})
	look := func(want int) {
		t.Helper()
		news, err := s.OwnedRunChanges(t.Context(), worker, []store.Lease{{Run: run.UUID, Epoch: epochAt(1)}})
		if err != nil || len(news.Woken) != want {
			t.Errorf("the news is %+v, %v", news, err)
		}
	}
	err := pgx.BeginFunc(t.Context(), s.userPool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "SELECT FROM durable.run WHERE id = $1 FOR SHARE", run.UUID)
		look(1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	look(1)
	look(0)
}

// TestSignalInTx sends a signal if and only if the user's transaction commits.
func TestSignalInTx(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		run := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: run})
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at}}})
		for _, keep := range []bool{false, true} {
			sent, lost := signal(uuid.Nil, "go", "1", at), signal(uuid.Nil, "go", "1", at)
			tx, err := s.userPool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second is a repeated call
				if err := s.signalInTx(t.Context(), tx, store.RunRef{UUIDOrName: run.Name}, sent); err != nil {
					t.Fatal(err)
				}
				if sent.Outcome != store.Written || sent.Run != run.UUID {
					t.Errorf("outcome %d", sent.Outcome)
				}
			}
			if err := s.signalInTx(t.Context(), tx, store.RunRef{UUIDOrName: "nobody"}, lost); err != nil || lost.Outcome != store.Fenced || lost.RunState.Found {
				t.Errorf("to nobody: outcome %d, %v", lost.Outcome, err)
			}
			if keep {
				err = tx.Commit(t.Context())
			} else {
				err = tx.Rollback(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := row(t, s, run.UUID); got.WakeAt.Equal(at) != keep {
				t.Errorf("it is to wake at %v", got.WakeAt)
			}
		}
	})
}

// TestHeldRunSetsNeighboursFree: a user's transaction that has signalled a run delays writes to that run.
// A batch with other items too fails with an error that makes the journal divide it.
func TestHeldRunSetsNeighboursFree(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	run, other := running(uuid.New(), at), running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: run}, &store.StartWrite{Run: other})
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over if it fails
	if err := s.signalInTx(t.Context(), tx, store.RunRef{UUIDOrName: run.Name}, signal(uuid.Nil, "go", "1", at)); err != nil {
		t.Fatal(err)
	}
	waits, neighbour := receive(run.UUID, "wait", "go", at), signal(other.UUID, "go", "2", at)
	mark := done(run.UUID, "child", at)
	mark.Step.Kind = store.KindChild
	both := &store.Batch{Receives: []*store.ReceiveWrite{waits}, Signals: []*store.SignalWrite{neighbour}}
	if err := s.Commit(t.Context(), both); !errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("both: the error is %v", err)
	}
	child, third := childOf(run.UUID, "child", at), signal(run.UUID, "go", "3", at)
	park := &store.OwnershipEnd{UUID: run.UUID, Epoch: epochAt(1), Status: store.Waiting, Now: at}
	for name, c := range map[string]struct {
		batch   *store.Batch
		outcome *store.WriteOutcome
	}{
		"receive": {&store.Batch{Receives: []*store.ReceiveWrite{waits}}, &waits.Outcome},
		"child":   {&store.Batch{Starts: []*store.StartWrite{child}, Steps: []*store.StepWrite{mark}}, &child.Outcome},
		"signal":  {&store.Batch{Signals: []*store.SignalWrite{third}}, &third.Outcome},
		"park":    {&store.Batch{OwnershipEnds: []*store.OwnershipEnd{park}}, &park.Outcome},
	} {
		if err := s.Commit(t.Context(), c.batch); err != nil || *c.outcome != store.Locked {
			t.Errorf("%s: outcome %d, %v", name, *c.outcome, err)
		}
	}
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{done(run.UUID, "a", at)}, Signals: []*store.SignalWrite{neighbour}}) // steps wait for no lock
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit(t, s, &store.Batch{Receives: []*store.ReceiveWrite{waits}})
	if waits.Outcome != store.Written || string(waits.RecordedStep.Output) != "1" {
		t.Errorf("afterwards: outcome %d, %+v", waits.Outcome, waits.RecordedStep)
	}
}

// TestOfTwoSignalsWithOneKeyTheFirstOfTheBatchIsStored sends three signals with one key in one batch. An event records the first and
// the third.
func TestOfTwoSignalsWithOneKeyTheFirstOfTheBatchIsStored(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		run := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: run})
		signals := []*store.SignalWrite{signal(run.UUID, "go", "1", at), signal(run.UUID, "go", "2", at), signal(run.UUID, "go", "3", at)}
		for _, item := range signals {
			item.Key = "once"
		}
		signals[0].ActorAndReason, signals[2].ActorAndReason = store.ActorAndReason{At: at, Actor: "ann"}, store.ActorAndReason{At: at, Actor: "bob"}
		for _, when := range []string{"first", "replayed"} {
			commit(t, s, &store.Batch{Signals: signals})
			if signals[0].Outcome != store.Written || signals[1].Outcome != store.AlreadyRecorded || signals[2].Outcome != store.AlreadyRecorded {
				t.Errorf("%s: outcomes %d, %d, %d", when, signals[0].Outcome, signals[1].Outcome, signals[2].Outcome)
			}
		}
		var actors string
		if err := s.userPool.QueryRow(t.Context(), "SELECT string_agg(actor, ' ') FROM durable.event WHERE run_id = $1", pgUUID(run.UUID)).Scan(&actors); err != nil || actors != "ann" {
			t.Errorf("events of %q, %v", actors, err)
		}
	})
}
