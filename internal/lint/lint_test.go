// Package lint keeps the rules of the house: who may import whom, how long a file may
// be, where SQL lives. Each rule is also tried on an input that breaks it.
package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module  = "github.com/seed8ec063be/durable"
	longest = 400 // lines of a file
)

// file is one Go file, parsed.
type file struct {
	name string // slash-separated, from the module's root
	text string
	tree *ast.File
	fset *token.FileSet
}

func (f *file) folder() string { return path.Dir(f.name) }
func (f *file) test() bool     { return strings.HasSuffix(f.name, "_test.go") }

func parse(name, text string) (*file, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	return &file{name, text, tree, fset}, err
}

func (f *file) imports() (paths []string) {
	for _, spec := range f.tree.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// A rule returns what is wrong with a file, and how to mend it.
type rule func(f *file) []string

var rules = map[string]rule{
	"imports point one way":          importsPointOneWay,
	"outside modules have one place": outsideModules,
	"only the journal commits":       onlyTheJournalCommits,
	"files are short":                filesAreShort,
	"tests await states":             testsAwaitStates,
	"SQL is in .sql files":           sqlInFiles,
	"what is public is documented":   publicIsDocumented,
	"comments name their subject":    commentsNameTheirSubject,
}

func TestRulesOfTheRepository(t *testing.T) {
	files := load(t)
	for name, check := range rules {
		t.Run(name, func(t *testing.T) {
			for _, f := range files {
				for _, fault := range check(f) {
					t.Errorf("%s: %s", f.name, fault)
				}
			}
		})
	}
}

// Every rule finds what it is for.
func TestRulesFindFaults(t *testing.T) {
	planted := make(map[string]bool)
	for _, c := range []struct{ rule, name, text string }{
		{"imports point one way", "internal/store/x.go", `package store; import _ "` + module + `/internal/engine"`},
		{"imports point one way", "x.go", `package durable; import _ "` + module + `/sqlite"`},
		{"imports point one way", "durablecli/x.go", `package durablecli; import _ "` + module + `/internal/store"`},
		{"imports point one way", "internal/engine/x.go", `package engine; import _ "` + module + `"`},
		{"outside modules have one place", "step.go", `package durable; import _ "github.com/cenkalti/backoff/v4"`},
		{"outside modules have one place", "internal/engine/x.go", `package engine; import _ "github.com/netresearch/go-cron"`},
		{"outside modules have one place", "internal/engine/x.go", `package engine; import _ "github.com/jackc/pgx/v5"`},
		{"outside modules have one place", "postgres/x.go", `package postgres; import _ "modernc.org/sqlite"`},
		{"outside modules have one place", "x.go", `package durable; import _ "github.com/spf13/cobra"`},
		{"outside modules have one place", "durabletest/x.go", `package durabletest; import _ "github.com/google/uuid"`},
		{"only the journal commits", "internal/engine/x.go", "package engine; func f(s S) { s.store.Commit(nil, nil) }"},
		{"files are short", "x.go", "package durable" + strings.Repeat("\n", longest+1)},
		{"files are short", "x_test.go", "package durable" + strings.Repeat("\n", longest+1)},
		{"tests await states", "x_test.go", `package durable; import "time"; func f() { <-time.After(1) }`},
		{"SQL is in .sql files", "postgres/x.go", "package postgres; const q = `SELECT a FROM b`"},
		{"what is public is documented", "x.go", "package durable; func Public() {}"},
		{"what is public is documented", "postgres/x.go", "package postgres; type Public int"},
		{"comments name their subject", "x.go", "package durable\n\n// Former returns nothing.\nfunc Present() {}"},
		{"comments name their subject", "x.go", "package durable\n\ntype T struct {\n\t// formerName is empty.\n\tpresentName string\n}"},
	} {
		f, err := parse(c.name, c.text)
		if err != nil {
			t.Fatal(err)
		}
		planted[c.rule] = true
		if len(rules[c.rule](f)) == 0 {
			t.Errorf("%q does not find its fault in %s: %.80s", c.rule, c.name, c.text)
		}
	}
	for rule := range rules {
		if !planted[rule] {
			t.Errorf("nothing breaks the rule %q here", rule)
		}
	}
}

// layers lists, for each folder, what of this module its Go files may import. The folders
// of tops may import anything. Each folder is in one of the two.
var layers = map[string][]string{
	"internal/store":           {},
	"internal/store/storetest": {"internal/store", "internal/testsize"},
	"internal/telemetry":       {},
	"internal/bridge":          {"internal/store"},
	"internal/journal":         {"internal/store"},
	"internal/payload":         {},
	"internal/coded":           {"internal/startkey", "internal/payload", "internal/schedule", "internal/store"},
	"codec":                    {"internal/payload"},
	"internal/clock":           {},
	"internal/slots":           {},
	"internal/polling":         {"internal/store"},
	"internal/queues":          {"internal/clock", "internal/store", "internal/telemetry", "internal/wakeup"},
	"internal/retention":       {"internal/store", "internal/telemetry", "internal/wakeup"},
	"internal/wakeup":          {},
	"internal/permits":         {"internal/clock", "internal/store", "internal/telemetry", "internal/wakeup"},
	"internal/schedule":        {"internal/store"},
	"internal/graph":           {"internal/naming"},
	"internal/startkey":        {"internal/store"},
	"internal/naming":          {"internal/store"},
	"internal/record":          {"internal/naming", "internal/payload", "internal/store", "internal/telemetry"},
	"internal/repair":          {"internal/graph", "internal/naming", "internal/record", "internal/store"},
	"internal/results":         {"internal/store", "internal/telemetry"},
	"internal/stack":           {},
	"internal/token":           {"internal/naming"},
	"internal/history":         {"internal/naming", "internal/record", "internal/store"},
	"internal/buildversion":    {"internal/store"},
	"internal/engine":          {"internal/buildversion", "internal/clock", "internal/coded", "internal/startkey", "internal/journal", "internal/naming", "internal/payload", "internal/permits", "internal/polling", "internal/queues", "internal/record", "internal/repair", "internal/results", "internal/retention", "internal/schedule", "internal/slots", "internal/stack", "internal/store", "internal/telemetry", "internal/token", "internal/wakeup"},
	"internal/pgtest":          {},
	"schema":                   {"internal/store"},
	".":                        {"internal/bridge", "internal/engine", "internal/startkey", "internal/graph", "internal/history", "internal/naming", "internal/payload", "internal/record", "internal/repair", "internal/retention", "internal/schedule", "internal/store", "internal/telemetry", "internal/token"},
	"postgres":                 {".", "internal/bridge", "internal/store", "schema"},
	"sqlite":                   {".", "internal/bridge", "internal/store", "schema"},
	"internal/wording":         {"."},
	"ui":                       {".", "internal/doctor", "internal/wording", "schema"},
	"internal/doctor":          {".", "internal/wording"},
	"durablecli":               {".", "internal/bridge", "internal/doctor", "internal/wording", "postgres", "schema", "sqlite", "ui"},
	"cmd/durable":              {"durablecli"},
}

func importsPointOneWay(f *file) (faults []string) {
	allowed, bound := layers[f.folder()]
	if !bound || f.test() {
		return nil
	}
	for _, p := range f.imports() {
		own, ok := strings.CutPrefix(p, module)
		if !ok {
			continue
		}
		own = strings.TrimPrefix(own, "/")
		if own == "" {
			own = "."
		}
		if !slices.Contains(allowed, own) {
			faults = append(faults, fmt.Sprintf("imports %s: imports point from programs to the root, engine, journal and store, and from postgres and sqlite to the root and store: move the code, or pass it in", p))
		}
	}
	return faults
}

// homes says where each outside module may be imported, tests apart.
var homes = map[string]func(name string) bool{
	"github.com/klauspost/compress":  func(name string) bool { return strings.HasPrefix(name, "codec/") },
	"github.com/spf13/cobra":         func(name string) bool { return strings.HasPrefix(name, "durablecli/") },
	"github.com/mattn/go-runewidth":  func(name string) bool { return strings.HasPrefix(name, "durablecli/") },
	"golang.org/x/term":              func(name string) bool { return strings.HasPrefix(name, "durablecli/") },
	"github.com/cenkalti/backoff":    func(name string) bool { return name == "retry.go" },
	"github.com/netresearch/go-cron": func(name string) bool { return name == "internal/schedule/cron.go" },
	"modernc.org/sqlite":             func(name string) bool { return strings.HasPrefix(name, "sqlite/") },
	"github.com/jackc/pgx": func(name string) bool {
		return strings.HasPrefix(name, "postgres/") || strings.HasPrefix(name, "internal/pgtest/") || strings.HasPrefix(name, "durablecli/") || strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "soak/")
	},
}

func outsideModules(f *file) (faults []string) {
	if f.test() {
		return nil
	}
	for _, p := range f.imports() {
		if host, _, _ := strings.Cut(p, "/"); f.folder() == "durabletest" && strings.Contains(host, ".") && !strings.HasPrefix(p, module) {
			faults = append(faults, fmt.Sprintf("imports %s: package durabletest gets by on the standard library and this module", p))
		}
		for outside, home := range homes {
			if strings.HasPrefix(p, outside) && !home(f.name) {
				faults = append(faults, fmt.Sprintf("imports %s, which has another home: go through the package that wraps it", p))
			}
		}
	}
	return faults
}

// onlyTheJournalCommits looks for calls of Commit with a batch, two arguments, outside
// of the journal. Transactions of drivers take one.
func onlyTheJournalCommits(f *file) (faults []string) {
	if f.test() || !slices.Contains([]string{".", "internal/engine"}, f.folder()) {
		return nil
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if s, ok := c.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Commit" && len(c.Args) == 2 {
				faults = append(faults, fmt.Sprintf("%s calls Store.Commit: append to the journal", f.fset.Position(c.Pos())))
			}
		}
		return true
	})
	return faults
}

func filesAreShort(f *file) []string {
	if n := strings.Count(f.text, "\n"); n > longest {
		return []string{fmt.Sprintf("has %d lines, at most %d: one noun, one file", n, longest)}
	}
	return nil
}

var statement = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH)\s`)

func sqlInFiles(f *file) (faults []string) {
	if f.test() || !(strings.HasPrefix(f.name, "postgres/") || strings.HasPrefix(f.name, "sqlite/")) {
		return nil
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			// The migrator looks for this one in a migration's text.
			if s, err := strconv.Unquote(lit.Value); err == nil && statement.MatchString(s) && !strings.HasPrefix(s, "CREATE SCHEMA durable;") {
				faults = append(faults, fmt.Sprintf("%s holds a statement: put it into a .sql file, where it can be read and prepared alone", f.fset.Position(lit.Pos())))
			}
		}
		return true
	})
	return faults
}

var public = []string{".", "postgres", "sqlite", "schema", "durablecli", "ui"}

func publicIsDocumented(f *file) (faults []string) {
	if f.test() || !slices.Contains(public, f.folder()) {
		return nil
	}
	missing := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		documented := slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d != nil })
		if name.IsExported() && !documented {
			faults = append(faults, fmt.Sprintf("%s: %s has no comment: say what it does, units, zero values and errors", f.fset.Position(name.Pos()), name.Name))
		}
	}
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d)) {
				missing(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					missing(s.Name, s.Doc, d.Doc)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						missing(name, s.Doc, s.Comment, d.Doc)
					}
				}
			}
		}
	}
	return faults
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// No database driver and no command line reaches those who did not ask for it.
func TestNoDriverInTheRoot(t *testing.T) {
	for pkg, strangers := range map[string][]string{
		module:               {"modernc.org/", "github.com/jackc/", "github.com/spf13/"},
		module + "/postgres": {"modernc.org/", "github.com/spf13/"},
		module + "/sqlite":   {"github.com/jackc/", "github.com/spf13/"},
	} {
		cmd := exec.Command("go", "list", "-deps", pkg)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range strings.Fields(string(out)) {
			for _, stranger := range strangers {
				if strings.HasPrefix(dep, stranger) {
					t.Errorf("%s links %s", pkg, dep)
				}
			}
		}
	}
}

func load(t *testing.T) (files []*file) {
	t.Helper()
	const root = "../.."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || (strings.HasPrefix(base, ".") && name != root) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := parse(filepath.ToSlash(rel), string(text))
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
