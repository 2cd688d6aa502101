package faults

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/sqlite"
)

// queueCounts compares the counts of queues with their places.
type queueCounts struct {
	own  *sqlite.Store // nil: PostgreSQL
	rows func() [][]any
}

// countsOf returns what compares the counts of all queues of a database with their places, with the statements of the soak. Each is
// one statement, which reads one snapshot, so the counts must be right at any moment.
func countsOf(t testing.TB, db database) *queueCounts {
	t.Helper()
	text, err := os.ReadFile("../soak/counts_" + db.Kind + ".sql")
	must(t, "read the statement", err)
	if db.Kind == "postgres" {
		conn, query := session(t, db.Where), strings.ReplaceAll(string(text), "durable.", db.Schema+".")
		return &queueCounts{rows: func() [][]any { return sql(t, conn, query) }}
	}
	own := db.openIn(t).(*sqlite.Store)
	return &queueCounts{own: own, rows: func() (all [][]any) {
		found, err := own.Writer().QueryContext(bounded(t), string(text))
		must(t, "compare the counts", err)
		defer found.Close()
		for found.Next() {
			var wrong string
			must(t, "compare the counts", found.Scan(&wrong))
			all = append(all, []any{wrong})
		}
		must(t, "compare the counts", found.Err())
		return all
	}}
}

// check fails the test if a count differs from what it counts.
func (c *queueCounts) check(t testing.TB, when string) {
	t.Helper()
	if wrong := c.rows(); len(wrong) > 0 {
		t.Errorf("%s: %v", when, wrong)
	}
}

// queueInfo returns a queue, or nil if it has no settings.
func queueInfo(t testing.TB, e *durable.Engine, name string) *durable.QueueInfo {
	t.Helper()
	all, err := e.Queues(bounded(t))
	must(t, "read the queues", err)
	i := slices.IndexFunc(all, func(q durable.QueueInfo) bool { return q.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// mustBeUnused asserts that a queue counts nothing, after the admissions that are still to come.
func mustBeUnused(t testing.TB, e *durable.Engine, name string) {
	t.Helper()
	await(t, "queue "+name+" to count nothing", func() bool {
		q := queueInfo(t, e, name)
		return q == nil || q.QueueUse == durable.QueueUse{}
	})
}

// gatedAdmissions is a store whose admissions can be shut.
type gatedAdmissions struct {
	durable.Store
	mu   sync.RWMutex
	shut bool
}

// AdmitRuns implements store.QueueAdmitter.
func (g *gatedAdmissions) AdmitRuns(ctx context.Context, a *store.AdmissionRequest) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.shut {
		a.QueueLocked = true
		return nil
	}
	return g.Store.AdmitRuns(ctx, a)
}

// set shuts the admissions, or opens them. It returns when none that began before is under way.
func (g *gatedAdmissions) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
}
