package pgtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// restingSchemas is how many returned schemas are kept unused. A statement that a test has sent and not awaited may
	// reach the server after the test, so a schema is reused only after as many others.
	restingSchemas = 6
	emptyTimeout   = 10 * time.Second
)

// returned are the schemas that tests have returned, the oldest first.
var returned struct {
	mu      sync.Mutex
	schemas []string
}

// LendSchema returns the name of a schema in the database of ServerURL, which the test has for itself until it ends. The
// schema does not exist yet, or another test has used it. In the second case its tables are empty, except for those that
// are listed in keep, and nothing else of it has changed: a test that creates, alters or drops anything in its schema calls
// Schema instead. Reusing a schema is several times as fast as applying the migrations to a new one.
func LendSchema(t testing.TB, keep ...string) string {
	t.Helper()
	server, name := ServerURL(t), ""
	returned.mu.Lock()
	if len(returned.schemas) > restingSchemas {
		name, returned.schemas = returned.schemas[0], returned.schemas[1:]
	}
	returned.mu.Unlock()
	if name != "" {
		if err := emptySchema(t.Context(), server, name, keep); err != nil {
			t.Logf("pgtest: the schema %s is not reused: %v", name, err)
			name = ""
		}
	}
	if name == "" {
		name = Schema(t)
	}
	t.Cleanup(func() {
		if t.Failed() { // what the test has left in it is unknown
			return
		}
		returned.mu.Lock()
		defer returned.mu.Unlock()
		returned.schemas = append(returned.schemas, name)
	})
	return name
}

// emptySchema deletes the rows of all tables of a schema, except for those in keep.
func emptySchema(ctx context.Context, server, schema string, keep []string) error {
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is left to do
	rows, err := conn.Query(ctx, "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = $1::text", pgx.QueryExecModeExec, schema)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	text := ""
	for _, table := range tables {
		if !slices.Contains(keep, table) {
			text += ", " + pgx.Identifier{schema, table}.Sanitize()
		}
	}
	if text == "" {
		return fmt.Errorf("it has no tables besides %q", keep)
	}
	_, err = conn.Exec(ctx, "TRUNCATE "+text[2:]+" RESTART IDENTITY")
	return err
}
