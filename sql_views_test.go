package durable_test

import (
	"database/sql"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// docs/sql-views.md lists exactly the columns of the views, and marks those that only one of the stores has.
func TestTheColumnsOfTheViewsAreDocumented(t *testing.T) {
	ctx := within(t)
	file := openStore(t).(*sqlite.Store)
	here := columnsOf(t, file.Writer(), `SELECT substr(v.name, 9), c.name FROM sqlite_schema AS v, pragma_table_info(v.name) AS c WHERE v.type = 'view'`)

	schema := pgtest.LendSchema(t, "migration", "secret")
	server := read(postgres.Open(ctx, pgtest.ServerURL(t), postgres.Schema(schema)))(t)
	defer server.Close()
	conn := read(pgx.Connect(ctx, pgtest.ServerURL(t)))(t)
	defer conn.Close(ctx)
	rows := read(conn.Query(ctx, `SELECT c.table_name, c.column_name FROM information_schema.columns AS c JOIN information_schema.views AS v USING (table_schema, table_name) WHERE table_schema = $1`, schema))(t)
	there := make(map[string][]string)
	var view, column string
	if _, err := pgx.ForEachRow(rows, []any{&view, &column}, func() error {
		there[view] = append(there[view], column)
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	want := make(map[string][]string)
	for view, columns := range there {
		for _, column := range columns {
			if !slices.Contains(here[view], column) && here[view] != nil {
				column += "¹"
			}
			want[view] = append(want[view], column)
		}
	}
	for view, columns := range here {
		for _, column := range columns {
			if !slices.Contains(there[view], column) {
				want[view] = append(want[view], column+"²")
			}
		}
	}
	text := string(read(os.ReadFile("docs/sql-views.md"))(t))
	documented := make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)`[¹²]? \\|[^|]*\\|([^|]*)\\|$").FindAllStringSubmatch(text, -1) {
		for _, column := range regexp.MustCompile("`(\\w+)`([¹²]?)").FindAllStringSubmatch(row[2], -1) {
			documented[row[1]] = append(documented[row[1]], column[1]+column[2])
		}
	}
	for view, columns := range want {
		got := documented[view]
		slices.Sort(columns)
		slices.Sort(got)
		if !slices.Equal(got, columns) {
			t.Errorf("docs/sql-views.md lists for %s the columns %s, want %s", view, strings.Join(got, " "), strings.Join(columns, " "))
		}
	}
	if len(documented) != len(want) {
		t.Errorf("docs/sql-views.md lists %d views, want %d", len(documented), len(want))
	}
}

// columnsOf returns the columns of each view that the query returns.
func columnsOf(t *testing.T, db *sql.DB, query string) map[string][]string {
	t.Helper()
	rows := read(db.QueryContext(within(t), query))(t)
	defer rows.Close()
	all := make(map[string][]string)
	for rows.Next() {
		var view, column string
		if err := rows.Scan(&view, &column); err != nil {
			t.Fatal(err)
		}
		all[view] = append(all[view], column)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
