package durablecli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/wording"
)

// checkSettings implements inspected.
func (p *inspectedPostgres) checkSettings(ctx context.Context) ([]finding, error) {
	var version, syncCommit string
	var standby, fsync, fullPages, autovacuum bool
	var used int
	err := p.conn.QueryRow(ctx, statement("postgres_settings")).Scan(&version, &standby, &fsync, &fullPages, &syncCommit, &autovacuum, &p.maxConnections, &used)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the server: %w", err)
	}
	limit := p.maxConnections
	var findings []finding
	add := func(good bool, level severity, check, ifGood, ifBad, fix string) {
		if good {
			findings = append(findings, newFinding(fine, check, ifGood, ""))
			return
		}
		findings = append(findings, newFinding(level, check, ifBad, fix))
	}
	add(!standby, problem, "server", "PostgreSQL "+version, "PostgreSQL "+version+" is a standby, which cannot be written to", "use the address of the primary, or name all hosts with target_session_attrs=primary")
	add(fsync, problem, "fsync", "on", "off: a crash of the machine can destroy the database", "set fsync = on")
	add(fullPages, problem, "full_page_writes", "on", "off: a crash of the machine can damage pages", "set full_page_writes = on, unless the file system writes whole pages")
	// The store raises it to on in its own sessions, unless AllowAsyncCommit is given.
	add(syncCommit != "off", warning, "synchronous_commit", syncCommit, "off for this role: the library changes it to on, other programs lose their last commits in a crash", "set synchronous_commit = on for the role and the database")
	add(autovacuum, warning, "autovacuum", "on", "off: tables and indexes grow", "set autovacuum = on")
	add(used*10 <= limit*8, warning, "connections", fmt.Sprintf("%d of %d used", used, limit), fmt.Sprintf("%d of %d are used", used, limit),
		"lower the pool_max_conns of the programs, raise max_connections, or use a pooler: a worker needs a few connections besides its pool")
	listen, err := p.checkListen(ctx)
	if err != nil {
		return nil, err
	}
	findings = append(findings, listen)
	var open, oldest int
	if err := p.conn.QueryRow(ctx, statement("postgres_transactions")).Scan(&open, &oldest); err != nil {
		return nil, fmt.Errorf("read the open transactions: %w", err)
	}
	add(open == 0, warning, "transactions", "none is open for more than 5 minutes", fmt.Sprintf("%s open for more than 5 minutes, the oldest for %s", wording.Count(open, "transaction is", "transactions are"), wording.RoughDuration(time.Duration(oldest)*time.Second)),
		"end them (pg_stat_activity shows them): they delay events and keep dead rows; set idle_in_transaction_session_timeout")
	slow, err := p.checkStatements(ctx)
	if err != nil {
		return nil, err
	}
	bloat, err := p.checkBloat(ctx)
	return append(append(findings, slow...), bloat...), err
}

// listenTimeout is how long a notification may take.
const listenTimeout = 3 * time.Second

// checkListen sends a notification to this session. A pooler in transaction mode loses it.
func (p *inspectedPostgres) checkListen(ctx context.Context) (finding, error) {
	const check = "LISTEN"
	channel := "durable_doctor_" + strings.ToLower(rand.Text())
	lost := newFinding(
		warning, check, "a notification did not arrive", "behind a pooler in transaction mode this is so: workers poll (Config.Poll), which costs latency. Connect directly, or open the store with WithoutListen to save the connection",
	)
	if _, err := p.conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		lost.Finding = "LISTEN fails: " + err.Error()
		return lost, nil
	}
	if _, err := p.conn.Exec(ctx, "SELECT pg_catalog.pg_notify($1, '')", channel); err != nil {
		return finding{}, fmt.Errorf("send a notification: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	_, err := p.conn.WaitForNotification(bounded)
	switch {
	case err == nil:
		_, err = p.conn.Exec(ctx, "UNLISTEN "+pgx.Identifier{channel}.Sanitize())
		return newFinding(fine, check, "notifications arrive", ""), err
	case ctx.Err() != nil:
		return finding{}, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		// When the wait ends, pgx closes the connection, so the following checks need another connection.
		conn, err := pgx.ConnectConfig(ctx, p.conn.Config())
		if err != nil {
			return finding{}, err
		}
		p.conn = conn
		return lost, nil
	}
	return finding{}, fmt.Errorf("wait for a notification: %w", err)
}

func (p *inspectedPostgres) checkBloat(ctx context.Context) ([]finding, error) {
	rows, err := p.conn.Query(ctx, statement("postgres_bloat"), p.frame.schema)
	if err != nil {
		return nil, fmt.Errorf("read the statistics of the tables: %w", err)
	}
	var findings []finding
	var table string
	var live, dead int64
	_, err = pgx.ForEachRow(rows, []any{&table, &live, &dead}, func() error {
		findings = append(findings, newFinding(
			warning, "bloat", fmt.Sprintf("table %s has %d dead rows and %d live ones", table, dead, live),
			"look for transactions and replication slots that keep dead rows; let autovacuum run more often on this table",
		))
		return nil
	})
	if len(findings) == 0 {
		findings = []finding{newFinding(fine, "bloat", "no table has more dead rows than live ones", "")}
	}
	return findings, err
}

// maxCheckedFileSize is the largest SQLite file that the doctor reads as a whole, in bytes.
const maxCheckedFileSize = 1 << 30

// checkSettings implements inspected.
func (q *inspectedSQLite) checkSettings(ctx context.Context) ([]finding, error) {
	var journal string
	var free, pages int64
	if err := q.db.QueryRowContext(ctx, statement("sqlite_settings")).Scan(&journal, &free, &pages); err != nil {
		return nil, fmt.Errorf("read the settings of the file: %w", err)
	}
	findings := []finding{newFinding(fine, "statements", "not examined: SQLite keeps no statistics of statements", "")}
	if journal == "wal" {
		findings = append(findings, newFinding(fine, "journal", "the file has a write-ahead log", ""))
	} else {
		findings = append(findings, newFinding(problem, "journal", "the journal mode is "+journal, "let a program open the file with sqlite.Open, which sets the mode wal, and look for a program that changes it"))
	}
	if pages > 10_000 && free > pages/2 {
		findings = append(findings, newFinding(warning, "size", fmt.Sprintf("%d of %d pages are free", free, pages), "stop the workers and shrink the file with VACUUM"))
	}
	const largeLog = 1 << 30
	if info, err := os.Stat(q.path + "-wal"); err == nil && info.Size() > largeLog {
		findings = append(findings, newFinding(warning, "log", fmt.Sprintf("the write-ahead log has %d MB", info.Size()>>20), "look for a program that keeps a transaction on the file open"))
	}
	info, err := os.Stat(q.path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxCheckedFileSize {
		return append(findings, newFinding(fine, "file", fmt.Sprintf("not checked, because it has %d MB: execute PRAGMA quick_check", info.Size()>>20), "")), nil
	}
	var fault string
	if err := q.db.QueryRowContext(ctx, statement("sqlite_integrity")).Scan(&fault); err != nil {
		return nil, fmt.Errorf("check the file: %w", err)
	}
	if fault == "ok" {
		return append(findings, newFinding(fine, "file", "it is intact", "")), nil
	}
	return append(findings, newFinding(problem, "file", "it is damaged: "+fault, "stop the workers and restore a backup, or recover the file with the .recover command of sqlite3")), nil
}
