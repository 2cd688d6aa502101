package postgres

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// TestListsByIndexReadABoundedNumberOfRows: a list of few runs touches few buffers, however many other runs there are. DURABLE_PLAN_ROWS sets how many
// that are.
func TestListsByIndexReadABoundedNumberOfRows(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	rows := 20_000
	if n, err := strconv.Atoi(os.Getenv("DURABLE_PLAN_ROWS")); err == nil {
		rows = n
	}
	if _, err := conn.Exec(t.Context(), "SET statement_timeout = 0"); err != nil {
		t.Fatal(err)
	}
	for _, fill := range []string{ // one run each minute; a tenth failed, and ten each expired and are paused
		`INSERT INTO durable.run (created_at, ended_at, epoch, shard, status, id, name, workflow, queue, lane, failed_step, failed_type)
		 SELECT at, CASE WHEN status <> 4 THEN at END, 1, n % 64, status, (lpad(to_hex(n * 60000::bigint), 12, '0') || '70008000000000000000')::uuid, 'run-' || n, 'flow', 'default', 0,
		        CASE WHEN status IN (6, 9) THEN 'step' END, CASE WHEN status IN (6, 9) THEN 'type' END
		 FROM generate_series(1, $1::integer) AS n
		 CROSS JOIN LATERAL (SELECT CASE WHEN n <= 10 THEN 9 WHEN n <= 20 THEN 4 WHEN n % 10 = 1 THEN 6 ELSE 5 END AS status, to_timestamp(n * 60) AS at) AS of_this`,
		"ANALYZE",
	} {
		var args []any
		if fill != "ANALYZE" {
			args = append(args, rows)
		}
		if _, err := conn.Exec(t.Context(), fill, args...); err != nil {
			t.Fatal(err)
		}
	}
	at := func(n int) time.Time { return time.Unix(int64(n)*60, 0) } // when the n-th run was started
	for name, c := range map[string]struct {
		filter store.Filter
		most   int
	}{
		"of a workflow and of the first hours":        {store.Filter{Workflow: "other", CreatedBefore: at(300)}, 1000},
		"of a workflow and ended in the first hours":  {store.Filter{Workflow: "other", EndedBefore: at(300)}, 1000},
		"of a workflow and of the last hours":         {store.Filter{Workflow: "other", CreatedAfter: at(rows - 300)}, 1000},
		"failed, of a workflow and of the last hours": {store.Filter{Workflow: "other", CreatedAfter: at(rows - 300), Statuses: []store.Status{store.Failed}}, 100},
		"failed":                {store.Filter{Statuses: []store.Status{store.Failed}}, 100},
		"expired":               {store.Filter{Statuses: []store.Status{store.Expired}}, 40},
		"failed or expired":     {store.Filter{Statuses: []store.Status{store.Failed, store.Expired}}, 100},
		"paused":                {store.Filter{Statuses: []store.Status{store.Paused}}, 40},
		"paused or expired":     {store.Filter{Statuses: []store.Status{store.Paused, store.Expired, store.Paused}}, 60},
		"expired of a workflow": {store.Filter{Statuses: []store.Status{store.Expired}, Workflow: "other"}, 40},
	} {
		sql, args := s.listStatement(&c.filter, uuid.UUID{}, 51)
		if sql == s.statements.runsList {
			args = append(args, int32(8))
		}
		if n := buffersOf(t, conn, sql, args...); n > c.most {
			t.Errorf("a list of runs that are %s touches %d buffers beside %d runs, and should touch %d at most", name, n, rows, c.most)
		}
	}
}
