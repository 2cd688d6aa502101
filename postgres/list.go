package postgres

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// ListRuns implements store.Store.
func (s *database) ListRuns(ctx context.Context, f store.Filter, before uuid.UUID, limit int) ([]*store.Run, error) {
	if limit <= 0 {
		return nil, nil
	}
	sql, args := s.listStatement(&f, before, limit)
	if sql == s.statements.runsList {
		return s.listRunsOfAllShards(ctx, args, limit)
	}
	return s.readRuns(ctx, "list runs", sql, args...)
}

// listStatement returns the statement that uses the index that fits the filter best, and its parameters. The statement runsList has one parameter
// more, which listRunsOfAllShards adds.
func (s *database) listStatement(f *store.Filter, before uuid.UUID, limit int) (sql string, args []any) {
	from, below := f.UUIDRange(before)
	args = []any{
		pgUUID(below), int32(min(limit, 1<<30)), f.Workflow, f.Queue,
		int2Array{len(f.Statuses), func(i int) int16 { return int16(f.Statuses[i]) }},
		f.NamePrefix, pgTime(f.CreatedAfter), pgTime(f.CreatedBefore), f.OnlyRoots,
		int2Array{len(f.Priorities), func(i int) int16 { return f.Priorities[i] }},
	}
	switch {
	case len(f.UUIDs)+len(f.Parents) > 0:
		args = append(args, f.Tag.Key, f.Tag.Value, f.GroupKey, f.Failure.Workflow, f.Failure.Step, f.Failure.Type)
		if len(f.UUIDs) > 0 {
			sql, args = s.statements.runsListByID, append(append(args, uniqueRunIDArgs(f.UUIDs)...), newUUIDArray(f.Parents))
		} else {
			sql, args = s.statements.runsListByParent, append(args, uniqueRunIDArgs(f.Parents)...)
		}
	case f.OnlyHeld:
		sql, args = s.statements.runsListHeld, append(args, f.Tag.Key, f.Tag.Value)
	case f.Failure.Workflow != "":
		sql, args = s.statements.runsListByFailure, append(args, f.Tag.Key, f.Tag.Value, f.Failure.Workflow, f.Failure.Step, f.Failure.Type)
	case f.GroupKey != "":
		sql, args = s.statements.runsListByGroupKey, append(args, f.GroupKey, f.Tag.Key, f.Tag.Value)
	case f.Tag.Key != "" && f.Tag.Value != "":
		sql, args = s.statements.runsListByTag, append(args, f.Tag.Key, f.Tag.Value)
	case f.Tag.Key != "":
		sql, args = s.statements.runsListByTagKey, append(args, f.Tag.Key)
	case f.NamePrefix != "":
		sql, args = s.statements.runsListByRunNamePrefix, append(args, prefixUpperBound(f.NamePrefix))
	case f.Owner != (uuid.UUID{}):
		sql, args = s.statements.runsListByOwner, append(args, "", "")
	case f.SelectsOnlyStatuses(store.Paused, store.Failed, store.Expired):
		sql, args = s.statements.runsListByStatus, append(args, "", "")
	default:
		sql = s.statements.runsList
	}
	return sql, append(append(args, commonFilterArgs(f)...), pgUUID(from))
}

// listRunsOfAllShards merges the newest runs of all shards, with the parameters of a list statement. From each shard it first reads only a few
// more runs than the shard's part of the limit. If the runs lie in few shards, it reads again, each time twice as many from each shard.
func (s *database) listRunsOfAllShards(ctx context.Context, args []any, limit int) ([]*store.Run, error) {
	var runs []*store.Run
	for ahead := 8 + 4*(limit/store.ShardCount); ; ahead *= 2 {
		left := limit - len(runs)
		ahead = min(ahead, left)
		args[1] = int32(min(left, 1<<30))
		part, err := s.readRuns(ctx, "list runs", s.statements.runsList, append(args, int32(min(ahead, 1<<30)))...)
		if err != nil {
			return nil, err
		}
		runs = append(runs, part...)
		if len(part) < ahead || len(runs) == limit { // a shard with more runs would have returned as many as were requested
			return runs, nil
		}
		args[0] = pgUUID(runs[len(runs)-1].UUID)
	}
}

// commonFilterArgs returns the parameters before the last one of all list statements.
func commonFilterArgs(f *store.Filter) []any {
	return []any{f.Version, ownerArg(f), pgTime(f.EndedAfter), pgTime(f.EndedBefore)}
}

// ownerArg returns the owner of the filter, or nil.
func ownerArg(f *store.Filter) *uuid.UUID {
	if f.Owner == (uuid.UUID{}) {
		return nil
	}
	return &f.Owner
}

// SearchRuns implements store.OverviewStore.
func (s *database) SearchRuns(ctx context.Context, f store.Filter, before uuid.UUID, examine int) (found []uuid.UUID, reached uuid.UUID, err error) {
	from, below := f.UUIDRange(before)
	err = s.runBatch(ctx, s.enginePool, "search runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runsSearch, pgUUID(below), int32(max(examine, 1)), f.Workflow, f.Queue,
			int2Array{len(f.Statuses), func(i int) int16 { return int16(f.Statuses[i]) }},
			int2Array{len(f.Priorities), func(i int) int16 { return f.Priorities[i] }},
			pgTime(f.CreatedAfter), pgTime(f.CreatedBefore), f.OnlyRoots, pgTime(f.EndedAfter), pgTime(f.EndedBefore), f.Version, ownerArg(&f), pgUUID(from),
			f.NamePrefix, f.Tag.Key, f.Tag.Value, f.Failure.Workflow, f.Failure.Step, f.Failure.Type)
	}, func(res statementResults) error {
		found = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var end, hit pgtype.UUID
			err := rows.Scan(&end, &hit)
			if reached = end.Bytes; hit.Valid {
				found = append(found, hit.Bytes)
			}
			return err
		})
	})
	return found, reached, err
}

// uniqueRunIDArgs returns the shards of runs and their UUIDs, each run once, as two parameters.
func uniqueRunIDArgs(runs []uuid.UUID) []any {
	ids := store.SortedUniqueUUIDs(runs)
	return []any{int2Array{len(ids), func(i int) int16 { return store.ShardOf(ids[i]) }}, newUUIDArray(ids)}
}

// prefixUpperBound returns the first text after all texts that begin with prefix. Texts are ordered by the bytes of
// UTF-8, which is the order of the code points.
func prefixUpperBound(prefix string) string {
	for rest := prefix; rest != ""; {
		last, size := utf8.DecodeLastRuneInString(rest)
		rest = rest[:len(rest)-size]
		switch {
		case last == utf8.MaxRune:
			continue
		case last == 0xd7ff: // texts have no code points from 0xd800 to 0xdfff
			last = 0xdfff
		}
		return rest + string(last+1)
	}
	return strings.Repeat(string(utf8.MaxRune), 256) // longer than any name
}

// RunTree implements store.Store.
func (s *database) RunTree(ctx context.Context, run uuid.UUID, allGenerations bool) ([]*store.Run, error) {
	return s.readRuns(ctx, "read a tree", s.statements.runTree, store.ShardOf(run), pgUUID(run), allGenerations)
}

func (s *database) readRuns(ctx context.Context, what, sql string, args ...any) ([]*store.Run, error) {
	var runs []*store.Run
	err := s.runBatch(ctx, s.enginePool, what, func(batch *pgx.Batch) { batch.Queue(sql, args...) },
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error {
				run, err := scanRun(rows)
				runs = append(runs, run)
				return err
			})
		})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// RunTreeCounts implements store.Store.
func (s *database) RunTreeCounts(ctx context.Context, run uuid.UUID, now time.Time) (store.TreeCounts, error) {
	counts := store.TreeCounts{RunsByStatus: make(map[store.Status]int), OpenCallsByKind: make(map[store.StepKind]int)}
	err := s.runBatch(ctx, s.enginePool, "count a tree", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runTreeCounts, store.ShardOf(run), pgUUID(run), pgTime(now))
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var status store.Status
			var kind store.StepKind
			var n, delayed int64
			err := rows.Scan((*int16)(&status), (*int16)(&kind), &n, &delayed)
			counts.Add(status, kind, int(n), int(delayed))
			return err
		})
	})
	return counts, err
}
