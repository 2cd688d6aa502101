package postgres

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// doneAt is done at the epoch with this count.
func doneAt(run uuid.UUID, name string, count int32, now time.Time) *store.StepWrite {
	w := done(run, name, now)
	w.Step.Epoch = epochAt(count)
	return w
}

// nextGeneration returns the repair with which a running run at epoch 1 begins its second generation, at epoch 2. The run
// continues as new, or retries itself.
func nextGeneration(r store.Run, continues bool, now time.Time) *store.RepairRequest {
	renewal := doneAt(r.UUID, "renewal", 2, now).Step
	renewal.Kind = store.KindKeyRenewal
	run := store.RunRepair{
		Run: r.UUID, StateBefore: store.RunState{Found: true, Status: store.Running, Epoch: r.Epoch}, SupersededNumber: 1, ContinuesAsNew: continues,
		NewSteps: []store.Step{renewal}, Progress: 1, Epoch: epochAt(2), WakeAt: now.Add(time.Minute),
	}
	if run.Status = store.Waiting; continues {
		run.Status, run.Owner, run.Input = store.Running, r.Owner, []byte("{}")
	}
	return &store.RepairRequest{RequestID: uuid.New(), Verb: "next", Now: now, Runs: []store.RunRepair{run}}
}

func repairRuns(t *testing.T, s *database, r *store.RepairRequest) {
	t.Helper()
	if err := s.ApplyRepair(t.Context(), r); err != nil || r.Outcome != store.Written {
		t.Fatalf("the repair: outcome %d, %v", r.Outcome, err)
	}
}

// heldRuns returns how many runs the store counts as owned.
func heldRuns(s *database) int {
	s.rewindDetector.mu.Lock()
	defer s.rewindDetector.mu.Unlock()
	return len(s.rewindDetector.ownedRuns)
}

// A run that continues as new is held on: a rewind that loses an acknowledged checkpoint of its next generation, or that
// generation's first row, releases the run. The checkpoints of the former generation, which have moved, count as
// present. After the end of the run, the store holds nothing for it.
func TestARunThatContinuedAsNewIsSearchedAfterARewind(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	var runs []store.Run
	for _, name := range []string{"whole", "lacks a step", "lacks all"} {
		r := running(uuid.New(), at)
		r.Name = name
		begin(t, s, &store.StartWrite{Run: r})
		commit(t, s, &store.Batch{Steps: []*store.StepWrite{done(r.UUID, "a", at)}})
		next := nextGeneration(r, true, at)
		repairRuns(t, s, next)
		repairRuns(t, s, next) // as if the reply to the first try had been lost
		b := &store.Batch{Steps: []*store.StepWrite{doneAt(r.UUID, "a", 2, at), doneAt(r.UUID, "b", 2, at)}}
		commit(t, s, b)
		if b.Steps[0].Outcome != store.Written || b.Steps[1].Outcome != store.Written {
			t.Fatal("the next generation cannot write")
		}
		runs = append(runs, r)
	}
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	if told := heartbeat(t, s); len(told) != 1 || told[0].OwnedRunCount != 3 || len(told[0].LostRuns) != 0 {
		t.Fatalf("with nothing lost: %+v", told)
	}
	if _, err := s.userPool.Exec(t.Context(), "DELETE FROM durable.step WHERE run_id = $1 AND name = 'b' OR run_id = $2", runs[1].UUID, runs[2].UUID); err != nil {
		t.Fatal(err)
	}
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	told := heartbeat(t, s)
	if len(told) != 1 || len(told[0].LostRuns) != 2 {
		t.Fatalf("told: %+v", told)
	}
	for _, lost := range told[0].LostRuns {
		slices.Sort(lost.MissingSteps)
		want := []string{"b"}
		if lost.UUID == runs[2].UUID {
			want = []string{"a", "b", "renewal"}
		}
		if lost.UUID == runs[0].UUID || lost.Name != row(t, s, lost.UUID).Name || lost.RunMissing || !slices.Equal(lost.MissingSteps, want) {
			t.Errorf("lost: %+v", lost)
		}
	}
	for i, want := range []store.Status{store.Running, store.Pending, store.Pending} {
		if got := row(t, s, runs[i].UUID); got.Status != want {
			t.Errorf("the run %q is %v, want %v", got.Name, got.Status, want)
		}
		end := finish(runs[i].UUID, at)
		end.Epoch = epochAt(2)
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end}})
	}
	if n := heldRuns(s); n != 0 {
		t.Errorf("%d runs are held after all have ended", n)
	}
}

// A run that retries itself has no owner until its next generation is due, so the store holds it no longer.
func TestARunThatRetriesItselfIsHeldNoLonger(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	r := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: r})
	next := nextGeneration(r, false, at)
	repairRuns(t, s, next)
	if n := heldRuns(s); n != 0 {
		t.Errorf("%d runs are held", n)
	}
	repairRuns(t, s, next)
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	if told := heartbeat(t, s); len(told) != 1 || told[0].OwnedRunCount != 0 || len(told[0].LostRuns) != 0 {
		t.Errorf("told: %+v", told)
	}
}

// A next generation that was acknowledged in a former era counts as not written, and the run stays as it was held.
func TestANextGenerationOfAFormerEraIsNotAcknowledged(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	r := running(uuid.New(), at)
	begin(t, s, &store.StartWrite{Run: r})
	next := nextGeneration(r, true, at)
	next.Outcome = store.Written
	era := s.rewindDetector.rewindCount.Load()
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	if err := s.rewindDetector.recordRepairedRuns(era, next); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errRewound) {
		t.Errorf("a reply from before was used: %v", err)
	}
	if err := s.rewindDetector.recordRepairedRuns(era+1, next); err != nil {
		t.Error(err)
	}
}

// A terminated run is held no longer, whether a notification or a refused write tells its worker.
func TestATerminatedRunIsHeldNoLonger(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	worker := uuid.New()
	var runs []store.Run
	for range 6 {
		r := running(worker, at)
		begin(t, s, &store.StartWrite{Run: r})
		runs = append(runs, r)
	}
	order(t, s, &store.ControlRequest{Verb: store.VerbTerminate, Runs: []uuid.UUID{runs[0].UUID, runs[1].UUID, runs[2].UUID, runs[3].UUID, runs[4].UUID}})
	news, err := s.OwnedRunChanges(t.Context(), worker, []store.Lease{{Run: runs[0].UUID, Epoch: runs[0].Epoch}, {Run: runs[5].UUID, Epoch: runs[5].Epoch}})
	if err != nil || len(news.EndedLeases) != 1 {
		t.Fatalf("the news: %+v, %v", news, err)
	}
	b := &store.Batch{
		Steps: []*store.StepWrite{done(runs[1].UUID, "a", at)}, Receives: []*store.ReceiveWrite{receive(runs[2].UUID, "b", "s", at)},
		Starts: []*store.StartWrite{childOf(runs[3].UUID, "c", at)},
	}
	commit(t, s, b)
	if b.Steps[0].Outcome != store.Fenced || b.Receives[0].Outcome != store.Fenced || b.Starts[0].Outcome != store.Fenced {
		t.Fatalf("the outcomes: %d, %d, %d", b.Steps[0].Outcome, b.Receives[0].Outcome, b.Starts[0].Outcome)
	}
	next := nextGeneration(runs[4], true, at)
	if err := s.ApplyRepair(t.Context(), next); err != nil || next.Outcome != store.Fenced {
		t.Fatalf("the next generation: %d, %v", next.Outcome, err)
	}
	if n := heldRuns(s); n != 1 {
		t.Errorf("%d runs are held, want the one that goes on", n)
	}
	if err := goneBack(t, s, earlier); err != nil {
		t.Fatal(err)
	}
	if told := heartbeat(t, s); len(told) != 1 || told[0].OwnedRunCount != 1 || len(told[0].LostRuns) != 0 {
		t.Errorf("told: %+v", told)
	}
}
