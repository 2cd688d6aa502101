package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// ChangeLimit implements store.LimitStore.
func (s *database) ChangeLimit(ctx context.Context, c store.LimitChangeRequest) error {
	return s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), "change a limit", func(batch *pgx.Batch) {
		batch.Queue(s.statements.limitSetBounds, append(limitSettingsArgs(c.Name, c.Settings), textOrNull(&c.Actor), textOrNull(&c.Reason), pgTime(c.Now), s.rewindDetector.timelineText(), c.OperatorChange().EncodeJSON())...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(nil) })
	})
}

// limitSettingsArgs returns the first parameters of limit_declare.sql and limit_set_bounds.sql.
func limitSettingsArgs(name string, s store.LimitSettings) []any {
	return append(make([]any, 0, 11), name, int32(s.Concurrent), int32(s.Rate), s.Period.Microseconds(), int32(s.Burst), s.EncodeJSON())
}

func (s *database) limitDeclarationArgs(d *store.LimitDeclaration) []any {
	return append(limitSettingsArgs(d.Name, d.Settings), d.Version, pgTime(d.Now), pgTime(d.WorkerStarted), s.rewindDetector.timelineText())
}

// DeleteLimit implements store.LimitStore.
func (s *database) DeleteLimit(ctx context.Context, c store.DeleteOrResetRequest) (bool, error) {
	return s.execOnLimitRow(ctx, "delete a limit", func(batch *pgx.Batch) {
		batch.Queue(s.statements.limitDelete, append([]any{c.Name}, actorReasonArgs(new(c.ActorAndReason()))...)...)
	})
}

// ResetLimitSettings implements store.LimitStore.
func (s *database) ResetLimitSettings(ctx context.Context, c store.DeleteOrResetRequest) (bool, error) {
	return s.execOnLimitRow(ctx, "reset a limit", func(batch *pgx.Batch) {
		batch.Queue(s.statements.limitResetToDeclared, c.Name, c.OperatorChange(store.OperatorReset).EncodeJSON())
	})
}

// execOnLimitRow executes a statement that returns the name of the limit that it has changed, and reports whether there was one.
func (s *database) execOnLimitRow(ctx context.Context, what string, fill func(*pgx.Batch)) (found bool, err error) {
	err = s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), what, fill, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			found = true
			return rows.Scan(nil)
		})
	})
	return found, err
}

// Limits implements store.LimitStore.
func (s *database) Limits(ctx context.Context, now time.Time) (limits []store.Limit, err error) {
	var use []store.LimitKeyWithUse
	err = s.runBatch(ctx, s.enginePool, "read limits", func(batch *pgx.Batch) {
		batch.Queue(s.statements.limits)
		batch.Queue(s.statements.limitUsage, pgTime(now))
	}, func(res statementResults) error {
		limits, use = nil, nil // discard the rows of a failed try
		err := eachRow(res, func(rows pgx.Rows) error {
			l, err := scanLimit(rows)
			limits = append(limits, l)
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			var u store.LimitKeyWithUse
			err := rows.Scan(&u.Limit, &u.Key, (*intValue)(&u.Held), (*intValue)(&u.Offered), (*intValue)(&u.Waiting))
			use = append(use, u)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return store.AddLimitUse(limits, use), nil
}

func scanLimit(rows pgx.Rows) (l store.Limit, err error) {
	var declared, version, chosen, by, reason, change pgtype.Text
	l.Name, l.LimitSettings, err = scanLimitSettings(rows, &declared, &version, (*timeValue)(&l.DeclaredAt), &chosen, &by, &reason, (*timeValue)(&l.SetAt), &change)
	if err != nil {
		return l, err
	}
	l.DeclaredVersion, l.SetBy, l.SetReason = version.String, by.String, reason.String
	if l.DeclaredSettings, err = store.DecodeLimitSettings(declared.String); err == nil {
		l.OperatorSettings, err = store.DecodeLimitSettings(chosen.String)
	}
	if err == nil {
		l.LastChange, err = store.DecodeOperatorChange(change.String)
	}
	return l, err
}

// LimitKeysWithWaiters implements store.LimitStore.
func (s *database) LimitKeysWithWaiters(ctx context.Context, after store.LimitKey, limit int) (lines []store.LimitKey, err error) {
	err = s.runBatch(ctx, s.enginePool, "read lines", func(batch *pgx.Batch) {
		batch.Queue(s.statements.limitKeysWithWaiters, after.Limit, after.Key, int32(limit))
	}, func(res statementResults) error {
		lines = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var g store.LimitKey
			err := rows.Scan(&g.Limit, &g.Key)
			lines = append(lines, g)
			return err
		})
	})
	return lines, err
}

// DeleteUnusedLimitKeys implements store.LimitStore.
func (s *database) DeleteUnusedLimitKeys(ctx context.Context, q store.DeleteUnusedLimitKeysRequest) (lines store.DeleteUnusedLimitKeysResult, err error) {
	err = s.runBatch(ctx, s.enginePool, "delete unused lines", func(batch *pgx.Batch) {
		batch.Queue(s.statements.limitKeysDeleteUnused, q.After.Limit, q.After.Key, pgTime(q.UsedBefore), pgTime(q.Now), int32(q.Limit))
	}, func(res statementResults) error {
		lines = store.DeleteUnusedLimitKeysResult{} // discard the row of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			return rows.Scan(&lines.Next.Limit, &lines.Next.Key, (*intValue)(&lines.Deleted))
		})
	})
	return lines, err
}

// PermitsOfRun implements store.LimitStore.
func (s *database) PermitsOfRun(ctx context.Context, run uuid.UUID) (permits []store.QueuedPermit, err error) {
	err = s.runBatch(ctx, s.enginePool, "read permits", func(batch *pgx.Batch) {
		batch.Queue(s.statements.permitsOfRun, store.ShardOf(run), pgUUID(run))
	}, func(res statementResults) error {
		permits = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var p permitRowScanner
			var step string
			var before int64
			columns := p.scanTargets()
			err := rows.Scan(append(append(columns[:2:2], &step), append(columns[2:], &before)...)...)
			permits = append(permits, store.QueuedPermit{PermitRow: p.toPermit(run, step), StepsAhead: int(before)})
			return err
		})
	})
	return permits, err
}

// intValue scans a number of any width.
type intValue int

// ScanInt64 implements pgtype.Int64Scanner.
func (v *intValue) ScanInt64(n pgtype.Int8) error {
	*v = intValue(n.Int64)
	return nil
}
