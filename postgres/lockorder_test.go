package postgres

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Statements that find the runs to lock sort them with ORDER BY shard, id. Other statements get their runs
// sorted by store.CompareUUIDsByShard. Both orders are the same, so that two transactions never wait for each other.
func TestSQLSortsRunsAsTheirLocksAreTaken(t *testing.T) {
	conn := ours(t, open(t, "exec"))
	var shards []int16
	var ids []uuid.UUID
	var texts []string
	for range 1000 {
		id := uuid.New()
		ids, texts, shards = append(ids, id), append(texts, id.String()), append(shards, store.ShardOf(id))
	}
	rows, err := conn.Query(t.Context(), "SELECT id::text FROM unnest($1::smallint[], $2::text[]::uuid[]) AS item(shard, id) ORDER BY shard, id", shards, texts)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []uuid.UUID
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		got = append(got, uuid.MustParse(text))
	}
	slices.SortFunc(ids, store.CompareUUIDsByShard)
	if err := rows.Err(); err != nil || !slices.Equal(got, ids) {
		t.Errorf("ORDER BY shard, id sorts %d runs in another order than CompareUUIDs, or fails: %v", len(got), err)
	}
}
