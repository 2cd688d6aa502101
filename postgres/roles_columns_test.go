package postgres

import (
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/schema"
)

// columnRights has the columns that a role may write if it may not insert or update whole rows, by table
// and privilege.
var columnRights = map[schema.Role]map[string]string{
	schema.Operator: {
		"run UPDATE": "cancel_reason cancelled_at cancelled_by control crashes deadline_at detached ended_at error lane owner" +
			" paused_at paused_by priority queue reason status timeout wake_at woken",
		"place UPDATE":  "arrived_at begun priority queue state turn",
		"step UPDATE":   "next_at started_at",
		"worker UPDATE": "last_change quiet",
	},
	schema.Starter: {
		"run INSERT": "control created_at deadline_at detached epoch id input lane name owner parent_id priority queue shard started_at status" +
			" timeout trace version wake_at workflow",
		"step SELECT": "kind run_id shard status",
	},
	schema.Reader: {},
	schema.Worker: {},
}

// TestRolesHaveTheirColumnsOnly reads which columns each role may write in tables that it may not write
// as a whole.
func TestRolesHaveTheirColumnsOnly(t *testing.T) {
	url := pgtest.URL(t)
	openAt(t, url, Schema("flows"))
	conn := connectTo(t, url)
	for role, want := range columnRights {
		name, _ := granted(t, url, "flows", role)
		rows, err := conn.Query(t.Context(), `
			SELECT c.relname || ' ' || p, string_agg(a.attname::text, ' ' ORDER BY a.attname)
			FROM pg_class AS c
			JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			CROSS JOIN unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) AS p
			WHERE c.relnamespace = 'flows'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p')
			  AND has_column_privilege($1::text, c.oid, a.attnum, p) AND NOT has_table_privilege($1::text, c.oid, p)
			GROUP BY 1`, name)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		var table, columns string
		if _, err := pgx.ForEachRow(rows, []any{&table, &columns}, func() error { got[table] = columns; return nil }); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Errorf("a %s may %v, want %v", role, got, want)
		}
	}
}

// TestRolesForgeNoResults: an operator and a starter cannot write what runs and steps return.
func TestRolesForgeNoResults(t *testing.T) {
	url := pgtest.URL(t)
	openAt(t, url, Schema("flows"))
	for role, statements := range map[schema.Role][]string{
		schema.Operator: {
			`UPDATE flows.run SET output = '"approved"'`, `UPDATE flows.run SET input = '7'`, `UPDATE flows.run SET epoch = 0`,
			`UPDATE flows.run SET workflow = 'kid'`, `UPDATE flows.run SET name = 'other'`, `UPDATE flows.run SET parent_id = NULL`,
			`UPDATE flows.step SET output = '"forged"'`, `UPDATE flows.step SET status = 3`, `UPDATE flows.step SET error = NULL`,
			`DELETE FROM flows.run`, `DELETE FROM flows.step`, `DELETE FROM flows.event`, `INSERT INTO flows.step DEFAULT VALUES`,
		},
		schema.Starter: {
			`INSERT INTO flows.run (output) VALUES ('"approved"')`, `INSERT INTO flows.run (error) VALUES ('{}')`,
			`INSERT INTO flows.run (ended_at) VALUES (now())`, `UPDATE flows.run SET status = 5`, `SELECT output FROM flows.step`,
		},
	} {
		_, as := granted(t, url, "flows", role)
		conn := connectTo(t, as)
		for _, sql := range statements {
			if _, err := conn.Exec(t.Context(), sql); !hasSQLState(err, "42501") {
				t.Errorf("a %s may %s: %v", role, sql, err)
			}
		}
	}
}
