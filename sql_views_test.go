package durable_test

import (
	"database/sql"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
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

// The view of runs shows a child of a superseded generation as a child of the run, with the number of the generation.
func TestTheViewOfRunsShowsTheParentOfAllGenerations(t *testing.T) {
	test := func(t *testing.T, s durable.Store, query string, find func(query, child string, dest ...any) error) {
		ctx := within(t)
		kid := durable.Define("kid", func(*durable.Ctx, string) (string, error) { return "", nil })
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) { return c.Child("kid", kid, "") })
		e := engineOn(t, s, root, kid)
		running(t, e)
		wantResult(t, root, e, "r", "")
		first := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		orFail(e.Rerun(ctx, "r", "kid"))(t)
		wantResult(t, root, e, "r", "")
		children := orFail(e.Tree(ctx, "r"))(t).Children
		if len(children) != 2 {
			t.Fatalf("the children are %+v", children)
		}
		for _, c := range children {
			var parent string
			var generation sql.NullInt32
			if err := find(query, c.RunID, &parent, &generation); err != nil || parent != "r" || generation.Valid != (c.RunID == first) || generation.Int32 != int32(c.ParentGeneration) {
				t.Errorf("the child of generation %d has the parent %q and %v, %v", c.ParentGeneration, parent, generation, err)
			}
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		s := openStore(t).(*sqlite.Store)
		test(t, s, `SELECT p.name, c.parent_generation FROM durable_runs AS c JOIN durable_runs AS p ON p.id = c.parent_id WHERE c.id = ?`, func(query, child string, dest ...any) error {
			return s.Writer().QueryRowContext(within(t), query, strings.ToUpper(strings.ReplaceAll(child, "-", ""))).Scan(dest...)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		ctx := within(t)
		schema := pgtest.LendSchema(t, "migration", "secret")
		s := read(postgres.Open(ctx, pgtest.ServerURL(t), postgres.Schema(schema)))(t)
		t.Cleanup(func() { s.Close() }) // after the engine has stopped
		conn := read(pgx.Connect(ctx, pgtest.ServerURL(t)))(t)
		defer conn.Close(ctx)
		view := pgx.Identifier{schema, "runs"}.Sanitize()
		test(t, s, `SELECT p.name, c.parent_generation FROM `+view+` AS c JOIN `+view+` AS p ON p.id = c.parent_id WHERE c.id = $1`, func(query, child string, dest ...any) error {
			return conn.QueryRow(ctx, query, child).Scan(dest...)
		})
	})
}

// A query by the ID of one run must not read what other runs have recorded, so every table in its plan is read by an index that begins
// with the ID of the run, or, to find the generation of its parent, with the ID of that generation.
func TestTheViewsFindARunByAnIndex(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		db := openStore(t).(*sqlite.Store).Writer()
		for _, view := range []string{"runs", "steps", "generations", "shapes", "edges", "nodes"} {
			rows := read(db.QueryContext(within(t), `EXPLAIN QUERY PLAN SELECT * FROM durable_`+view+` WHERE run = x'0190D0000000700080000000000000FF'`))(t)
			var plan []string
			for rows.Next() {
				var id, parent, unused int
				var line string
				if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
					t.Fatal(err)
				}
				plan = append(plan, line)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				t.Fatal(err)
			}
			for _, line := range plan {
				name, isScan := strings.CutPrefix(line, "SCAN ")
				isResult := slices.Contains(plan, "CO-ROUTINE "+name) || slices.Contains(plan, "MATERIALIZE "+name) || strings.Contains(name, " VIRTUAL TABLE ")
				if isScan && !isResult || strings.HasPrefix(line, "SEARCH") && !strings.Contains(line, "(run_id=?") && !strings.Contains(line, "(id=?") && !strings.HasSuffix(line, "durable_generation_archive (archive_id=?)") {
					t.Errorf("durable_%s by run reads a table without the primary key:\n%s", view, strings.Join(plan, "\n"))
					break
				}
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		ctx := within(t)
		schema := pgtest.LendSchema(t, "migration", "secret")
		server := read(postgres.Open(ctx, pgtest.ServerURL(t), postgres.Schema(schema)))(t)
		defer server.Close()
		conn := read(pgx.Connect(ctx, pgtest.ServerURL(t)))(t)
		defer conn.Close(ctx)
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		read(w.StartMany(ctx, engineOn(t, server, w), make([]durable.StartItem[int], 1000)))(t)
		read(conn.Exec(ctx, `ANALYZE `+pgx.Identifier{schema, "run"}.Sanitize()))(t) // the whole index of an empty table is as good as a part of it
		read(conn.Exec(ctx, `SET enable_seqscan = off`))(t)                          // which is the best plan for tables as small as these
		for _, view := range []string{"runs", "children", "steps", "signals", "generations", "shapes", "edges", "nodes"} {
			column := "run_id"
			if view == "runs" {
				column = "id"
			}
			if view == "children" {
				view, column = "runs", "parent_id"
			}
			rows := read(conn.Query(ctx, `EXPLAIN SELECT * FROM `+pgx.Identifier{schema, view}.Sanitize()+` WHERE `+column+` = '0190d000-0000-7000-8000-0000000000ff'`))(t)
			plan := read(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
			for _, line := range plan {
				if strings.Contains(line, "Seq Scan") || strings.Contains(line, "Index Cond:") && !strings.Contains(line, "(shard = ") && !strings.Contains(line, "Index Cond: (archive_id = ") {
					t.Errorf("%s by %s reads a table without the primary key:\n%s", view, column, strings.Join(plan, "\n"))
					break
				}
			}
		}
	})
}
