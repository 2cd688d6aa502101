package postgres

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/schema"
)

// TestTablesDistribute shows that the schema can be partitioned by its shard without a change. Every
// frequent statement, except the claim and the query for the next due time, then reads only the partition
// of its item.
func TestTablesDistribute(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	if _, err := conn.Exec(t.Context(), "DROP SCHEMA durable CASCADE"); err != nil {
		t.Fatal(err)
	}
	ddl := ""
	for _, m := range schema.Postgres() {
		ddl += m.SQL
	}
	for _, table := range []string{"run", "step", "signal", "tag", "event"} {
		head, tail, ok := strings.Cut(ddl, "CREATE TABLE durable."+table+" (")
		body, rest, closed := strings.Cut(tail, "\n);")
		if !ok || !closed {
			t.Fatalf("no table %s in the schema", table)
		}
		ddl = head + "CREATE TABLE durable." + table + " (" + body + "\n) PARTITION BY HASH (shard);\n"
		for i := range 4 {
			ddl += fmt.Sprintf("CREATE TABLE durable.%s_p%d PARTITION OF durable.%s FOR VALUES WITH (MODULUS 4, REMAINDER %d);\n", table, i, table, i)
		}
		ddl += rest
	}
	if _, err := conn.Exec(t.Context(), ddl, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	at := now(t, s)
	owner := uuid.New()
	run := running(owner, at)
	start := []*store.StartWrite{{Run: run}}
	commit(t, s, &store.Batch{Starts: start})
	step := []*store.StepWrite{done(run.UUID, "a", at)}
	step[0].Step.Status = store.StepStarted
	end := []*store.OwnershipEnd{finish(run.UUID, at)}
	child := []*store.StartWrite{childOf(run.UUID, "child", at)}
	tag := store.Tag{Key: "k", Value: "v"}
	placed := []*store.StartWrite{{Run: child[0].Run, Place: &store.QueuePlace{Run: child[0].Run.UUID, Queue: "queue", Weight: 1}}}
	wait := receive(run.UUID, "wait", "go", at)
	sent := []*store.SignalWrite{signal(run.UUID, "go", "1", at)}
	change := store.ControlChange{Before: store.RunToControl{UUID: run.UUID, Status: store.Running, Epoch: epochAt(1), Owner: run.Owner}, Status: store.Cancelled, AuditColumns: store.AuditColumnsSetCancel}
	key := []any{store.ShardOf(run.UUID), pgUUID(run.UUID)}
	lease := leaseArgs([]store.Lease{{Run: run.UUID, Epoch: epochAt(1)}}, owner)
	for _, c := range []struct {
		name string
		args []any
	}{
		{"runs_lock_for_batch.sql", runIDArgs([]uuid.UUID{run.UUID})},
		{"run_insert.sql", startArgs([]*store.StartWrite{{Run: pending(at)}})},
		{"run_insert_generated_ids.sql", startArgs([]*store.StartWrite{{Run: pending(at)}})},
		{"run_insert_one.sql", runInsertOneArgs(&store.StartWrite{Run: pending(at)})},
		{"run_insert_generated_id.sql", runInsertOneArgs(&store.StartWrite{Run: pending(at)})},
		{"run_insert_any.sql", runInsertAnyArgs(child, []runTag{{child[0].Run.UUID, &tag}})},
		{"run_insert_with_place.sql", startWithPlaceArgs(child, []runTag{{child[0].Run.UUID, &tag}}, placed)},
		{"queue_place_of_run.sql", append(key[:2:2], int32(10))},
		{"start_by_deadline_mark_clear.sql", append(key[:2:2], int64(1))},
		{"states_of_parents.sql", parentIDArgs(child)},
		{"signal_receive.sql", append(singleStepArgs(&wait.Step), "go", "receiver")},
		{"signal_insert.sql", signalArgs(sent)},
		{"signal_insert_with_event.sql", append(signalArgs(sent), pgTime(at), "ann", nil)},
		{"event_insert.sql", eventInsertArgs(store.ActorAndReason{At: at}, []store.Event{{Type: store.EventResumed, Run: run.UUID}})},
		{"signal_not_stored_reasons.sql", signalKeyArgs(sent)},
		{"run_wake.sql", append(wakeArgs([]wakeReason{{run: run.UUID, at: at}}), "channel")},
		{"child_ends_count_and_wake_parents.sql", append(childEndCountArgs([]wakeReason{{run: run.UUID, child: uuid.NullUUID{UUID: run.UUID, Valid: true}, countedBy: "kids", at: at}}), "channel")},
		{"child_ends_set_awaited_count.sql", append(key[:2:2], epochAt(1).EncodeInt64(), "kids", int32(1))},
		{"control_run_tree_lock.sql", runIDArgs([]uuid.UUID{run.UUID})},
		{"control_run_tree_read.sql", runIDArgs([]uuid.UUID{run.UUID})},
		{"run_deadline_set.sql", append(key[:2:2], pgTime(at), pgTime(at), "channel", int64(1), pgTime(at), "ann", nil, nil)},
		{"control_shift_timers.sql", append(runIDArgs([]uuid.UUID{run.UUID}), pgTime(at))},
		{"control_apply.sql", controlApplyArgs(&store.ControlRequest{Now: at}, []store.ControlChange{change}, "channel")},
		{"owned_run_changes.sql", ownedRunChangeArgs([]store.Lease{{Run: run.UUID, Epoch: epochAt(1)}}, owner)},
		{"steps_open.sql", append(key, pgTime(at))},
		{"recorded_choices.sql", key},
		{"run_last_lease_loss.sql", key},
		{"map_progress.sql", key},
		{"run_tags.sql", key},
		{"tag_set.sql", append(key, textArray{1, func(int) *string { return &tag.Key }}, textArray{1, func(int) *string { return &tag.Value }}, run.Epoch.EncodeInt64(), pgTime(at), "ann", nil, "k=v")},
		{"signals_unreceived_count.sql", signalRunIDArgs(sent)},
		{"run_tree.sql", append(key[:2:2], true)},
		{"run_tree_counts.sql", append(key[:2:2], pgTime(at))},
		{"run_by_name.sql", startNameArgs(start)},
		{"step_insert.sql", stepArgs(step, new(sortedBatch).ignoresControlRequests)},
		{"step_insert_one.sql", stepInsertOneArgs(step[0], false)},
		{"step_insert_if_absent.sql", stepArgs(step, new(sortedBatch).ignoresControlRequests)},
		{"step_update.sql", stepArgs(step, new(sortedBatch).ignoresControlRequests)},
		{"step_not_written_reasons.sql", stepKeyArgs(step)},
		{"tx_step_checkpoint.sql", append(singleStepArgs(&step[0].Step), step[0].Step.Failures)},
		{"lease_extend.sql", append(lease, pgTime(at))},
		{"leases_lost.sql", lease},
		{"history.sql", []any{store.ShardOf(run.UUID), pgUUID(run.UUID)}},
		{"history_without_payloads.sql", []any{store.ShardOf(run.UUID), pgUUID(run.UUID)}},
		{"checkpoints_by_name.sql", []any{store.ShardOf(run.UUID), pgUUID(run.UUID), textArray{1, func(int) *string { return &run.Name }}, int32(1)}},
		{"run_state.sql", ownershipEndIDArgs(end)},
		{"run_finish.sql", runFinishArgs(end)},
		{"run_finish_one.sql", runFinishOneArgs(end[0])},
		{"run_end_ownership.sql", append(ownershipEndArgs(end), "channel")},
		{"run_hold_after_rejected_write.sql", append(key, epochAt(1).EncodeInt64(), pgTime(at), "reason", int32(3), nil, false)},
		{"run_by_id.sql", []any{
			int2Array{1, func(int) int16 { return store.ShardOf(run.UUID) }},
			newUUIDArray([]uuid.UUID{run.UUID}),
			textArray{1, func(int) *string { return &run.Name }},
			true, true,
		}},
		{"run_statuses.sql", runIDArgs([]uuid.UUID{run.UUID})},
		{"run_fingerprints.sql", append(runIDArgs([]uuid.UUID{run.UUID}), int32(10))},
	} {
		touched := partitions(t, conn, c.name, c.args)
		if len(touched) > 0 {
			t.Errorf("%s touched several partitions of a table for one item: %v", c.name, touched)
		}
	}
}

// ours returns a connection with the settings of the store's own connections.
func ours(t *testing.T, s *database) *pgx.Conn {
	t.Helper()
	conn, err := s.connectListener(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	registerParameterTypes(conn.TypeMap())
	if _, err := conn.Exec(t.Context(), s.statements.setEngineSessionSettings, pgx.QueryExecModeExec, false, int32(0), true, "force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// statementIn prepares the statement of a file and returns its EXECUTE with n placeholders.
func statementIn(t *testing.T, conn *pgx.Conn, file string, value func(int) string) string {
	t.Helper()
	return executionOf(t, conn, statementText(file, DefaultSchema), value)
}

// executionOf prepares a statement, and returns the text that executes it with the given values.
func executionOf(t *testing.T, conn *pgx.Conn, text string, value func(int) string) string {
	t.Helper()
	var params []string
	for i := 1; strings.Contains(text, "$"+strconv.Itoa(i)+"::"); i++ {
		params = append(params, value(i))
	}
	for _, sql := range []string{"DEALLOCATE ALL", "PREPARE plan AS " + text} {
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(text, err)
		}
	}
	if len(params) == 0 {
		return "EXECUTE plan"
	}
	return "EXECUTE plan(" + strings.Join(params, ", ") + ")"
}

func explain(t *testing.T, conn *pgx.Conn, file string) string {
	t.Helper()
	execute := statementIn(t, conn, file, func(int) string { return "NULL" })
	rows, err := conn.Query(t.Context(), "EXPLAIN (COSTS OFF) "+execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(file, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(file, err)
	}
	return strings.Join(lines, "\n")
}

// tableScan matches what no plan may contain: a scan of a whole table, or a hash of one.
var tableScan = regexp.MustCompile(`^(Seq|Bitmap \w+|Tid|Tid Range) Scan on |^Hash (Left |Semi |Anti )?Join`)

// indexes returns, sorted, how a generic plan reads tables: the names of indexes, and other kinds of
// scans of a whole table.
func indexes(t *testing.T, conn *pgx.Conn, file string) []string {
	t.Helper()
	var used []string
	for line := range strings.Lines(explain(t, conn, file)) {
		line = strings.Trim(line, " ->\n")
		switch {
		case strings.HasPrefix(line, "Index ") && strings.Contains(line, " using "):
			_, index, _ := strings.Cut(line, " using ")
			index, _, _ = strings.Cut(index, " ")
			used = append(used, index)
		case tableScan.MatchString(line):
			used = append(used, line)
		}
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// partitions executes the statement, rolls it back, and returns the partitions that it read, by table,
// except the first one of each.
func partitions(t *testing.T, conn *pgx.Conn, file string, args []any) []string {
	t.Helper()
	execute := statementIn(t, conn, file, func(i int) string { return "$" + strconv.Itoa(i) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over if it fails
	var text string
	all := append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+execute, all...).Scan(&text); err != nil {
		t.Fatal(file, err)
	}
	var nodes []any
	if err := json.Unmarshal([]byte(text), &nodes); err != nil {
		t.Fatal(err)
	}
	read := make(map[string]bool)
	var walk func(any)
	walk = func(n any) {
		switch n := n.(type) {
		case []any:
			for _, child := range n {
				walk(child)
			}
		case map[string]any:
			loops, _ := n["Actual Loops"].(float64) // absent for the targets of an update
			if name, ok := n["Relation Name"].(string); ok && strings.Contains(name, "_p") && loops > 0 {
				read[name] = true
			}
			for _, child := range n {
				walk(child)
			}
		}
	}
	walk(nodes)
	var touched []string
	tables := make(map[string]bool)
	for name := range read {
		table, _, _ := strings.Cut(name, "_")
		if tables[table] {
			touched = append(touched, name)
		}
		tables[table] = true
	}
	return touched
}
