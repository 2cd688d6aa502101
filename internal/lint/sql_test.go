package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The rules for SQL on PostgreSQL are those of pgspot: what a name means must not depend on
// what others have created. The store's own sessions and the migrations search pg_catalog only, so
// there it is enough that tables are qualified. A statement that also runs in a session of a
// user's says so in its head, and qualifies everything.

// foreign is in the head of a file whose statement runs under a search_path that is not ours. A test of
// package postgres finds those that run in users' transactions and do not say so.
const foreign = "runs under a search_path that may be anybody's"

// ofPrograms begins the names of statements that run in the sessions of programs, which have the search_path of their role.
const ofPrograms = "durablecli/sql/postgres_"

// runsAnywhere reports whether the statement of a file runs under a search_path that is not ours.
func runsAnywhere(name, text string) bool {
	return strings.HasPrefix(name, ofPrograms) || saysForeign(text)
}

func saysForeign(text string) bool {
	return strings.Contains(spaces.ReplaceAllString(text, " "), foreign)
}

// safe is how a session, or a transaction, of ours begins.
const safe = "search_path = pg_catalog, pg_temp"

var sqlRules = map[string]func(name, text string) []string{
	"tables are qualified":                            tablesAreQualified,
	"nothing is replaced":                             nothingIsReplaced,
	"migrations set their search_path":                migrationsSetTheirPath,
	"sessions set their search_path":                  sessionsSetTheirPath,
	"everything is qualified in sessions of a user's": everythingIsQualified,
	"programs say whose search_path it is":            programsSayWhosePath,
}

func TestSQL(t *testing.T) {
	for _, pattern := range []string{"postgres/sql/*.sql", "schema/postgres/*.sql", "schema/grants/*.sql", ofPrograms + "*.sql"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, name := range found {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			name = filepath.ToSlash(strings.TrimPrefix(name, filepath.FromSlash("../../")))
			for rule, check := range sqlRules {
				for _, fault := range check(name, string(text)) {
					t.Errorf("%s: %s: %s", name, rule, fault)
				}
			}
		}
	}
}

// Every rule finds what it is for, and nothing in a statement as it should be.
func TestSQLRulesFindFaults(t *testing.T) {
	head, planted := "-- This "+foreign+".\n", make(map[string]bool)
	for _, c := range []struct{ rule, name, text string }{
		{"tables are qualified", "x.sql", "SELECT a FROM run"},
		{"tables are qualified", "x.sql", "INSERT INTO run (a) SELECT 1"},
		{"tables are qualified", "x.sql", "SELECT a FROM durable.run JOIN lateral_step ON true"},
		{"tables are qualified", "x.sql", "CREATE TABLE run (a text)"},
		{"tables are qualified", "x.sql", "WITH w AS (SELECT 1) UPDATE step SET a = 1"},
		{"nothing is replaced", "x.sql", "CREATE OR REPLACE VIEW durable.v AS SELECT 1"},
		{"nothing is replaced", "x.sql", "CREATE TABLE IF NOT EXISTS durable.t ()"},
		{"migrations set their search_path", "schema/postgres/x.sql", "-- Text.\nCREATE TABLE durable.t ();"},
		{"sessions set their search_path", "postgres/sql/listen_session_settings.sql", "SET a = 1;"},
		{"sessions set their search_path", "postgres/sql/set_engine_session_settings.sql", "SELECT pg_catalog.set_config('a', 'b', true)"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT now()"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT count(*) FROM durable.run"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT 1 FROM unnest($1::integer[]) AS item(i)"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT FROM durable.run AS r WHERE r.a = 1"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT r.a&3 FROM durable.run AS r"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT FROM durable.run AS r WHERE r.a IN (1, 2)"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT FROM durable.run AS r WHERE r.a BETWEEN 1 AND 2"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT FROM durable.run AS r WHERE r.a IS NOT DISTINCT FROM 1"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT CASE r.a WHEN 1 THEN 2 END FROM durable.run AS r"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT FROM durable.run JOIN durable.step USING (shard)"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT $1::uuid"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT $1::integer, '{}'::text[]"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "UPDATE durable.run AS r SET a = r.b = 1 WHERE true"},
		{"tables are qualified", "x.sql", head + "SELECT FROM pg_locks"},
		{"tables are qualified", ofPrograms + "x.sql", "SELECT FROM pg_locks"},
		{"everything is qualified in sessions of a user's", ofPrograms + "x.sql", "SELECT 1 = 1"},
		{"programs say whose search_path it is", ofPrograms + "x.sql", "SELECT 1"},
		{"everything is qualified in sessions of a user's", "x.sql", head + "SELECT pg_catalog.abs(1) OPERATOR(public.+) 1"},
	} {
		planted[c.rule] = true
		if len(sqlRules[c.rule](c.name, c.text)) == 0 {
			t.Errorf("%q does not find its fault in %s", c.rule, c.text)
		}
	}
	for rule := range sqlRules {
		if !planted[rule] {
			t.Errorf("nothing breaks the rule %q here", rule)
		}
	}
	fine := head + `WITH w AS MATERIALIZED (SELECT r.* FROM durable.run AS r WHERE r.a OPERATOR(pg_catalog.=) ANY (ARRAY[1, 2]) FOR NO KEY UPDATE)
		UPDATE durable.step AS s SET a = CASE WHEN (w.b OPERATOR(pg_catalog.&) 3) IS NULL THEN least(1, 2) ELSE coalesce(w.c, 1) END, b = w.b
		FROM w CROSS JOIN unnest($1::integer[], $2::pg_catalog.text[]) WITH ORDINALITY AS item(a, b)
		WHERE EXISTS (SELECT FROM w) AND pg_catalog.count(*) OPERATOR(pg_catalog.>) 0 -- x = 1, now()
		RETURNING 'a = now()'; INSERT INTO durable.run AS r (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = excluded.a;`
	for rule, check := range sqlRules {
		if faults := check("x.sql", fine); len(faults) > 0 {
			t.Errorf("%s: %q", rule, faults)
		}
	}
}

var (
	noise   = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|"[^"]*"`)
	spaces  = regexp.MustCompile(`\s+`)
	lexemes = regexp.MustCompile(`[A-Za-z_][\w.]*\*?|\$\d+|\d+|::|[-+*/<>=~!@#%^&|?]+|[(),;\[\].:]`)
)

// lex returns the words and signs of a statement, without its comments and with texts emptied.
func lex(text string) []string {
	text = noise.ReplaceAllStringFunc(text, func(s string) string {
		switch s[0] {
		case '-':
			return " "
		case '\'':
			return " 0 "
		}
		return " quoted "
	})
	return lexemes.FindAllString(text, -1)
}

func is(word string, of ...string) bool {
	return slices.ContainsFunc(of, func(s string) bool { return strings.EqualFold(s, word) })
}

// at is the word at a place, empty beyond the ends.
func at(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i]
}

// named are the parts of a WITH.
func named(words []string) (names []string) {
	for i, word := range words {
		if is(word, "AS") && (at(words, i+1) == "(" || is(at(words, i+1), "MATERIALIZED", "NOT")) {
			names = append(names, at(words, i-1))
		}
	}
	return names
}

func tablesAreQualified(name, text string) (faults []string) {
	words := lex(text)
	parts := named(words)
	for i, word := range words {
		j := i + 1
		switch {
		case is(word, "FROM") && is(at(words, i-1), "DISTINCT"): // IS DISTINCT FROM
			continue
		case is(word, "UPDATE") && !is(at(words, i-1), "", ";", ")"): // FOR UPDATE, DO UPDATE, GRANT
			continue
		case is(word, "TABLE", "VIEW") && is(at(words, i-1), "CREATE", "ALTER", "DROP"):
		case is(word, "FROM", "JOIN", "INTO", "UPDATE"):
		default:
			continue
		}
		for is(at(words, j), "ONLY", "LATERAL", "IF", "NOT", "EXISTS") {
			j++
		}
		table := at(words, j)
		switch {
		case table == "" || strings.Contains(table, ".") || !regexp.MustCompile(`^[A-Za-z_]`).MatchString(table):
		case at(words, j+1) == "(" && !is(word, "INTO", "TABLE", "VIEW"): // a function
		case slices.Contains(parts, table):
		case strings.HasPrefix(table, "pg_") && !runsAnywhere(name, text): // our search_path finds the catalog's first
		default:
			faults = append(faults, fmt.Sprintf("%s %s: write durable. or pg_catalog. before it", word, table))
		}
	}
	return faults
}

func nothingIsReplaced(_, text string) (faults []string) {
	words := strings.ToUpper(strings.Join(lex(text), " "))
	for _, kept := range []string{"CREATE OR REPLACE", "IF NOT EXISTS"} {
		if strings.Contains(words, kept) {
			faults = append(faults, kept+" takes over what a stranger has made: leave it out, and DROP what was there")
		}
	}
	return faults
}

func migrationsSetTheirPath(name, text string) []string {
	if !strings.HasPrefix(name, "schema/postgres/") {
		return nil
	}
	if code := strings.TrimSpace(noise.ReplaceAllString(text, "")); !strings.HasPrefix(code, "SET LOCAL "+safe+";") {
		return []string{"begin with SET LOCAL " + safe}
	}
	return nil
}

func sessionsSetTheirPath(name, text string) []string {
	switch filepath.Base(name) {
	case "listen_session_settings.sql":
		if !strings.HasPrefix(strings.TrimSpace(noise.ReplaceAllString(text, "")), "SET "+safe+";") {
			return []string{"begin with SET " + safe}
		}
	case "set_engine_session_settings.sql":
		if !strings.Contains(text, "('search_path', 'pg_catalog, pg_temp')") || !strings.Contains(text, foreign) {
			return []string{"set search_path to pg_catalog, pg_temp, and qualify everything: until then it is the role's"}
		}
	}
	return nil
}

// syntax is what looks like a function, and is none.
var syntax = []string{
	"AND", "OR", "NOT", "WHERE", "ON", "AS", "ANY", "ALL", "SOME", "EXISTS", "ARRAY", "VALUES", "FROM", "LATERAL", "SELECT", "WHEN", "THEN", "ELSE", "BY",
	"COALESCE", "LEAST", "GREATEST", "CONFLICT", "MATERIALIZED", "UNION", "RETURNING", "SET", "IS", "OF", "LIMIT", "OFFSET", "ROW", "CAST",
}

// types are named by the grammar itself, so found in pg_catalog whatever the search_path.
var types = []string{"smallint", "integer", "int", "bigint", "boolean", "real", "numeric", "interval"}

var qualifiedOperator = regexp.MustCompile(`OPERATOR\(pg_catalog\.[^)\s]+\)`)

func programsSayWhosePath(name, text string) []string {
	if strings.HasPrefix(name, ofPrograms) && !saysForeign(text) {
		return []string{"say that it " + foreign}
	}
	return nil
}

func everythingIsQualified(name, text string) (faults []string) {
	if !runsAnywhere(name, text) {
		return nil
	}
	fault := func(what string, i int, words []string) {
		from, to := max(0, i-3), min(len(words), i+4)
		faults = append(faults, fmt.Sprintf("%s in %q", what, strings.Join(words[from:to], " ")))
	}
	words := lex(qualifiedOperator.ReplaceAllString(noise.ReplaceAllStringFunc(text, func(s string) string {
		if s[0] == '-' {
			return ""
		}
		return s
	}), " qualified "))
	depth, setAt := 0, -1 // the depth of the SET whose assignments these are
	assigned := false     // the assignment under way has its =
	for i, word := range words {
		switch {
		case word == "(":
			depth++
			name := at(words, i-1)
			whose, _, qualified := strings.Cut(name, ".")
			switch {
			case !regexp.MustCompile(`^[A-Za-z_]`).MatchString(name), name == "qualified", is(name, syntax...), is(at(words, i-2), "AS"):
			case qualified && (whose == "pg_catalog" || whose == "durable"):
			case is(name, "unnest") && several(words[i:]): // the grammar makes one of pg_catalog of each argument
			case is(name, "IN"):
				fault("IN means whatever = does: write OPERATOR(pg_catalog.=) ANY", i, words)
			case is(name, "USING"):
				fault("USING means whatever = does: write ON", i, words)
			default:
				fault("a function: write pg_catalog. before it", i, words)
			}
		case word == ")":
			depth--
		case is(word, "SET") && !is(at(words, i-1), "durable"):
			setAt, assigned = depth, false
		case is(word, "WHERE", "FROM", "RETURNING") && depth == setAt || word == ";":
			setAt = -1
		case word == "," && depth == setAt:
			assigned = false
		case word == "=" && depth == setAt && !assigned:
			assigned = true
		case word == "::":
			if name := at(words, i+1); !is(name, types...) && !strings.HasPrefix(name, "pg_catalog.") {
				fault("a type: write pg_catalog. before it", i, words)
			}
		case word == "*" && is(at(words, i-1), "(", "SELECT", ","):
		case regexp.MustCompile(`^[-+*/<>=~!@#%^&|?]+$`).MatchString(word):
			fault("an operator: write OPERATOR(pg_catalog."+word+")", i, words)
		case is(word, "BETWEEN", "LIKE", "ILIKE", "SIMILAR", "NATURAL", "NULLIF", "OVERLAPS"),
			is(word, "DISTINCT") && is(at(words, i+1), "FROM"), is(word, "CASE") && !is(at(words, i+1), "WHEN"):
			fault(word+" uses operators that cannot be qualified: write the comparison", i, words)
		}
	}
	return faults
}

// several reports whether the arguments that begin here are more than one.
func several(words []string) bool {
	depth := 0
	for _, word := range words {
		switch word {
		case "(", "[":
			depth++
		case ")", "]":
			if depth--; depth == 0 {
				return false
			}
		case ",":
			if depth == 1 {
				return true
			}
		}
	}
	return false
}
