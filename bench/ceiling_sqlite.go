package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// liteCommitter inserts rows with prepared statements of the driver's connection. It does not use
// database/sql, which costs more than SQLite itself for a small row. Package sqlite does the same.
type liteCommitter struct {
	db                        *sql.DB
	conn                      *sql.Conn
	begin, commits, one, many driver.StmtExecContext
	args                      [4 * rowsPerInsert]driver.NamedValue
}

// rowsPerInsert is the number of rows that ceiling_eight.sqlite.sql inserts.
const rowsPerInsert = 8

func newLiteCommitter(ctx context.Context, db *sql.DB) (*liteCommitter, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	k := &liteCommitter{db: db, conn: conn}
	for i := range k.args {
		k.args[i].Ordinal = i + 1
	}
	err = conn.Raw(func(raw any) error {
		for file, to := range map[string]*driver.StmtExecContext{
			"begin.sqlite.sql": &k.begin, "commit.sqlite.sql": &k.commits,
			"ceiling_one.sqlite.sql": &k.one, "ceiling_eight.sqlite.sql": &k.many,
		} {
			made, err := raw.(driver.ConnPrepareContext).PrepareContext(ctx, statement(file))
			if err != nil {
				return err
			}
			*to = made.(driver.StmtExecContext)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *liteCommitter) commit(rows []*ceilingRow) error {
	// For a context that can end, the driver starts a goroutine for each statement.
	ctx := context.Background()
	if _, err := k.begin.ExecContext(ctx, nil); err != nil {
		return err
	}
	for ; len(rows) >= rowsPerInsert; rows = rows[rowsPerInsert:] {
		if err := k.insert(ctx, k.many, rows[:rowsPerInsert]); err != nil {
			return err
		}
	}
	for i := range rows {
		if err := k.insert(ctx, k.one, rows[i:i+1]); err != nil {
			return err
		}
	}
	_, err := k.commits.ExecContext(ctx, nil)
	return err
}

func (k *liteCommitter) insert(ctx context.Context, s driver.StmtExecContext, rows []*ceilingRow) error {
	for i, row := range rows {
		at := k.args[4*i:]
		at[0].Value, at[1].Value, at[2].Value, at[3].Value = int64(row.shard), row.run[:], row.name, row.output
	}
	done, err := s.ExecContext(ctx, k.args[:4*len(rows)])
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != int64(len(rows)) {
		return fmt.Errorf("the ceiling wrote %d of %d rows: %w", n, len(rows), err)
	}
	return nil
}

func (k *liteCommitter) close() error {
	var errs []error
	for _, s := range []driver.StmtExecContext{k.begin, k.commits, k.one, k.many} {
		if s != nil {
			errs = append(errs, s.(driver.Stmt).Close())
		}
	}
	return errors.Join(append(errs, k.conn.Close(), k.db.Close())...)
}

// committer opens a connection for one writer of the ceiling.
func (at *site) committer(ctx context.Context) (committer, error) {
	if at.pg != nil {
		return newPGCommitter(ctx, at.rivalAddress)
	}
	db, err := at.file(at.rivalAddress)
	if err != nil {
		return nil, err
	}
	return newLiteCommitter(ctx, db)
}
