package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/seed8ec063be/durable/schema"
)

// prepareFile switches the file to the write-ahead log and applies the schema. Several processes may call it at the
// same time.
func (s *database) prepareFile(ctx context.Context, migrate bool) error {
	err := s.withConn(ctx, s.writerDB, "open", func(c *conn) error {
		var encoding, mode string
		err := retryBusy(ctx, c.busyTimeout, func() (err error) {
			encoding, err = queryText(c, qTextEncoding)
			return err
		})
		if err != nil {
			return err
		}
		if encoding != "UTF-8" {
			return &OpenError{
				Path: s.path, Problem: "its text encoding is " + encoding,
				Fix: "durable needs UTF-8, which keeps names byte for byte: use another file",
			}
		}
		// SQLite silently opens a file read-only if this process may not write to it.
		if c, ok := c.driverConn.(interface{ IsReadOnly(string) (bool, error) }); ok {
			if only, err := c.IsReadOnly("main"); only || err != nil {
				return &OpenError{
					Path: s.path, Problem: "it is read-only", Err: err,
					Fix: writePermissionFix,
				}
			}
		}
		// The switch needs exclusive access to the file and does not wait for it, so it is retried: if eight
		// processes open a new file at once, SQLite refuses seven of them at first.
		err = retryBusy(ctx, c.busyTimeout, func() (err error) {
			mode, err = queryText(c, qJournalModeWAL)
			return err
		})
		if err == nil && !strings.EqualFold(mode, "wal") {
			return &OpenError{
				Path: s.path, Problem: "it cannot use a write-ahead log, its journal mode stays " + mode,
				Fix: "put the file on a local file system and give this process write permission on it",
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if !migrate {
		have, err := s.schemaVersion(ctx)
		if err != nil {
			return err
		}
		return schema.Check(have, schema.SQLite())
	}
	return s.applyMigrations(ctx, schema.SQLite())
}

// schemaVersion reads the version of the schema. It writes nothing.
func (s *database) schemaVersion(ctx context.Context) (have int, err error) {
	err = s.withConn(ctx, s.writerDB, "open", func(c *conn) error {
		return retryBusy(ctx, c.busyTimeout, func() error {
			tables, err := queryInt(c, qMigrationTableExists)
			if err != nil || tables == 0 {
				return err
			}
			have, err = queryInt(c, qMigrationVersion)
			return err
		})
	})
	return have, err
}

// applyMigrations applies the missing migrations, each in a transaction together with the row that records it. It reads the
// version again under the lock, because another process may have applied the migration meanwhile.
func (s *database) applyMigrations(ctx context.Context, all []schema.Migration) error {
	have, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	pending, err := schema.Pending(have, all)
	if err != nil {
		return err
	}
	for _, m := range pending {
		err := s.withWriteTx(ctx, "migrate", func(x executor) error {
			if _, err := x.exec(qMigrationTableCreate); err != nil {
				return err
			}
			have, err := queryInt(x, qMigrationVersion)
			if err != nil || have >= m.Version {
				return err
			}
			c, ok := x.(driver.ExecerContext)
			if !ok {
				return fmt.Errorf("a %T cannot run a script", x)
			}
			if _, err := c.ExecContext(context.WithoutCancel(ctx), m.SQL, nil); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			_, err = x.exec(qMigrationInsert, int64(m.Version), m.Name, bindTime(now()))
			return err
		})
		if err != nil {
			return err
		}
	}
	// Another process with newer code may have applied more migrations meanwhile.
	if have, err = s.schemaVersion(ctx); err != nil {
		return err
	}
	return schema.Check(have, all)
}

// queryText returns the text that a statement selects.
func queryText(x executor, q queryID) (text string, err error) {
	err = x.query(q, func(v []driver.Value) error {
		c := columnReader{values: v}
		text = c.text()
		return c.err
	})
	return text, err
}

// queryInt returns the integer that a statement selects.
func queryInt(x executor, q queryID, args ...driver.Value) (n int, err error) {
	err = x.query(q, func(v []driver.Value) error {
		c := columnReader{values: v}
		n = int(c.int())
		return c.err
	}, args...)
	return n, err
}
