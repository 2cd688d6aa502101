package postgres

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// unprepared lists the files with statements that PostgreSQL cannot prepare.
var unprepared = []string{"listen_session_settings.sql", "listen.sql", "tx_step_begin.sql", "citus_home_node.sql", "unlisten.sql"}

func TestEveryFileIsPreparedAsItStands(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	entries, err := files.ReadDir("sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := files.ReadFile("sql/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- ") {
			t.Errorf("%s does not begin with a comment", e.Name())
		}
		if slices.Contains(unprepared, e.Name()) {
			continue
		}
		name := strings.TrimSuffix(e.Name(), ".sql")
		if _, err := conn.Exec(t.Context(), "PREPARE "+name+" AS "+string(text), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
	}
}

func TestAnotherSchemaReplacesTheQualifierOnly(t *testing.T) {
	entries, err := files.ReadDir("sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if text := statementText(e.Name(), "other"); strings.Contains(text, "durable.") || strings.Contains(text, "--") {
			t.Errorf("%s: %s", e.Name(), text)
		}
	}
}

// TestBothInsertsAreOne: the statement that is executed after an existing row was met is the same, except
// that it leaves existing rows unchanged.
func TestBothInsertsAreOne(t *testing.T) {
	for _, c := range []struct{ first, again, key string }{
		{"step_insert.sql", "step_insert_if_absent.sql", "shard, run_id, name"},
		{"run_insert_generated_ids.sql", "run_insert.sql", "name, parent_id, shard"},
		{"run_insert_generated_id.sql", "run_insert_one.sql", "name, parent_id, shard"},
	} {
		if got, want := statementText(c.again, DefaultSchema), statementText(c.first, DefaultSchema)+"\nON CONFLICT ("+c.key+") DO NOTHING\nRETURNING true"; got != want {
			t.Errorf("%s is\n%s\nwant\n%s", c.again, got, want)
		}
	}
}

// plans lists the statements whose plan must not depend on the size of the tables, and the indexes that
// they may use.
var plans = map[string][]string{
	"lanes_overdue.sql":                      {"run_wake"},
	"runs_lock_for_batch.sql":                {"run_pkey"},
	"run_hold_after_rejected_write.sql":      {"run_pkey", "step_pkey"},
	"run_insert.sql":                         nil,
	"run_insert_one.sql":                     nil,
	"run_insert_generated_id.sql":            nil,
	"run_insert_generated_ids.sql":           nil,
	"run_insert_any.sql":                     {"run_pkey"},
	"states_of_parents.sql":                  {"run_pkey"},
	"signal_receive.sql":                     {"run_pkey", "signal_pkey", "signal_queue", "step_pkey"},
	"signal_insert.sql":                      {"run_pkey"},
	"signal_not_stored_reasons.sql":          {"run_pkey", "signal_key", "signal_pkey"},
	"run_wake.sql":                           {"run_pkey", "signal_pkey"},
	"child_ends_count_and_wake_parents.sql":  {"run_pkey", "step_pkey"},
	"child_ends_set_awaited_count.sql":       {"run_pkey", "step_pkey"},
	"control_run_tree_lock.sql":              {"run_child", "run_pkey"},
	"control_run_tree_read.sql":              {"run_child", "run_pkey"},
	"run_deadline_set.sql":                   {"run_pkey"},
	"control_shift_timers.sql":               {"run_pkey", "step_pkey"},
	"control_apply.sql":                      {"place_pkey", "run_pkey"},
	"owned_run_changes.sql":                  {"run_pkey"},
	"steps_open.sql":                         {"step_pkey"},
	"recorded_choices.sql":                   {"step_pkey"},
	"run_last_lease_loss.sql":                {"run_pkey"},
	"map_progress.sql":                       {"step_pkey"},
	"run_tags.sql":                           {"tag_pkey"},
	"tag_set.sql":                            {"run_pkey", "tag_pkey"},
	"signals_unreceived_count.sql":           {"signal_queue"},
	"runs_list.sql":                          {"run_pkey", "step_pkey"},
	"runs_list_by_id.sql":                    {"generation_archive", "place_key", "run_pkey", "step_pkey", "tag_pkey"},
	"runs_list_by_parent.sql":                {"generation_pkey", "place_key", "run_child", "step_pkey", "tag_pkey"},
	"runs_search.sql":                        {"run_pkey", "tag_pkey"},
	"runs_list_by_failure.sql":               {"run_failure", "step_pkey", "tag_pkey"},
	"runs_list_by_status.sql":                {"run_idle", "step_pkey", "tag_pkey"},
	"admission_idle_runs_lock.sql":           {"place_pkey", "run_idle", "run_pkey"},
	"runs_list_by_owner.sql":                 {"run_wake", "step_pkey", "tag_pkey"},
	"runs_list_held.sql":                     {"Seq Scan on divergence d", "run_pkey", "run_suspect", "step_pkey", "tag_pkey"},
	"failure_groups.sql":                     {"run_failure", "run_idle", "tag_pkey"},
	"status_counts.sql":                      {"run_idle", "run_wake"},
	"event_newest.sql":                       {"event_pkey"},
	"runs_list_by_tag.sql":                   {"run_pkey", "step_pkey", "tag_value"},
	"runs_list_by_tag_key.sql":               {"run_pkey", "step_pkey", "tag_value"},
	"runs_list_by_run_name_prefix.sql":       {"run_name", "step_pkey"},
	"run_tree.sql":                           {"generation_pkey", "run_child", "run_pkey", "step_pkey"},
	"run_tree_counts.sql":                    {"generation_pkey", "run_child", "run_pkey", "step_pkey"},
	"events_page.sql":                        {"event_pkey", "run_pkey"},
	"events_page_before.sql":                 {"event_pkey", "run_pkey"},
	"run_by_name.sql":                        {"run_name"},
	"step_insert.sql":                        {"run_pkey"},
	"step_insert_one.sql":                    {"run_pkey"},
	"step_insert_if_absent.sql":              {"run_pkey"},
	"step_update.sql":                        {"run_pkey", "step_pkey"},
	"step_not_written_reasons.sql":           {"run_pkey", "step_pkey"},
	"run_finish.sql":                         {"run_pkey"},
	"run_finish_one.sql":                     {"run_pkey"},
	"run_end_ownership.sql":                  {"run_pkey", "step_pkey"},
	"retention_tree_lock.sql":                {"generation_pkey", "run_child", "run_pkey"},
	"retention_tree_read.sql":                {"generation_archive", "generation_pkey", "run_child", "run_pkey"},
	"retention_runs_delete.sql":              {"divergence_pkey", "generation_archive", "permit_pkey", "place_pkey", "run_pkey", "signal_pkey", "step_pkey", "tag_pkey"},
	"retention_ended_roots_page.sql":         {"generation_archive", "run_pkey"},
	"retention_generations_to_delete.sql":    {"generation_pkey"},
	"retention_events_delete.sql":            {"event_pkey"},
	"event_insert.sql":                       nil,
	"signal_insert_with_event.sql":           {"run_pkey"},
	"run_state.sql":                          {"run_pkey"},
	"claim_runs.sql":                         {"run_pkey", "run_suspect", "run_wake", "step_pkey"},
	"claim_histories.sql":                    {"step_pkey"},
	"history_part.sql":                       {"step_pkey"},
	"leases_of_claim.sql":                    {"run_wake"},
	"claim_check_lanes_and_versions.sql":     {"run_wake", "version_arrived"},
	"lanes_find_unknown.sql":                 {"run_wake"},
	"lease_extend.sql":                       {"run_pkey"},
	"leases_lost.sql":                        {"run_pkey"},
	"leases_of_dead_worker_expire.sql":       {"run_pkey", "run_wake"},
	"run_by_id.sql":                          {"run_name", "run_pkey", "step_pkey"},
	"run_statuses.sql":                       {"run_pkey"},
	"history.sql":                            {"step_pkey"},
	"history_without_payloads.sql":           {"step_pkey"},
	"run_fingerprints.sql":                   {"run_pkey", "step_pkey"},
	"checkpoints_by_name.sql":                {"step_pkey"},
	"tx_step_checkpoint.sql":                 {"run_pkey"},
	"start_key_lock.sql":                     {"fold_pkey"},
	"start_key_of_waiting_run.sql":           {"fold_waiting"},
	"start_key_try_lock.sql":                 {"fold_pkey"},
	"start_key_insert.sql":                   nil,
	"start_key_update.sql":                   {"fold_pkey"},
	"start_key_delete.sql":                   {"fold_pkey"},
	"start_keys_due.sql":                     {"fold_look"},
	"start_keys_with_releasable_start.sql":   {"fold_after", "run_pkey"},
	"start_key_run_states.sql":               {"run_pkey"},
	"start_key_release_run.sql":              {"place_pkey", "run_pkey"},
	"schedules_due.sql":                      {"schedule_next"},
	"schedules_waiting_last_run_ended.sql":   {"run_pkey", "schedule_waiting"},
	"schedule_lock.sql":                      {"schedule_pkey"},
	"schedule_try_lock.sql":                  {"schedule_pkey"},
	"schedule_by_name.sql":                   {"schedule_pkey"},
	"schedule_last_run_state.sql":            {"run_pkey"},
	"schedule_update.sql":                    {"schedule_pkey"},
	"schedule_delete.sql":                    {"schedule_pkey"},
	"schedule_fires_by_time.sql":             {"fire_pkey"},
	"schedule_fires_latest.sql":              {"fire_pkey"},
	"schedule_fires_to_compact.sql":          {"fire_pkey"},
	"schedule_fire_delete_compacted.sql":     {"fire_pkey"},
	"schedule_fires_delete_all.sql":          {"fire_pkey"},
	"schedule_fire_bitmaps_read.sql":         {"fired_pkey"},
	"schedule_fire_bitmaps_delete_all.sql":   {"fired_pkey"},
	"repair_fence.sql":                       {"run_pkey"},
	"repair_runs_lock.sql":                   {"run_pkey"},
	"repair_run_states_read.sql":             {"generation_pkey", "run_pkey"},
	"repair_old_generation_insert.sql":       {"run_pkey"},
	"repair_steps_move_to_generation.sql":    {"step_pkey"},
	"repair_kept_steps_copy.sql":             {"step_pkey"},
	"repair_new_steps_insert.sql":            nil,
	"repair_children_move_to_generation.sql": {"run_child"},
	"repair_signals_mark_unreceived.sql":     {"signal_pkey"},
	"repair_begin_next_generation.sql":       {"divergence_pkey", "place_pkey", "queue_pkey", "run_pkey"},
	"superseded_generations.sql":             {"generation_pkey"},
	"generations_by_archive_id.sql":          {"generation_archive"},
	"permit_limit_bounds.sql":                {"step_limit_pkey"},
	"limit_declare.sql":                      nil,
}

// TestPlans checks the plans in an empty database, in one with DURABLE_PLAN_ROWS runs (1000 by default)
// and fresh statistics, and in one whose statistics are those of five million runs.
func TestPlans(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	check := func(t *testing.T) {
		for name, want := range plans {
			got := indexes(t, conn, name)
			if name == "runs_list_held.sql" && slices.Contains(got, "divergence_pkey") {
				got[0] = want[0] // PostgreSQL 18 reads the whole table too, but in the order of its key
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: its plan uses %v, not %v:\n%s", name, got, want, explain(t, conn, name))
			}
		}
	}
	t.Run("empty", check)
	rows := 1000
	if n, err := strconv.Atoi(os.Getenv("DURABLE_PLAN_ROWS")); err == nil {
		rows = n
	}
	if _, err := conn.Exec(t.Context(), "SET statement_timeout = 0"); err != nil { // inserting millions of rows takes a while
		t.Fatal(err)
	}
	for _, fill := range []string{
		`INSERT INTO durable.run (created_at, epoch, shard, status, id, owner, name, workflow, queue, lane, wake_at)
		 SELECT now(), 1, n % 64, 2, gen_random_uuid(), gen_random_uuid(), 'run-' || n, 'flow', 'default', 4 * (n % 3), now() + n * interval '1 second'
		 FROM generate_series(1, $1::integer) AS n`,
		`INSERT INTO durable.step (started_at, epoch, attempt, shard, kind, status, run_id, name)
		 SELECT now(), 1, 1, shard, 1, 3, id, 'step-' || n FROM durable.run, generate_series(1, 3) AS n WHERE $1::integer > 0`,
		`INSERT INTO durable.run (created_at, epoch, shard, status, id, parent_id, name, workflow, queue, lane)
		 SELECT now(), 1, shard, 5, gen_random_uuid(), id, 'child', 'flow', 'default', 0 FROM durable.run LIMIT $1::integer / 2`,
		`INSERT INTO durable.run (created_at, ended_at, epoch, shard, status, id, name, workflow, queue, lane, failed_step, failed_type)
		 SELECT now(), now(), 1, n % 64, 6, gen_random_uuid(), 'failed-' || n, 'flow', 'default', 0, 'step-' || n % 9, 'type' FROM generate_series(1, $1::integer / 2) AS n`,
		`INSERT INTO durable.run (created_at, epoch, shard, status, id, name, workflow, queue, lane)
		 SELECT now(), 1, n % 64, 3 + n % 2, gen_random_uuid(), 'idle-' || n, 'flow', 'default', 0 FROM generate_series(1, $1::integer / 2) AS n`,
		`INSERT INTO durable.tag (shard, run_id, key, value) SELECT shard, id, 'team', 'red' FROM durable.run WHERE $1::integer > 0`,
		`INSERT INTO durable.signal (created_at, arrived_at, shard, id, run_id, name, key, payload)
		 SELECT now(), now(), shard, gen_random_uuid(), id, 'signal', 'key', '1' FROM durable.run LIMIT $1::integer / 2`,
		`INSERT INTO durable.event (at, shard, type, run_id) SELECT now(), shard, 5, id FROM durable.run LIMIT $1::integer / 2`,
	} {
		if _, err := conn.Exec(t.Context(), fill, rows); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	t.Run(fmt.Sprint(rows), check)
	// The planner multiplies the number of a table's pages by the density in the catalog. This sets a
	// density that amounts to five million rows. DURABLE_PLAN_ROWS inserts real rows, which takes
	// minutes.
	_, err := conn.Exec(t.Context(), `UPDATE pg_class SET reltuples = 5e6, relpages = greatest(1, pg_relation_size(oid) / 8192)
		WHERE relnamespace = 'durable'::regnamespace AND relkind IN ('r', 'i')`)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("5000000", check)
}
