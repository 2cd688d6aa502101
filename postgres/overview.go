package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// FailureGroups implements store.Store.
func (s *database) FailureGroups(ctx context.Context, f store.Filter, examine, limit int) ([]store.FailureGroup, error) {
	from, to := f.Workflow, f.Workflow
	if from == "" {
		to = strings.Repeat(string(utf8.MaxRune), 256) // longer than any name
	}
	args := []any{
		int32(min(limit, 1<<30)), int32(min(examine, 1<<30)), f.Workflow, f.Queue,
		int2Array{len(f.Statuses), func(i int) int16 { return int16(f.Statuses[i]) }},
		f.NamePrefix, pgTime(f.CreatedAfter), pgTime(f.CreatedBefore), f.OnlyRoots,
		int2Array{len(f.Priorities), func(i int) int16 { return f.Priorities[i] }},
		f.Tag.Key, f.Tag.Value, from, to,
	}
	args = append(append(args, commonFilterArgs(&f)...), f.Failure.Workflow, f.Failure.Step, f.Failure.Type)
	var groups []store.FailureGroup
	err := s.runBatch(ctx, s.enginePool, "group failures", func(batch *pgx.Batch) { batch.Queue(s.statements.failureGroups, args...) },
		func(res statementResults) error {
			groups = nil
			return eachRow(res, func(rows pgx.Rows) error {
				var g store.FailureGroup
				var parent pgtype.UUID
				var runs int64
				err := rows.Scan(&g.Key.Workflow, &g.Key.Step, &g.Key.Type, &runs, &g.HasMoreRuns, (*timeValue)(&g.First), (*timeValue)(&g.Last),
					(*uuidValue)(&g.Newest.UUID), &parent, &g.Newest.Name, (*int16)(&g.Newest.Status), &g.Newest.Error)
				g.RunCount, g.Newest.Workflow, g.Newest.Parent = int(runs), g.Key.Workflow, uuid.NullUUID{UUID: parent.Bytes, Valid: parent.Valid}
				groups = append(groups, g)
				return err
			})
		})
	return groups, err
}

// StatusCounts implements store.Store.
func (s *database) StatusCounts(ctx context.Context, now time.Time, most int) ([]store.StatusCount, error) {
	var counts []store.StatusCount
	err := s.runBatch(ctx, s.enginePool, "count runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.statusCounts, pgTime(now), int32(min(most, 1<<30)))
	}, func(res statementResults) error {
		counts = nil
		return eachRow(res, func(rows pgx.Rows) error {
			var c store.StatusCount
			var runs int64
			err := rows.Scan((*int16)(&c.Status), &runs, &c.HasMoreRuns)
			c.RunCount = int(runs)
			counts = append(counts, c)
			return err
		})
	})
	return counts, err
}

// LastEventCursor implements store.Store.
func (s *database) LastEventCursor(ctx context.Context) (cursor string, err error) {
	err = s.runBatch(ctx, s.enginePool, "find the newest event", func(batch *pgx.Batch) { batch.Queue(s.statements.eventNewest) },
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error {
				var txid string
				var at time.Time
				var c eventCursor
				err := rows.Scan(&txid, (*uuidValue)(&c.run), &c.kind, (*timeValue)(&at))
				if err == nil {
					c.txid, err = strconv.ParseUint(txid, 10, 64)
				}
				c.at = at.UnixMicro()
				cursor = c.String()
				return err
			})
		})
	return cursor, err
}
