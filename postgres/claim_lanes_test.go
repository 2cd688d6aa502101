package postgres

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// claimBuffers returns how many buffers the two statements of a claim by this worker touch.
func claimBuffers(t *testing.T, s *database, conn *pgx.Conn, served *store.ClaimFilter) (buffers int) {
	t.Helper()
	plan := s.knownLanes.newClaimLaneArgs(served, nil, nil)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	count := func(sql string, args ...any) {
		var text []byte
		if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&text); err != nil {
			t.Fatal(err)
		}
		var result []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		if err := json.Unmarshal(text, &result); err != nil {
			t.Fatal(err)
		}
		buffers += result[0].Plan.Hit + result[0].Plan.Read
	}
	at := pgTime(time.Now())
	count(s.statements.claimCheckLanesAndVersions, newLaneArray(plan.gapStarts), newLaneArray(plan.gapEnds), newLaneArray(plan.claimable), at, pgTime(time.Time{}))
	count(s.statements.claimRuns, newLaneArray(plan.claimable), at, int32(10), newUUIDArray([]uuid.UUID{uuid.New()}), at, int32(5), int32(1), int64(7), pgTime(time.Time{}), pgTime(time.Time{}), newBoolArray(plan.onlyStarted), newLaneArray(plan.nextLanes), newTextArray(plan.nextVersions), false)
	return buffers
}

// TestAClaimReadsTheLanesThatItServes: the cost of a claim does not depend on due runs of other lanes, nor on
// how many workflows and queues the worker serves. DURABLE_PLAN_ROWS sets how many runs are due elsewhere.
func TestAClaimReadsTheLanesThatItServes(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	rows := 20_000
	if n, err := strconv.Atoi(os.Getenv("DURABLE_PLAN_ROWS")); err == nil {
		rows = n
	}
	fill := func(n int, queue, workflow string, priority int16) {
		t.Helper()
		_, err := conn.Exec(t.Context(), `INSERT INTO durable.run (created_at, epoch, shard, status, id, name, workflow, queue, priority, lane, wake_at)
			SELECT now(), 0, n % 64, 1, gen_random_uuid(), gen_random_uuid()::text, $2, $3, $4, $5, now() - interval '1 hour' + n * interval '1 microsecond'
			FROM generate_series(1, $1::integer) AS n`, n, workflow, queue, priority, int64(store.ClaimLaneOf(queue, workflow, "", priority)))
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "SET statement_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	workflows, queues := []string{"flow"}, []string{"mine"}
	few := store.NewClaimFilter(workflows, queues)
	for i := range 10_000 {
		workflows = append(workflows, fmt.Sprint("workflow-", i))
	}
	for i := range 1000 {
		queues = append(queues, fmt.Sprint("queue-", i))
	}
	many := store.NewClaimFilter(workflows, queues)

	learn := func(want int) { // two claims of a moment without due runs: they take nothing and learn the lanes
		t.Helper()
		q := store.ClaimQuery{Worker: uuid.New(), Filter: many, Limit: 1, Now: time.Unix(1, 0), LeaseUntil: time.Unix(2, 0)}
		if _, err := s.Claim(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if got := s.knownLanes.newClaimLaneArgs(many, nil, nil); len(got.claimable) != want {
			t.Fatalf("a claim reads %d lanes, want the %d with live runs", len(got.claimable), want)
		}
	}
	fill(1, "mine", "flow", 0)
	learn(1)
	alone := claimBuffers(t, s, conn, few)
	fill(rows, "theirs", "flow", 0)
	fill(rows/10, "theirs", "flow", 2)
	learn(1)
	crowded, registered := claimBuffers(t, s, conn, few), claimBuffers(t, s, conn, many)
	t.Logf("buffers of a claim: %d alone, %d with %d due runs of other lanes, %d with 10,000 workflows and 1,000 queues", alone, crowded, rows, registered)
	if crowded > 2*alone+10 || registered > 2*alone+10 {
		t.Errorf("a claim of one run touches %d buffers alone, %d among %d due runs of other lanes, %d for a worker with 10,000 workflows", alone, crowded, rows, registered)
	}
}

// TestForgottenLanesAreFoundAgain: the known lanes are forgotten from time to time, and no run is missed.
func TestForgottenLanesAreFoundAgain(t *testing.T) {
	s := open(t, "exec")
	for range 3 {
		s.knownLanes.laneReadAt = time.Time{}
		first := pending(time.Now().Add(-time.Second))
		if err := s.Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{{Run: first}}}); err != nil {
			t.Fatal(err)
		}
		at := now(t, s)
		got, err := s.Claim(t.Context(), store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 5, Now: at, LeaseUntil: at.Add(time.Minute)})
		if err != nil || len(got.Runs) != 1 || got.Runs[0].Run.UUID != first.UUID {
			t.Fatalf("claimed %v, %v, want the run %s", got.Runs, err, first.UUID)
		}
	}
}
