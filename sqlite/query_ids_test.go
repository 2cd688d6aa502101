package sqlite

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every statement prepares as one statement against a migrated file, and every
// file is one of them.
func TestStatementsPrepare(t *testing.T) {
	s := openTest(t)
	named := map[string]bool{}
	err := s.withConn(t.Context(), s.writerDB, "prepare", func(c *conn) error {
		for q := qBegin; q < queryCount; q++ {
			named[sqlFileName(q)] = true
			if _, err := c.prepare(q); err != nil {
				t.Errorf("%s: %v", sqlFileName(q), err)
			}
			if !strings.HasPrefix(s.statementTexts[q], "-- ") {
				t.Errorf("%s has no comment at its head", sqlFileName(q))
			}
			if strings.Contains(s.statementTexts[q], ";\n") {
				t.Errorf("%s holds more than one statement", sqlFileName(q))
			}
			if bareLimit.MatchString(s.statementTexts[q]) {
				t.Errorf("%s: SQLite looks at a bare parameter in LIMIT when it plans, and so plans anew at each call: write LIMIT ? + 0", sqlFileName(q))
			}
			if n := countArgs(s.statementTexts[q]); n > maxArgs {
				t.Errorf("%s has %d placeholders", sqlFileName(q), n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := fs.Glob(sqlFiles, "sql/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if !named[path.Base(name)] {
			t.Errorf("%s is no query", name)
		}
	}
}

// Each statement uses an index: none reads a whole table. Only
// those that are meant to sort do.
func TestStatementsUseIndexes(t *testing.T) {
	s := openTest(t)
	plans := 0
	err := s.withConn(t.Context(), s.writerDB, "explain", func(c *conn) error {
		for q := qStepInsert; q < qWorkers; q++ {
			args := c.args[:countArgs(s.statementTexts[q])]
			rows, err := c.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+s.statementTexts[q], args)
			if err != nil {
				return err
			}
			plans++
			row := c.row[:len(rows.Columns())]
			for rows.Next(row) == nil {
				plan := row[3].(string)
				walks := strings.HasPrefix(plan, "SCAN ") && !slices.Contains([]string{"SCAN tree", "SCAN examined", "SCAN matched", "SCAN part", "SCAN suspect USING INDEX durable_run_suspect", "SCAN divergence", "SCAN pause", "SCAN json_each VIRTUAL TABLE INDEX 1:"}, plan) && plan != "SCAN CONSTANT ROW" && !strings.HasPrefix(plan, "SCAN (subquery")
				if walks || q <= qWorkerDelete && strings.Contains(plan, "TEMP B-TREE") {
					t.Errorf("%s: %s", sqlFileName(q), plan)
				}
			}
			if err := rows.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := int(qWorkers - qStepInsert); plans != want {
		t.Fatal(plans, "plans instead of", want)
	}
}

// countArgs is the number of placeholders, or the highest one's where they have numbers.
func countArgs(text string) int {
	plain, highest := 0, 0
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "--")
		for _, p := range placeholder.FindAllStringSubmatch(code, -1) {
			if n, err := strconv.Atoi(p[1]); err == nil {
				highest = max(highest, n)
			} else {
				plain++
			}
		}
	}
	return max(plain, highest)
}

// bareLimit makes what is prepared once be prepared at each call.
var bareLimit = regexp.MustCompile(`LIMIT \?[0-9]*[;)]`)

var placeholder = regexp.MustCompile(`\?([0-9]*)`)
