package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// ChangeLimit implements store.LimitStore.
func (s *database) ChangeLimit(ctx context.Context, c store.LimitChangeRequest) error {
	return s.withWriteTx(ctx, "change a limit", func(x executor) error {
		_, err := x.exec(qLimitSetBounds, append(limitSettingsArgs(c.Name, c.Settings), bindText(c.Actor), bindText(c.Reason), bindTime(c.Now), c.OperatorChange().EncodeJSON())...)
		return err
	})
}

// declareLimit records a declaration. If the declaration does not replace the recorded one, no row changes.
func declareLimit(x executor, d *store.LimitDeclaration) error {
	_, err := x.exec(qLimitDeclare, append(limitSettingsArgs(d.Name, d.Settings), d.Version, bindTime(d.Now), bindTime(d.WorkerStarted))...)
	return err
}

func limitSettingsArgs(name string, s store.LimitSettings) []driver.Value {
	return append(make([]driver.Value, 0, 10), name, int64(s.Concurrent), int64(s.Rate), s.Period.Microseconds(), int64(s.Burst), s.EncodeJSON())
}

// DeleteLimit implements store.LimitStore.
func (s *database) DeleteLimit(ctx context.Context, c store.DeleteOrResetRequest) (found bool, err error) {
	err = s.withWriteTx(ctx, "delete a limit", func(x executor) error {
		n, err := x.exec(qLimitDelete, c.Name)
		found = n > 0
		if err == nil && found {
			err = writeDeletionEvent(x, store.EventLimitDeleted, &c)
		}
		return err
	})
	return found, err
}

// ResetLimitSettings implements store.LimitStore.
func (s *database) ResetLimitSettings(ctx context.Context, c store.DeleteOrResetRequest) (bool, error) {
	return s.execOnLimitRow(ctx, "reset a limit", qLimitResetToDeclared, c.Name, c.OperatorChange(store.OperatorReset).EncodeJSON())
}

// execOnLimitRow executes a statement that changes the row of a limit, and reports whether the limit has a row.
func (s *database) execOnLimitRow(ctx context.Context, what string, q queryID, args ...driver.Value) (found bool, err error) {
	err = s.withWriteTx(ctx, what, func(x executor) error {
		n, err := x.exec(q, args...)
		found = n > 0
		return err
	})
	return found, err
}

// Limits implements store.LimitStore.
func (s *database) Limits(ctx context.Context, now time.Time) (limits []store.Limit, err error) {
	var use []store.LimitKeyWithUse
	err = s.withReadConn(ctx, "read limits", func(x executor) error {
		limits, use = nil, nil // discard the rows of a failed try
		err := x.query(qLimits, func(v []driver.Value) error {
			l, err := scanLimit(v)
			limits = append(limits, l)
			return err
		})
		if err != nil {
			return err
		}
		return x.query(qLimitUsage, func(v []driver.Value) error {
			c := columnReader{values: v}
			use = append(use, store.LimitKeyWithUse{
				LimitKey: store.LimitKey{Limit: c.text(), Key: c.text()},
				LimitUse: store.LimitUse{Held: int(c.int()), Offered: int(c.int()), Waiting: int(c.int())},
			})
			return c.err
		}, bindTime(now))
	})
	if err != nil {
		return nil, err
	}
	return store.AddLimitUse(limits, use), nil
}

func scanLimit(values []driver.Value) (l store.Limit, err error) {
	c := columnReader{values: values}
	l.Name, l.LimitSettings = c.text(), scanLimitSettings(&c)
	declared, version := c.text(), c.text()
	l.DeclaredVersion, l.DeclaredAt = version, c.time()
	chosen := c.text()
	l.SetBy, l.SetReason, l.SetAt = c.text(), c.text(), c.time()
	change := c.text()
	if c.err != nil {
		return l, c.err
	}
	if l.DeclaredSettings, err = store.DecodeLimitSettings(declared); err == nil {
		l.OperatorSettings, err = store.DecodeLimitSettings(chosen)
	}
	if err == nil {
		l.LastChange, err = store.DecodeOperatorChange(change)
	}
	return l, err
}
