package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Citus executes statements that keep these rules, on tables that are sharded by schema as on tables that are distributed by shard.
// The rules are checked on the server's own parse tree, in which every function and operator is resolved.

// uncounted lists the statements that may skip rows, and whose count nobody reads.
var uncounted = []string{
	"run_insert_any.sql", "run_insert_with_place.sql", // rows of tags and places; the runs are returned
	"token_signing_key_insert.sql", "worker_version_record.sql",
}

// fanOuts lists the statements that do not name the shard of each row that they read, so that all shards of a distributed table would be
// asked.
var fanOuts = []string{
	"admission_has_work.sql", "admission_idle_runs_lock.sql", "admission_queue_delete_if_empty.sql", "admission_runs_behind_group_key_lock.sql", "admission_runs_in_line_lock.sql", "admission_runs_lock.sql",
	"admission_unclaimed_runs_count.sql", "claim_check_lanes_and_versions.sql", "claim_runs.sql", "divergences_delete_obsolete.sql", "failure_groups.sql", "runs_held_for_drift.sql",
	"lanes_find_unknown.sql", "lanes_overdue.sql", "leases_of_dead_worker_expire.sql", "leases_of_claim.sql", "limit_keys_delete_unused.sql",
	"limit_keys_with_waiters.sql", "permits_of_run.sql", "permits_of_limit_keys.sql", "queue_depth.sql", "queue_place_of_run.sql", "queues_without_counts.sql",
	"queues_with_counts.sql", "repair_pauses_expired.sql", "run_by_id.sql", "run_by_name.sql", "runs_list_by_failure.sql", "runs_list_by_group_key.sql",
	"runs_list_by_run_name_prefix.sql", "runs_list_by_tag.sql", "runs_list_by_tag_key.sql", "runs_list_by_status.sql", "runs_list_by_owner.sql", "runs_count_by_ended.sql", "runs_list_held.sql",
	"schedules_due.sql", "schedules_page.sql", "schedules_waiting_last_run_ended.sql", "start_key_of_waiting_run.sql",
	"start_keys_due.sql", "start_keys_with_releasable_start.sql", "status_counts.sql",
}

// immutable is the provolatile of a function that depends on its arguments only.
const immutable = "i"

// citusRules are the rules, by what breaks them.
type citusRules struct {
	volatility map[string]string // of each function, by its OID
	formats    []string          // the OIDs of format
	shardAt    map[string]string // the number of the column shard, by the OID of a table that has one
	equal      string            // the OID of the function behind smallint = smallint
}

// node is a node of the server's parse tree: {KIND :field value ...}, or a list ( ... ).
type node struct {
	kind   string
	fields map[string][]*node // the values after the field's name
	items  []*node            // of a list
	text   string             // of a value that is neither
}

// parseNode reads the text of a pg_node_tree.
func parseNode(text string) *node {
	p := &nodeParser{words: splitNodes(text)}
	return p.value()
}

// splitNodes splits a pg_node_tree at its brackets and spaces. A backslash quotes the character after it.
func splitNodes(text string) (words []string) {
	word := ""
	end := func() {
		if word != "" {
			words = append(words, word)
			word = ""
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			word += text[i : i+2]
			i++
		case ' ', '\n':
			end()
		case '{', '}', '(', ')':
			end()
			words = append(words, string(c))
		default:
			word += string(c)
		}
	}
	end()
	return words
}

type nodeParser struct {
	words []string
}

func (p *nodeParser) next() string {
	word := p.words[0]
	p.words = p.words[1:]
	return word
}

func (p *nodeParser) value() *node {
	switch word := p.next(); word {
	case "(":
		list := &node{}
		for p.words[0] != ")" {
			list.items = append(list.items, p.value())
		}
		p.next()
		return list
	case "{":
		n, field := &node{kind: p.next(), fields: make(map[string][]*node)}, ""
		for p.words[0] != "}" {
			if strings.HasPrefix(p.words[0], ":") {
				field = p.next()[1:]
				continue
			}
			n.fields[field] = append(n.fields[field], p.value())
		}
		p.next()
		return n
	default:
		return &node{text: word}
	}
}

// get returns the text of a field.
func (n *node) get(field string) string {
	if v := n.fields[field]; len(v) > 0 {
		return v[0].text
	}
	return ""
}

// list returns the items of a field that is a list.
func (n *node) list(field string) []*node {
	if v := n.fields[field]; len(v) > 0 {
		return v[0].items
	}
	return nil
}

// each calls fn for the node and all below it, except for those below a node for which fn returns false.
func (n *node) each(fn func(*node) bool) {
	if n.kind != "" && !fn(n) {
		return
	}
	for _, v := range n.items {
		v.each(fn)
	}
	for _, values := range n.fields {
		for _, v := range values {
			v.each(fn)
		}
	}
}

// eachOf calls fn for the nodes in these fields that belong to the same query.
func (n *node) eachOf(fn func(*node), fields ...string) {
	for _, field := range fields {
		for _, v := range n.fields[field] {
			v.each(func(n *node) bool {
				if n.kind == "QUERY" {
					return false
				}
				fn(n)
				return true
			})
		}
	}
}

// The values of commandType and of the action of ONCONFLICTEXPR.
const (
	commandSelect, commandUpdate, commandInsert, commandDelete = "1", "2", "3", "4"
	conflictNothing                                            = "1"
)

// breaches returns what a statement does that Citus refuses, or executes in another way.
func (r *citusRules) breaches(tree *node) (found map[string]bool) {
	found = make(map[string]bool)
	tree.each(func(n *node) bool {
		if slices.Contains(r.formats, n.get("funcid")) {
			found["format"] = true
		}
		if n.kind == "COMMONTABLEEXPR" {
			query := n.fields["ctequery"][0]
			if query.get("commandType") == commandSelect && len(query.list("targetList")) == 0 {
				found["a CTE without columns"] = true
			}
		}
		if n.kind != "QUERY" {
			return true
		}
		command := n.get("commandType")
		if command == commandUpdate || command == commandDelete {
			n.eachOf(func(n *node) {
				if n.kind == "SUBSCRIPTINGREF" {
					found["a subscript in SET"] = true
				}
			}, "targetList")
			r.functions(n, found, "targetList", "jointree")
		}
		if conflict := n.fields["onConflict"]; command == commandInsert && len(conflict) > 0 && conflict[0].kind == "ONCONFLICTEXPR" {
			r.functions(conflict[0], found, "onConflictSet", "onConflictWhere")
			conflict[0].eachOf(func(n *node) {
				if n.kind == "SUBSCRIPTINGREF" {
					found["a subscript in SET"] = true
				}
			}, "onConflictSet")
			skips := conflict[0].get("action") == conflictNothing || conflict[0].get("onConflictWhere") != "<>"
			if skips && len(n.list("returningList")) == 0 {
				found["a count of rows without RETURNING"] = true
			}
		}
		r.shards(n, found)
		return true
	})
	return found
}

// functions finds functions that Citus does not execute in an UPDATE: volatile ones, and those that depend on settings.
func (r *citusRules) functions(n *node, found map[string]bool, fields ...string) {
	n.eachOf(func(n *node) {
		for _, field := range []string{"funcid", "opfuncid"} {
			if oid := n.get(field); oid != "" && r.volatility[oid] != immutable {
				found["a function in UPDATE that is not immutable"] = true
			}
		}
		if n.kind == "SQLVALUEFUNCTION" {
			found["a function in UPDATE that is not immutable"] = true
		}
	}, fields...)
}

// shards finds tables whose shard is not compared with anything in the query that reads them.
func (r *citusRules) shards(n *node, found map[string]bool) {
	pinned := make(map[string]bool) // the number of the table in the query
	n.eachOf(func(n *node) {
		if n.kind != "OPEXPR" || n.get("opfuncid") != r.equal {
			return
		}
		for _, arg := range n.list("args") {
			if arg.kind == "VAR" && arg.get("varlevelsup") == "0" {
				pinned[arg.get("varno")+"."+arg.get("varattno")] = true
			}
		}
	}, "jointree")
	for i, table := range n.list("rtable") {
		column, sharded := r.shardAt[table.get("relid")]
		number := strconv.Itoa(i + 1)
		inserted := n.get("commandType") == commandInsert && n.get("resultRelation") == number
		excluded := len(n.fields["onConflict"]) > 0 && n.fields["onConflict"][0].get("exclRelIndex") == number
		if sharded && !inserted && !excluded && !pinned[number+"."+column] {
			found["a fan-out"] = true
		}
	}
}

// newCitusRules reads what the rules need from the catalog.
func newCitusRules(t *testing.T, conn *pgx.Conn) *citusRules {
	t.Helper()
	r := &citusRules{volatility: make(map[string]string), shardAt: make(map[string]string)}
	collect := func(query string, fn func(a, b string)) {
		rows, err := conn.Query(t.Context(), query, pgx.QueryExecModeExec)
		if err != nil {
			t.Fatal(err)
		}
		var a, b string
		if _, err := pgx.ForEachRow(rows, []any{&a, &b}, func() error { fn(a, b); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	collect("SELECT oid::text, provolatile::text FROM pg_proc", func(oid, volatility string) { r.volatility[oid] = volatility })
	collect("SELECT oid::text, '' FROM pg_proc WHERE proname = 'format'", func(oid, _ string) { r.formats = append(r.formats, oid) })
	collect("SELECT attrelid::text, attnum::text FROM pg_attribute WHERE attname = 'shard' AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r')",
		func(table, column string) { r.shardAt[table] = column })
	collect("SELECT 'int2eq'::regproc::oid::text, ''", func(oid, _ string) { r.equal = oid })
	if len(r.formats) == 0 || len(r.shardAt) < 10 {
		t.Fatalf("%+v", r)
	}
	return r
}

// check returns the breaches of a statement, sorted. The server keeps the parse tree of the body of a function.
func (r *citusRules) check(t *testing.T, conn *pgx.Conn, text string) []string {
	t.Helper()
	exec := func(query string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), query, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	var types, body string
	exec("PREPARE examined AS " + text)
	err := conn.QueryRow(t.Context(), "SELECT array_to_string(parameter_types, ', ') FROM pg_prepared_statements WHERE name = 'examined'").Scan(&types)
	if err != nil {
		t.Fatal(err)
	}
	exec("DEALLOCATE examined")
	exec(fmt.Sprintf("CREATE FUNCTION durable.examined(%s) RETURNS void LANGUAGE sql BEGIN ATOMIC %s; END", types, strings.TrimSuffix(strings.TrimSpace(text), ";")))
	if err := conn.QueryRow(t.Context(), "SELECT prosqlbody::text FROM pg_proc WHERE proname = 'examined'").Scan(&body); err != nil {
		t.Fatal(err)
	}
	exec("DROP FUNCTION durable.examined")
	var sorted []string
	for breach := range r.breaches(parseNode(body)) {
		sorted = append(sorted, breach)
	}
	slices.Sort(sorted)
	return sorted
}

// Every statement keeps the rules, and those that read several shards are listed.
func TestStatementsKeepTheRulesOfCitus(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	rules := newCitusRules(t, conn)
	entries, err := files.ReadDir("sql")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]string{"a count of rows without RETURNING": uncounted, "a fan-out": fanOuts}
	for _, e := range entries {
		if slices.Contains(unprepared, e.Name()) {
			continue
		}
		found := rules.check(t, conn, statementText(e.Name(), DefaultSchema))
		for _, breach := range found {
			if !slices.Contains(allowed[breach], e.Name()) {
				t.Errorf("%s: %s", e.Name(), breach)
			}
		}
		for breach, listed := range allowed {
			if slices.Contains(listed, e.Name()) && !slices.Contains(found, breach) {
				t.Errorf("%s is listed for %s, which it does not do", e.Name(), breach)
			}
		}
	}
}

// Each rule finds what it is for, and nothing in a statement as it should be.
func TestTheRulesOfCitusFindBreaches(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	rules := newCitusRules(t, conn)
	const mine = " WHERE r.shard = $1::smallint AND r.id = $2::uuid"
	for text, want := range map[string]string{
		"UPDATE durable.run AS r SET status = ($3::smallint[])[1]" + mine:                                                               "a subscript in SET",
		"UPDATE durable.run AS r SET ended_at = clock_timestamp()" + mine:                                                               "a function in UPDATE that is not immutable",
		"UPDATE durable.run AS r SET ended_at = CURRENT_TIMESTAMP" + mine:                                                               "a function in UPDATE that is not immutable",
		"UPDATE durable.run AS r SET deadline_at = r.deadline_at + $3::interval" + mine:                                                 "a function in UPDATE that is not immutable",
		"UPDATE durable.run AS r SET owner = NULL" + mine + " AND r.wake_at < now()":                                                    "a function in UPDATE that is not immutable",
		"WITH gone AS (DELETE FROM durable.run AS r" + mine + " AND random() < 2 RETURNING r.id) SELECT gone.id FROM gone":              "a function in UPDATE that is not immutable",
		"INSERT INTO durable.queue AS q (name) VALUES ($1::text) ON CONFLICT (name) DO UPDATE SET now_at = now()":                       "a function in UPDATE that is not immutable",
		"INSERT INTO durable.queue AS q (name) VALUES ($1::text) ON CONFLICT (name) DO UPDATE SET older_versions[1] = $1":               "a subscript in SET",
		"SELECT format('%s', r.name) FROM durable.run AS r" + mine:                                                                      "format",
		"INSERT INTO durable.queue (name) VALUES ($1::text) ON CONFLICT (name) DO NOTHING":                                              "a count of rows without RETURNING",
		"INSERT INTO durable.queue AS q (name) VALUES ($1::text) ON CONFLICT (name) DO UPDATE SET name = excluded.name WHERE q.deleted": "a count of rows without RETURNING",
		"WITH target AS (SELECT FROM durable.run AS r" + mine + ") SELECT EXISTS (SELECT FROM target)":                                  "a CTE without columns",
		"SELECT r.name FROM durable.run AS r WHERE r.id = $1::uuid":                                                                     "a fan-out",
		"SELECT s.name FROM durable.run AS r JOIN durable.step AS s ON s.run_id = r.id" + mine:                                          "a fan-out",
		"SELECT EXISTS (SELECT FROM durable.run AS r WHERE r.shard > $1::smallint)":                                                     "a fan-out",
	} {
		if got := rules.check(t, conn, text); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, not %q, in %s", got, want, text)
		}
	}
	fine := `WITH item AS (SELECT ($3::smallint[])[1] AS status, clock_timestamp() + interval '1 second' AS at),
		done AS (UPDATE durable.run AS r SET status = item.status, ended_at = item.at, name = r.name || 'x' FROM item` + mine + ` RETURNING r.id, r.shard),
		told AS (INSERT INTO durable.queue AS q (name, now_at) VALUES ('\{', now()) ON CONFLICT (name) DO UPDATE SET deleted = false)
		SELECT done.id, s.name FROM done JOIN durable.step AS s ON s.shard = done.shard AND s.run_id = done.id`
	if got := rules.check(t, conn, fine); len(got) > 0 {
		t.Errorf("%q in a statement without fault", got)
	}
}
