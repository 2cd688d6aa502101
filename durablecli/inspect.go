package durablecli

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
)

// The doctor and the migrations read settings that the public API does not return, on a connection of their own. All their
// statements are in files, and only read.

//go:embed sql/*.sql
var sqlFiles embed.FS

// statement returns the statement in a file.
func statement(name string) string {
	text, err := sqlFiles.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic("durablecli: " + err.Error()) // a name in this package is wrong
	}
	return string(text)
}

// inspectedDatabase is a database that the doctor reads without the engine.
type inspectedDatabase interface {
	// schemaVersion returns the version of the schema; zero if there is none.
	schemaVersion(ctx context.Context) (int, error)
	// now returns the time of the database's clock.
	now(ctx context.Context) (time.Time, error)
	// checkSettings returns the findings about the database's settings, good ones included.
	checkSettings(ctx context.Context) ([]finding, error)
	// checkPools returns the finding whether the database allows as many connections as the live workers may open. It is called after
	// checkSettings.
	checkPools(workers []durable.WorkerInfo, now time.Time) []finding
	close()
}

// inspect connects to a database.
func (s *session) inspect(ctx context.Context, d database) (inspectedDatabase, error) {
	if d.file != "" {
		if _, err := os.Stat(d.file); err != nil {
			return nil, fmt.Errorf("the file %q cannot be read: %w", d.file, err)
		}
		db, err := sql.Open("sqlite", "file:"+url.PathEscape(d.file)+"?mode=ro&_pragma=busy_timeout(5000)")
		if err != nil {
			return nil, err
		}
		return &inspectedSQLite{db, d.file}, nil
	}
	cfg, err := pgx.ParseConfig(d.url)
	if err != nil { // it is not wrapped, because its text may contain a password
		return nil, errors.New("the connection string cannot be parsed: write it as postgres://user@host:5432/database, and percent-encode special characters")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // poolers need not keep prepared statements
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &inspectedPostgres{conn: conn, frame: s.globalFlags}, nil
}

// inspectedPostgres implements inspectedDatabase for a PostgreSQL server.
type inspectedPostgres struct {
	conn           *pgx.Conn
	frame          *globalFlags
	maxConnections int // of all roles but superusers; checkSettings reads it
}

func (p *inspectedPostgres) schemaVersion(ctx context.Context) (have int, err error) {
	var exists bool
	table := pgx.Identifier{p.frame.schema, "migration"}.Sanitize()
	if err := p.conn.QueryRow(ctx, statement("postgres_migrations_exist"), table).Scan(&exists); err != nil || !exists {
		return 0, err
	}
	err = p.conn.QueryRow(ctx, p.frame.withSchema(statement("postgres_version"))).Scan(&have)
	return have, err
}

func (p *inspectedPostgres) now(ctx context.Context) (now time.Time, err error) {
	err = p.conn.QueryRow(ctx, statement("postgres_now")).Scan(&now)
	return now, err
}

func (p *inspectedPostgres) close() { _ = p.conn.Close(context.Background()) }

// inspectedSQLite implements inspectedDatabase for an SQLite file.
type inspectedSQLite struct {
	db   *sql.DB
	path string
}

func (q *inspectedSQLite) schemaVersion(ctx context.Context) (have int, err error) {
	var tables int
	if err := q.db.QueryRowContext(ctx, statement("sqlite_migrations_exist")).Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	err = q.db.QueryRowContext(ctx, statement("sqlite_version")).Scan(&have)
	return have, err
}

// now returns this machine's time, which is that of SQLite.
func (q *inspectedSQLite) now(context.Context) (time.Time, error) { return time.Now(), nil }

func (q *inspectedSQLite) close() { _ = q.db.Close() }
