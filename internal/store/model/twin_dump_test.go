package model_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// The columns that a twin check compares, with their kinds: t text, n number, b boolean, T time in microseconds, u UUID, p UUID of a
// parent, y bytes, a array of numbers or texts.
var twinColumns = map[string]string{
	"run": `id:u shard:n parent_id:p name:t workflow:t version:t queue:t priority:n lane:n status:n epoch:n crashes:n progress:n owner:u
		lost_at:T wake_at:T deadline_at:T timeout:n created_at:T started_at:T ended_at:T input:y output:y error:y control:n woken:b
		detached:b reason:t paused_at:T paused_by:t cancelled_at:T cancelled_by:t cancel_reason:t`,
	"place": "run_id:u shard:n queue:t key:t weight:n priority:n state:n root:b begun:b turn:n arrived_at:T start_by:T",
	"queue": `name:t now_at:T rate_used_until:T closed_until:T turns:a waiting:n executing:n open:n deleted:b applied:t declared:t
		declared_version:t declared_at:T older_versions:a chosen:t chosen_by:t chosen_reason:t chosen_at:T paused_at:T paused_by:t
		pause_reason:t last_change:t`,
	"queue_key": `queue:t key:t rate_used_until:T check_at:T turns:a in_line_by_priority:a executing:n open:n in_line:n in_line_begun:n
		in_line_children:n behind:n`,
	"step":  "run_id:u name:t kind:n status:n epoch:n output:y error:y started_at:T ended_at:T next_at:T",
	"event": "run_id:u type:n at:T actor:t reason:t old_value:t new_value:t",
}

// The columns that identify a row. Events have none: they are compared as a set.
var twinKeys = map[string][]string{"run": {"id"}, "place": {"run_id"}, "queue": {"name"}, "queue_key": {"queue", "key"}, "step": {"run_id", "name"}, "event": nil}

// twinRow holds the values of one row as text, by the names of its columns. A column that is NULL is left out.
type twinRow map[string]string

func (r twinRow) int(column string) int64 {
	n, err := strconv.ParseInt(r[column], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (r twinRow) is(column string) bool { return r.int(column) != 0 }

func (r twinRow) uuid(column string) uuid.UUID {
	id, _ := uuid.Parse(r[column])
	return id
}

func (r twinRow) status() store.Status       { return store.Status(r.int("status")) }
func (r twinRow) control() store.ControlBits { return store.ControlBits(r.int("control")) }
func (r twinRow) epoch() store.Epoch         { return store.DecodeEpoch(r.int("epoch")) }
func (r twinRow) lane() store.ClaimLane      { return store.ClaimLane(r.int("lane")) }
func (r twinRow) String() string {
	words := make([]string, 0, len(r))
	for _, c := range slices.Sorted(maps.Keys(r)) {
		words = append(words, c+"="+r[c])
	}
	return strings.Join(words, " ")
}

// twinDump holds all rows of the compared tables, by table and by the texts of their keys.
type twinDump map[string]map[string]twinRow

// diff returns the rows that differ, or an empty text.
func (d twinDump) diff(other twinDump) string {
	var text strings.Builder
	for _, table := range slices.Sorted(maps.Keys(twinColumns)) {
		keys := make(map[string]bool)
		for key := range d[table] {
			keys[key] = true
		}
		for key := range other[table] {
			keys[key] = true
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			l, r := d[table][key], other[table][key]
			switch {
			case l == nil:
				fmt.Fprintf(&text, "\n  %s %s: none, other %s", table, key, r)
			case r == nil:
				fmt.Fprintf(&text, "\n  %s %s: %s, other none", table, key, l)
			case !maps.Equal(l, r):
				fmt.Fprintf(&text, "\n  %s %s:", table, key)
				for _, field := range strings.Fields(twinColumns[table]) {
					c, _, _ := strings.Cut(field, ":")
					if l[c] != r[c] {
						fmt.Fprintf(&text, " %s %q, other %q", c, l[c], r[c])
					}
				}
			}
		}
	}
	return text.String()
}

// dump reads the compared tables of the database.
func (b *bed) dump(ctx context.Context) (twinDump, error) {
	d := make(twinDump)
	for table, columns := range twinColumns {
		rows, err := b.dumpTable(ctx, table, strings.Fields(columns))
		if err != nil {
			return nil, fmt.Errorf("read table %s: %w", table, err)
		}
		d[table] = make(map[string]twinRow)
		for _, r := range rows {
			key := ""
			for _, c := range twinKeys[table] {
				key += r[c] + " "
			}
			for n := 0; twinKeys[table] == nil; n++ { // equal events are told apart by a number
				if key = fmt.Sprint(r, n); d[table][key] == nil {
					break
				}
			}
			d[table][key] = r
		}
	}
	return d, nil
}

func (b *bed) dumpTable(ctx context.Context, table string, fields []string) (all []twinRow, err error) {
	names, texts := make([]string, len(fields)), make([]string, len(fields))
	for i, field := range fields {
		name, kind, _ := strings.Cut(field, ":")
		names[i] = name
		texts[i] = twinExpressions[b.kind][kind]
		if texts[i] == "" {
			texts[i] = "CAST({} AS text)"
		}
		texts[i] = strings.ReplaceAll(texts[i], "{}", name)
	}
	values, targets := make([]sql.NullString, len(fields)), make([]any, len(fields))
	for i := range values {
		targets[i] = &values[i]
	}
	add := func() {
		r := make(twinRow)
		for i, v := range values {
			if v.Valid {
				r[names[i]] = v.String
			}
		}
		all = append(all, r)
	}
	if b.kind == "postgres" {
		rows, err := b.third.conn.Query(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM "+b.third.schema+"."+table)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				return nil, err
			}
			add()
		}
		return all, rows.Err()
	}
	rows, err := b.writer.QueryContext(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM durable_"+table)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		add()
	}
	return all, rows.Err()
}

// twinExpressions are the SQL expressions that turn a column {} of a kind into the same text in each database.
var twinExpressions = map[string]map[string]string{
	"postgres": {
		"T": "CAST(CAST(extract(epoch FROM {}) * 1000000 AS bigint) AS text)", "b": "CAST(CAST({} AS integer) AS text)", "u": "replace(CAST({} AS text), '-', '')",
		"p": "replace(CAST({} AS text), '-', '')", "y": "encode({}, 'hex')", "a": "CAST(array_to_json({}) AS text)",
	},
	"sqlite": {
		"u": "CASE WHEN {} IS NOT NULL THEN lower(hex({})) END", "p": "nullif(lower(hex({})), '')", "y": "CASE WHEN {} IS NOT NULL THEN lower(hex({})) END",
	},
}

// checkCounts compares the counts of the queues and of their keys with the places, and the lanes with the runs.
func (d twinDump) checkCounts() error {
	counts := func(queue string, key *string) twinRow {
		n := make(map[string]int64)
		byPriority := new(store.NumberPerPriority)
		for _, p := range d["place"] {
			if p["queue"] != queue || key != nil && p["key"] != *key {
				continue
			}
			switch store.PlaceState(p.int("state")) {
			case store.PlaceExecuting:
				n["executing"]++
			case store.PlaceInLine:
				n["waiting"]++
				n["in_line"]++
				byPriority[p.int("priority")-store.LowestPriority]++
				if p.is("begun") {
					n["in_line_begun"]++
				} else if !p.is("root") {
					n["in_line_children"]++
				}
			case store.PlaceBehindKey:
				n["waiting"]++
				n["behind"]++
			}
			if p.is("root") && p.is("begun") && store.PlaceState(p.int("state")) != store.PlaceGone {
				n["open"]++
			}
		}
		r := make(twinRow)
		columns := []string{"executing", "open", "waiting"}
		if key != nil {
			columns = []string{"executing", "open", "in_line", "in_line_begun", "in_line_children", "behind"}
			r["in_line_by_priority"] = strings.ReplaceAll(fmt.Sprint(*byPriority), " ", ",")
		}
		for _, c := range columns {
			r[c] = strconv.FormatInt(n[c], 10)
		}
		return r
	}
	check := func(what string, row, want twinRow) error {
		for c, v := range want {
			if row[c] != v {
				return fmt.Errorf("%s counts %s %s, its places are %s", what, c, row[c], v)
			}
		}
		return nil
	}
	for name, q := range d["queue"] {
		if err := check("queue "+name, q, counts(q["name"], nil)); err != nil {
			return err
		}
	}
	for name, k := range d["queue_key"] {
		key := k["key"]
		if err := check("key "+name, k, counts(k["queue"], &key)); err != nil {
			return err
		}
	}
	for _, p := range d["place"] {
		r := d["run"][p["run_id"]+" "]
		if r == nil || r["queue"] != p["queue"] {
			return fmt.Errorf("the place %s is of the run %s", p, r)
		}
	}
	for _, r := range d["run"] {
		want := store.ClaimLaneOf(r["queue"], r["workflow"], r["version"], int16(r.int("priority")))
		if l := r.lane(); l != store.UnreleasedLane && !r.status().IsTerminal() && l.WithAdmission(0) != want {
			return fmt.Errorf("the run %s has not the lane %d", r, want)
		}
	}
	return nil
}
