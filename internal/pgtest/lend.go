package pgtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// maxIdleSchemas is how many returned schemas are kept unused. A statement that a test has sent and not awaited may
	// reach the server after the test, so a schema is reused only after as many others.
	maxIdleSchemas = 6
	emptyTimeout   = 10 * time.Second
)

// returnedSchemas are the schemas that tests have returned, the oldest first.
var returnedSchemas struct {
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
	returnedSchemas.mu.Lock()
	if len(returnedSchemas.schemas) > maxIdleSchemas {
		name, returnedSchemas.schemas = returnedSchemas.schemas[0], returnedSchemas.schemas[1:]
	}
	returnedSchemas.mu.Unlock()
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
		returnedSchemas.mu.Lock()
		defer returnedSchemas.mu.Unlock()
		returnedSchemas.schemas = append(returnedSchemas.schemas, name)
	})
	return name
}

// bigTable is the size of a table in bytes from which EmptySchema truncates it. Truncating creates a table's files anew,
// which takes longer than deleting a few rows.
const bigTable = 1 << 20

// EmptySchema deletes the rows of all tables of a schema, except for those that are listed in keep. It waits for
// transactions that still write to the tables.
func EmptySchema(ctx context.Context, conn *pgx.Conn, schema string, keep ...string) error {
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	rows, err := conn.Query(ctx, "SELECT relname::text, pg_relation_size(oid) FROM pg_catalog.pg_class"+
		" WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1::text)", pgx.QueryExecModeExec, schema)
	if err != nil {
		return err
	}
	names, text := []string(nil), ""
	var table string
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&table, &size}, func() error {
		if slices.Contains(keep, table) {
			return nil
		}
		name := pgx.Identifier{schema, table}.Sanitize()
		names = append(names, name)
		if size >= bigTable {
			text += "; TRUNCATE " + name
		} else {
			text += "; DELETE FROM " + name
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("it has no tables besides %q", keep)
	}
	_, err = conn.Exec(ctx, "BEGIN; LOCK TABLE "+strings.Join(names, ", ")+" IN ACCESS EXCLUSIVE MODE"+text+"; COMMIT", pgx.QueryExecModeSimpleProtocol)
	return err
}

// emptySchema is EmptySchema with a connection that it keeps for the next call. A new connection takes the server longer than the rest.
func emptySchema(ctx context.Context, server, schema string, keep []string) error {
	conn, err := takeIdleConn(ctx, server)
	if err != nil {
		return err
	}
	if err := EmptySchema(ctx, conn, schema, keep...); err != nil {
		return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	idleConns.mu.Lock()
	defer idleConns.mu.Unlock()
	idleConns.conns = append(idleConns.conns, conn)
	return nil
}

// idleConns are connections to the shared server that are not in use. Main closes them.
var idleConns struct {
	mu    sync.Mutex
	conns []*pgx.Conn
}

// takeIdleConn returns an idle connection, or a new one.
func takeIdleConn(ctx context.Context, server string) (*pgx.Conn, error) {
	idleConns.mu.Lock()
	var conn *pgx.Conn
	if last := len(idleConns.conns) - 1; last >= 0 {
		conn, idleConns.conns = idleConns.conns[last], idleConns.conns[:last]
	}
	idleConns.mu.Unlock()
	if conn != nil && !conn.IsClosed() {
		return conn, nil
	}
	return pgx.Connect(ctx, server) // without the lock, because others need not wait for it
}

// closeIdleConns closes the idle connections.
func closeIdleConns() (err error) {
	idleConns.mu.Lock()
	defer idleConns.mu.Unlock()
	for _, conn := range idleConns.conns {
		err = errors.Join(err, conn.Close(context.Background()))
	}
	idleConns.conns = nil
	return err
}
