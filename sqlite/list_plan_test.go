package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
)

// TestListsReadRunsOnce: a list reads each run of its index at most once, and a list of the few expired runs reads no failed runs, of which there may
// be many.
func TestListsReadRunsOnce(t *testing.T) {
	s := openTest(t)
	const byStatus = "USING INDEX durable_run_idle (status=? AND id>? AND id<?)"
	status := func(s ...store.Status) store.Filter { return store.Filter{Statuses: s} }
	for name, c := range map[string]struct {
		filter store.Filter
		plan   string
		parts  []int64
	}{
		"all":                     {store.Filter{}, "USING PRIMARY KEY (id>? AND id<?)", wholeList},
		"by workflow and version": {store.Filter{Workflow: "flow", Version: "v1"}, "USING PRIMARY KEY (id>? AND id<?)", wholeList},
		"by tag":                  {store.Filter{Tag: store.Tag{Key: "team", Value: "red"}}, "USING COVERING INDEX durable_tag_value (key=? AND value=? AND run_id>? AND run_id<?)", wholeList},
		"expired":                 {status(store.Expired), byStatus, []int64{int64(store.Expired)}},
		"failed":                  {status(store.Failed), byStatus, []int64{int64(store.Failed)}},
		"paused":                  {status(store.Paused), byStatus, []int64{int64(store.Paused)}},
		"failed and expired":      {status(store.Failed, store.Expired, store.Failed), byStatus, []int64{int64(store.Failed), int64(store.Expired)}},
	} {
		err := s.withConn(t.Context(), s.readerDB, "explain", func(x *conn) error {
			q, parts, err := chooseListQuery(x, &c.filter)
			if err != nil {
				return err
			}
			if !slices.Equal(parts, c.parts) {
				t.Errorf("the list %q has the parts %v, want %v", name, parts, c.parts)
			}
			rows, err := x.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+s.statementTexts[q], x.args[:countArgs(s.statementTexts[q])])
			if err != nil {
				return err
			}
			row := make([]driver.Value, len(rows.Columns()))
			if err := rows.Next(row); err != nil {
				return err
			}
			if plan := fmt.Sprint(row[3]); !strings.HasSuffix(plan, c.plan) {
				t.Errorf("the list %q has the plan %q, want %q", name, plan, c.plan)
			}
			return rows.Close()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
