package durablecli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable/internal/wording"
)

const (
	slowMean    = 100 * time.Millisecond // of a statement that was executed several times
	slowRunning = 5 * time.Second        // of a statement that is executed now
)

// checkStatements returns the slow statements on the schema: those that pg_stat_statements has recorded; without it, those that are executed now.
func (p *inspectedPostgres) checkStatements(ctx context.Context) ([]finding, error) {
	var extension string
	var seesAll bool
	if err := p.conn.QueryRow(ctx, statement("postgres_statistics")).Scan(&extension, &seesAll); err != nil {
		return nil, fmt.Errorf("look for pg_stat_statements: %w", err)
	}
	scope := ""
	if !seesAll {
		scope = "; only those of your own role were seen: grant it pg_read_all_stats for the others"
	}
	if extension != "" {
		found, err := p.recordedStatements(ctx, extension, scope)
		if refused := new(pgconn.PgError); !errors.As(err, &refused) { // otherwise it is not loaded, too old, or not granted
			return found, err
		}
	}
	return p.runningStatements(ctx, slowRunning, scope)
}

const checkSlow = "statements"

// recordedStatements returns the statements on the schema that are slow on average.
func (p *inspectedPostgres) recordedStatements(ctx context.Context, extension, scope string) (findings []finding, err error) {
	text := strings.ReplaceAll(statement("postgres_slow_statements"), "extension_schema.", pgx.Identifier{extension}.Sanitize()+".")
	rows, err := p.conn.Query(ctx, text, pgx.Identifier{p.frame.schema}.Sanitize()+".", p.frame.schema+".", float64(slowMean.Milliseconds()))
	if err != nil {
		return nil, err
	}
	var calls int64
	var mean float64
	var query string
	_, err = pgx.ForEachRow(rows, []any{&calls, &mean, &query}, func() error {
		findings = append(findings, newFinding(
			warning, checkSlow, fmt.Sprintf("executed %d times, in %s on average: %s", calls, wording.RoughDuration(time.Duration(mean*float64(time.Millisecond))), shortStatement(query)),
			"ANALYZE the tables of the schema, and compare the plan (EXPLAIN) and the waits (pg_stat_activity); look for bloat, a slow disk, and lists or filters without an index. pg_stat_statements_reset() begins anew",
		))
		return nil
	})
	if len(findings) == 0 {
		findings = []finding{newFinding(fine, checkSlow, fmt.Sprintf("none on the schema takes %v on average, according to pg_stat_statements%s", slowMean, scope), "")}
	}
	return findings, err
}

// shortStatement returns the beginning of a statement, without the comments above it.
func shortStatement(query string) string {
	for line, rest, found := strings.Cut(query, "\n"); found && (strings.HasPrefix(line, "--") || strings.TrimSpace(line) == ""); line, rest, found = strings.Cut(rest, "\n") {
		query = rest
	}
	const most = 100
	text := []rune(strings.Join(strings.Fields(query), " "))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// runningStatements returns the statements of the database that have been executing for a long time. Their texts may hold data, so they are not shown.
func (p *inspectedPostgres) runningStatements(ctx context.Context, after time.Duration, scope string) (findings []finding, err error) {
	rows, err := p.conn.Query(ctx, statement("postgres_running_statements"), after.Seconds())
	if err != nil {
		return nil, fmt.Errorf("read the running statements: %w", err)
	}
	var pid, seconds int32
	var program, waits string
	_, err = pgx.ForEachRow(rows, []any{&pid, &seconds, &program, &waits}, func() error {
		text := fmt.Sprintf("process %d (%s) has been executing a statement for %s", pid, program, wording.RoughDuration(time.Duration(seconds)*time.Second))
		if waits != "" {
			text += ", and waits for " + waits
		}
		findings = append(findings, newFinding(
			warning, checkSlow, text,
			fmt.Sprintf("read it (SELECT query FROM pg_stat_activity WHERE pid = %[1]d), and whom it waits for (SELECT pg_blocking_pids(%[1]d)); SELECT pg_cancel_backend(%[1]d) ends it", pid),
		))
		return nil
	})
	if len(findings) == 0 {
		findings = []finding{newFinding(fine, checkSlow, fmt.Sprintf("none has been executing for more than %v; the extension pg_stat_statements would show those of the past%s", after, scope), "")}
	}
	return findings, err
}
