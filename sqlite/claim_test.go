package sqlite

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func query1(at time.Time) store.ClaimQuery {
	return store.ClaimQuery{
		Worker: uuid.New(), Filter: served(), MaxSuspects: 1, Limit: 10, Now: at, LeaseUntil: at.Add(time.Minute), MaxCrashes: 5,
	}
}

func claimAt(t *testing.T, s *database, at time.Time) store.ClaimResult {
	t.Helper()
	claims, err := s.Claim(t.Context(), query1(at))
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// Claims are oldest first in each lane, name the next wake time, and load history.
func TestClaimOrder(t *testing.T) {
	s := openTest(t)
	at := now()
	batch := &store.Batch{}
	for i := range 6 {
		w := newPending(fmt.Sprint(i))
		w.Run.Workflow = []string{"even", "odd"}[i%2]
		w.Run.WakeAt = at.Add(time.Duration(i-4) * time.Second) // 4 is due now, 5 is not
		batch.Starts = append(batch.Starts, w)
	}
	commit(t, s, batch)
	q := query1(at)
	q.Filter = store.NewClaimFilter([]string{"odd", "even"}, nil)
	q.Limit = 3
	order := make(map[string]string)
	for range 3 {
		claims, err := s.Claim(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claims.Runs {
			order[c.Run.Workflow] += c.Run.Name
			got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: c.Run.UUID.String()}})
			if err != nil || got[0].Epoch != epochAt(1) || got[0].Owner != c.Run.Owner || !got[0].WakeAt.Equal(c.Run.WakeAt) ||
				!got[0].StartedAt.Equal(c.Run.StartedAt) || got[0].Status != c.Run.Status {
				t.Fatalf("claimed %+v, stored %+v, %v", c.Run, got[0], err)
			}
		}
		if want := at.Add(time.Second); !claims.NextDue.Equal(want) {
			t.Errorf("next is %v, want %v", claims.NextDue, want)
		}
	}
	if order["even"] != "024" || order["odd"] != "13" {
		t.Fatal(order)
	}
}

// A run that loses its lease without a new checkpoint is paused at the claim after
// the fifth time; a checkpoint starts the count anew.
func TestCrashesPause(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	at := now()
	var last store.ClaimedRun
	step := func() store.ClaimedRun {
		at = at.Add(2 * time.Minute)
		claims := claimAt(t, s, at)
		if len(claims.Runs) != 1 {
			t.Fatal(claims)
		}
		last = claims.Runs[0]
		return last
	}
	for death := 1; death <= 3; death++ {
		if c := step(); c.Run.Crashes != int16(death) || c.Run.Epoch != epochAt(int32(death+1)) || c.Run.Status != store.Running {
			t.Fatalf("%+v", c.Run)
		}
	}
	done := newStep(run, "progress")
	done.Step.Epoch = last.Run.Epoch
	if got := commitStep(t, s, done); got != store.Written {
		t.Fatal(got)
	}
	for death := 1; death <= 4; death++ {
		if c := step(); c.Run.Crashes != int16(death) || len(c.History) != 1 {
			t.Fatalf("%+v", c)
		}
	}
	c := step()
	if c.Run.Status != store.Paused || c.Run.Crashes != 5 || c.History != nil || c.Run.Owner.Valid || c.Run.PauseOrHoldReason == "" {
		t.Fatalf("%+v", c)
	}
	got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: run.String()}})
	if err != nil || got[0].Status != store.Paused || got[0].PauseOrHoldReason != c.Run.PauseOrHoldReason || !got[0].WakeAt.IsZero() || got[0].Owner.Valid {
		t.Fatalf("%+v %v", got[0], err)
	}
	if claims := claimAt(t, s, at.Add(time.Hour)); len(claims.Runs) > 0 || !claims.NextDue.IsZero() {
		t.Fatal(claims)
	}
}

// An idle poll does not wait for the write lock, whoever has it.
func TestIdlePollTakesNoLock(t *testing.T) {
	s := openTest(t)
	startTestRuns(t, s, 1)
	tx, err := openAt(t, s.path).writer().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if claims := claimAt(t, s, now()); len(claims.Runs) > 0 || claims.NextDue.IsZero() {
		t.Fatal(claims)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

func TestRenewAndExpire(t *testing.T) {
	s := openTest(t)
	at := now()
	s.mustCommit(t, newPending("mine"))
	s.mustCommit(t, newPending("other"))
	q := query1(at.Add(time.Second))
	q.Limit = 1
	mine, err := s.Claim(t.Context(), q)
	if err != nil || len(mine.Runs) != 1 {
		t.Fatal(mine, err)
	}
	run := mine.Runs[0].Run
	beat := store.Heartbeat{
		Worker: store.Worker{
			ID: q.Worker, Name: "host/1", Version: "v1", Capacity: 10, ActiveRuns: 1, StartedAt: at, DeadAt: at.Add(time.Hour),
		},
		Leases: []store.Lease{
			{Run: run.UUID, Epoch: epochAt(1)},
			{Run: run.UUID, Epoch: epochAt(2)},
			{Run: store.NewUUID(1), Epoch: epochAt(1)},
		},
		LeaseUntil: at.Add(time.Hour),
	}
	pulse, err := s.RenewLeases(t.Context(), beat)
	if err != nil || len(pulse.LostRuns) != 2 || pulse.Now.Before(at) {
		t.Fatal(pulse, err)
	}
	beat.Worker.ActiveRuns = 7
	if pulse, err = s.RenewLeases(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	workers, err := s.Workers(t.Context())
	beat.Worker.HeartbeatAt = pulse.Now
	if err != nil || len(workers) != 1 || !reflect.DeepEqual(workers[0], beat.Worker) {
		t.Fatal(workers, err)
	}
	if claims := claimAt(t, s, at.Add(2*time.Minute)); len(claims.Runs) != 1 || claims.Runs[0].Run.Name == run.Name {
		t.Fatal(claims)
	}
	freed, err := s.EndLeases(t.Context(), []uuid.UUID{q.Worker, uuid.New()}, query1(at.Add(time.Minute)))
	if err != nil || freed != 1 {
		t.Fatal(freed, err)
	}
	if workers, err := s.Workers(t.Context()); err != nil || len(workers) > 0 {
		t.Fatal(workers, err)
	}
	claims := claimAt(t, s, at.Add(time.Minute))
	if len(claims.Runs) != 1 || claims.Runs[0].Run.UUID != run.UUID || claims.Runs[0].Run.Crashes != 1 || claims.Runs[0].Run.Epoch != epochAt(2) {
		t.Fatal(claims)
	}
}
