package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// runTag is one tag of a run to be started.
type runTag struct {
	run uuid.UUID
	tag *store.Tag
}

// addTags adds the tags of a start, ordered by key.
func (w *sortedBatch) addTags(start *store.StartWrite) {
	from := len(w.tags)
	for i := range start.Tags {
		w.tags = append(w.tags, runTag{start.Run.UUID, &start.Tags[i]})
	}
	slices.SortFunc(w.tags[from:], func(a, b runTag) int { return cmp.Compare(a.tag.Key, b.tag.Key) })
}

// tagArgs returns the last parameters of run_insert_any.sql.
func tagArgs(items []runTag) []any {
	n := len(items)
	return []any{
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].run }},
		textArray{n, func(i int) *string { return &items[i].tag.Key }},
		textArray{n, func(i int) *string { return &items[i].tag.Value }},
	}
}

// SetTags implements store.Store.
func (s *database) SetTags(ctx context.Context, run uuid.UUID, tags []store.Tag, epoch store.Epoch, by store.ActorAndReason) (bool, error) {
	found := false
	last := make(map[string]string, len(tags))
	for _, tag := range tags {
		last[tag.Key] = tag.Value
	}
	keys := make([]string, 0, len(last))
	for key := range last {
		keys = append(keys, key)
	}
	slices.Sort(keys) // the tags are locked in this order
	values := make([]string, len(keys))
	for i, key := range keys {
		values[i] = last[key]
	}
	n := len(keys)
	// The commit must wait even if nothing was written, because the tags to remove were removed before.
	err := s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), "tag", func(batch *pgx.Batch) {
		batch.Queue(s.statements.tagSet, append(append([]any{
			store.ShardOf(run), pgUUID(run),
			textArray{n, func(i int) *string { return &keys[i] }},
			textArray{n, func(i int) *string { return &values[i] }},
			epoch.EncodeInt64(),
		}, actorReasonArgs(&by)...), store.TagsText(tags))...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&found) })
	})
	return found, err
}
