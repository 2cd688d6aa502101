package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
)

// TestListsByStatusReadOnlyRunsOfTheStatus: a list of the few expired runs reads no failed runs, of which there may be many.
func TestListsByStatusReadOnlyRunsOfTheStatus(t *testing.T) {
	s := openTest(t)
	for _, statuses := range [][]store.Status{{store.Expired}, {store.Failed}, {store.Paused}, {store.Failed, store.Expired, store.Failed}} {
		f := store.Filter{Statuses: statuses}
		err := s.withReadConn(t.Context(), "explain", func(x executor) error {
			q, parts, err := chooseListQuery(x, &f)
			if err != nil {
				return err
			}
			want := slices.Clone(statuses)
			slices.Sort(want)
			want = slices.Compact(want)
			if len(parts) != len(want) {
				t.Errorf("the list of %v has the parts %v", statuses, parts)
			}
			for _, part := range parts {
				if !slices.Contains(want, store.Status(part)) {
					t.Errorf("the list of %v reads runs of the status %d", statuses, part)
				}
			}
			c := x.(*conn)
			rows, err := c.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+s.statementTexts[q], c.args[:countArgs(s.statementTexts[q])])
			if err != nil {
				return err
			}
			defer rows.Close()
			row := make([]driver.Value, len(rows.Columns()))
			if err := rows.Next(row); err != nil {
				return err
			}
			if plan := fmt.Sprint(row[3]); !strings.Contains(plan, "durable_run_idle (status=? AND id<?)") {
				t.Errorf("the list of %v has the plan %s", statuses, plan)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
