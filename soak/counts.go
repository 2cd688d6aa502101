package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

//go:embed counts_postgres.sql
var countsPostgres string

//go:embed counts_sqlite.sql
var countsSQLite string

// wrongCounts returns the queues and keys whose counts differ from their places. One statement reads one snapshot, so the counts
// are right at any moment.
func (p place) wrongCounts(ctx context.Context, s durable.Store) ([]string, error) {
	return p.queryTexts(ctx, s, countsSQLite, countsPostgres)
}

// queryTexts returns the rows of a query, which has one column.
func (p place) queryTexts(ctx context.Context, s durable.Store, ofSQLite, ofPostgres string) (texts []string, err error) {
	var rows interface {
		Next() bool
		Scan(dest ...any) error
		Err() error
	}
	if own, ok := s.(*sqlite.Store); ok {
		found, err := own.Writer().QueryContext(ctx, ofSQLite)
		if err != nil {
			return nil, err
		}
		defer found.Close()
		rows = found
	} else {
		found, err := p.pool.Query(ctx, ofPostgres)
		if err != nil {
			return nil, err
		}
		defer found.Close()
		rows = found
	}
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
}

// compareCounts compares counts and places until ctx ends.
func (l *queueLoad) compareCounts(ctx context.Context) {
	for sleepCtx(ctx, 300*time.Millisecond) == nil {
		if l.compareOnce(ctx) != nil {
			return
		}
	}
}

// compareOnce compares counts and places, unless the database is away.
func (l *queueLoad) compareOnce(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	wrong, err := l.controller.place.wrongCounts(bounded, l.controller.store)
	if err != nil {
		return nil // the next comparison follows
	}
	l.mu.Lock()
	l.countComparisons++
	l.mu.Unlock()
	if len(wrong) == 0 {
		return nil
	}
	err = fmt.Errorf("the counts of queues are wrong: %q", wrong)
	l.fail(err)
	return err
}
