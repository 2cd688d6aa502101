package durable_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// withViews executes a test on both stores. db has the views, whose names begin with prefix.
func withViews(t *testing.T, test func(t *testing.T, s durable.Store, db *sql.DB, prefix string)) {
	t.Run("sqlite", func(t *testing.T) {
		s := openFile(t)
		test(t, s, s.(*sqlite.Store).Writer(), "durable_")
	})
	t.Run("postgres", func(t *testing.T) {
		schema := pgtest.LendSchema(t, "migration", "secret")
		s, err := postgres.Open(within(t), pgtest.ServerURL(t), postgres.Schema(schema))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		db, err := sql.Open("pgx", pgtest.ServerURL(t))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		test(t, s, db, schema+".")
	})
}

// textsOf returns the rows of a query with one column.
func textsOf(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(within(t), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// The views show all edges, and of each node of which something is recorded the state that Engine.Graph returns.
func TestViewsOfAGraph(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		double := durable.Define("double", func(c *durable.Ctx, n int) (int, error) {
			if n == 0 {
				return 0, errBroken
			}
			return 2 * n, nil
		})
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			list := g.Step("a/list", constant([]int{1, 2}), durable.Delay(time.Millisecond))
			squares := g.Each("squares", list, func(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n * n, nil })
			doubles := g.EachChild("doubles", squares, double)
			bad := g.Step("bad", broken)
			never := g.Receive[int]("never")
			any := g.Step("any", constant(1), durable.NeedsAny(durable.CancelLosers, never, doubles))
			g.Step("below", constant(1), durable.Needs(bad))
			kids := g.EachChild("kids", g.Step("zeros", constant([]int{1, 0})), double)
			skipped := g.Step("skipped", constant(1), durable.When(list, func(v []int) bool { return len(v) > 2 }))
			gate := g.Receive[int]("gate", durable.After(skipped, kids))
			return g.Step("out", constant(1), durable.Needs(any, gate))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w, double}})
		stop := running(t, e)
		defer stop()
		run := orFail(w.Start(within(t), e, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "any/step", "completed")
		awaitCheckpoint(t, e, "run", "gate/receive", "started")
		compare := func(recorded int) {
			t.Helper()
			info := orFail(e.Graph(within(t), "run"))(t)
			var want, edges []string
			for _, n := range info.Nodes {
				if n.Attempts > 0 || n.State == durable.NodeCancelled || n.Name == "skipped" {
					text := n.Name + " " + string(n.State)
					if n.Items != nil {
						text += fmt.Sprintf(" %d %d %d %d", n.Items.Total, n.Items.Completed, n.Items.Failed, n.Items.Running)
					}
					want = append(want, text)
				}
			}
			for _, edge := range info.Edges {
				edges = append(edges, fmt.Sprintf("%s %s %d %d %d %t %t %t", edge.From, edge.To, edge.Choice, edge.K, edge.Of, edge.After, edge.If, edge.Over))
			}
			got := textsOf(t, db, `SELECT name || ' ' || state || coalesce(' ' || items || ' ' || items_completed || ' ' || items_failed || ' ' || items_running, '')
				FROM `+prefix+`nodes WHERE state IS NOT NULL ORDER BY number`)
			if !slices.Equal(got, want) || len(want) != recorded {
				t.Errorf("the nodes are\n%q, want\n%q", got, want)
			}
			bit := func(column string) string { return `CASE WHEN ` + column + ` THEN 'true' ELSE 'false' END` }
			got = textsOf(t, db, `SELECT from_node || ' ' || to_node || ' ' || coalesce(choice, 0) || ' ' || coalesce(k, 0) || ' ' || coalesce(of, 0) || ' ' || `+
				bit("after")+` || ' ' || `+bit("condition")+` || ' ' || `+bit("over")+` FROM `+prefix+`edges`)
			slices.Sort(got)
			if slices.Sort(edges); !slices.Equal(got, edges) {
				t.Errorf("the edges are\n%q, want\n%q", got, edges)
			}
		}
		compare(10)
		orFail(0, e.Signal(within(t), "run", "gate", 1))(t)
		orFail(run.Result(within(t)))(t)
		compare(11)
	})
}

// With a codec the views show nodes and edges too. They do not know the length of an encoded list.
func TestViewsOfAnEncodedGraph(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			list := g.Step("list", constant([]int{1, 2}))
			each := g.Each("each", list, func(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n, nil })
			any := g.Step("any", constant(1), durable.NeedsAny(durable.CancelLosers, each, g.Receive[int]("never")))
			return g.Step("out", constant(1), durable.Needs(any))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}, Codec: bothCodecs(t, "a")})
		stop := running(t, e)
		defer stop()
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		got := textsOf(t, db, `SELECT name || ' ' || coalesce(state, 'unknown') || ' ' || coalesce(items_completed, 0) FROM `+prefix+`nodes ORDER BY number`)
		if want := []string{"list completed 0", "each unknown 2", "never cancelled 0", "any completed 0", "out completed 0"}; !slices.Equal(got, want) {
			t.Errorf("the nodes are %q, want %q", got, want)
		}
		if got := textsOf(t, db, `SELECT from_node FROM `+prefix+`edges`); len(got) != 4 {
			t.Errorf("the edges are from %q", got)
		}
	})
}
