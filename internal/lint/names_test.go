package lint

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inventory is what there is to be named: documents and rules speak of nothing else.
type inventory struct {
	folders  map[string]bool            // that hold Go files
	files    map[string]bool            // of every kind
	exported map[string]map[string]bool // by the name of a public package: X, and X.Y for methods and fields
	tests    map[string]bool            // also benchmarks, fuzz targets and examples
	tables   map[string]bool            // of PostgreSQL, and views
}

// packages are the public ones, by the name that documents use.
var packages = map[string]string{".": "durable", "postgres": "postgres", "sqlite": "sqlite", "durabletest": "durabletest", "schema": "schema", "durablecli": "durablecli", "ui": "ui"}

var created = regexp.MustCompile(`CREATE (?:TABLE|VIEW) durable\.(\w+)`)

func takeInventory(t *testing.T) *inventory {
	t.Helper()
	v := &inventory{map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, f := range load(t) {
		v.folders[f.folder()] = true
		v.note(f)
	}
	const root = "../.."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			return errorOr(err, fs.SkipDir)
		}
		rel, err := filepath.Rel(root, name)
		rel = filepath.ToSlash(rel)
		v.files[rel] = true
		if err == nil && strings.HasPrefix(rel, "schema/postgres/") && strings.HasSuffix(rel, ".sql") {
			text, err := os.ReadFile(name)
			for _, m := range created.FindAllStringSubmatch(string(text), -1) {
				v.tables[m[1]] = true
			}
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// note adds the names of a file.
func (v *inventory) note(f *file) {
	pkg, public := packages[f.folder()]
	add := func(name string) {
		if public && !f.test() {
			if v.exported[pkg] == nil {
				v.exported[pkg] = make(map[string]bool)
			}
			v.exported[pkg][name] = true
		}
	}
	for _, d := range f.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if f.test() {
				v.tests[d.Name.Name] = true
			}
			if d.Recv != nil {
				add(receiver(d) + "." + d.Name.Name)
			} else {
				add(d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name.Name)
					ast.Inspect(s.Type, func(n ast.Node) bool {
						if field, ok := n.(*ast.Field); ok {
							for _, name := range field.Names {
								add(s.Name.Name + "." + name.Name)
							}
						}
						return true
					})
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name.Name)
					}
				}
			}
		}
	}
}

var (
	mention = regexp.MustCompile(`(?:^|[^\w./-])(durable|postgres|sqlite|durabletest|schema)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	relfrom = regexp.MustCompile(`(?i)\b(?:FROM|JOIN|INTO|UPDATE)\s+durable\.(\w+)`)
	tested  = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*\*?`)
	row     = regexp.MustCompile(`^TestRow\d*$`) // all tests of a row of faults
	inside  = regexp.MustCompile(`\b(?:internal|examples)/[a-z/]*[a-z]`)
)

// unknown returns what a document, or a statement, mentions and is not there: exported names of the public
// packages, tables and views after FROM, JOIN, INTO and UPDATE, tests, and folders.
func (v *inventory) unknown(text string) (faults []string) {
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		switch pkg, name, member := m[1], m[2], m[3]; {
		case !v.exported[pkg][name]:
			faults = append(faults, fmt.Sprintf("%s.%s is not exported by package %s", pkg, name, pkg))
		case member != "" && !v.exported[pkg][name+"."+member]:
			faults = append(faults, fmt.Sprintf("%s.%s has no %s", pkg, name, member))
		}
	}
	for _, m := range relfrom.FindAllStringSubmatch(text, -1) {
		if !v.tables[m[1]] {
			faults = append(faults, "durable."+m[1]+" is no table and no view of the schema")
		}
	}
	for _, name := range tested.FindAllString(text, -1) {
		prefix, open := strings.CutSuffix(name, "*")
		open = open || strings.HasSuffix(name, "_") || row.MatchString(name)
		if !v.tests[name] && (!open || !slices.ContainsFunc(keys(v.tests), func(s string) bool { return strings.HasPrefix(s, prefix) })) {
			faults = append(faults, name+" is no test")
		}
	}
	for _, folder := range inside.FindAllString(text, -1) {
		if !v.files[folder] && !v.files[path.Dir(folder)] {
			faults = append(faults, folder+" is not there")
		}
	}
	return faults
}

func keys(m map[string]bool) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	return all
}

// What documents and statements name exists.
func TestDocumentsNameWhatExists(t *testing.T) {
	v := takeInventory(t)
	for name := range v.files {
		document := name == "README.md" || strings.HasSuffix(name, ".md") && path.Dir(name) != "." && !strings.Contains(name, "testdata")
		statement := strings.HasPrefix(name, "postgres/") && strings.HasSuffix(name, ".sql")
		if !document && !statement {
			continue
		}
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range v.unknown(string(text)) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// Each kind of name that is not there is found, and one that is there is not.
func TestUnknownNamesAreFound(t *testing.T) {
	v := takeInventory(t)
	for text, want := range map[string]int{
		"`durable.Nothing`":                                          1,
		"call postgres.Nothing":                                      1,
		"`durable.Engine.Nothing`":                                   1,
		"SELECT a FROM durable.nothing":                              1,
		"TestNothingOfTheKind shows it":                              1,
		"see internal/nothing/of":                                    1,
		"`durable.Engine.Pause`, `durable.Config.Lease`":             0,
		"SELECT a FROM durable.run JOIN durable.steps":               0,
		"TestRulesOfTheRepository and TestRow42_*, by internal/lint": 0,
		"the metric durable.run.started, sqlite.Open":                0,
		"github.com/seed8ec063be/durable/postgres.Nought":            0, // not how names are written
	} {
		if got := v.unknown(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

// tops are the folders that may import anything: programs, tests, and what only tests import.
var tops = []string{
	"bench", "bench/plot", "bench/result", "bench/scale", "internal/pgtest/newest", "durabletest", "examples/demo", "examples/deploy", "examples/graph", "examples/hello", "examples/internal/fleet", "examples/operations", "examples/queues", "examples/saga", "examples/service", "examples/shop",
	"examples/sleepers", "examples/tenants", "faults", "faults/wrongclock", "internal/exampletest", "internal/leaktest", "internal/lint", "internal/realtime",
	"internal/store/model", "internal/testsize", "mutants", "soak", "ui/browsertest",
}

// The rules speak of folders that exist, and each folder has its rule.
func TestRulesNameWhatExists(t *testing.T) {
	v := takeInventory(t)
	for _, fault := range rulesAgainst(v) {
		t.Error(fault)
	}
	// The other way round: a folder that no rule knows, and a rule for a folder that is not there.
	missing := *v
	missing.folders = map[string]bool{"internal/newcomer": true}
	if got := rulesAgainst(&missing); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "internal/newcomer") }) ||
		!slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "internal/engine") }) {
		t.Errorf("a folder without a rule, and rules without a folder, are not found: %q", got)
	}
}

func rulesAgainst(v *inventory) (faults []string) {
	known := slices.Concat(tops, public)
	for folder, may := range layers {
		known = append(append(known, folder), may...)
	}
	for _, folder := range slices.Compact(slices.Sorted(slices.Values(known))) {
		if !v.folders[folder] {
			faults = append(faults, folder+" has a rule, and is not there")
		}
	}
	for folder := range v.folders {
		if _, ok := layers[folder]; !ok && !slices.Contains(tops, folder) {
			faults = append(faults, folder+" has no rule: list what it may import in layers, or name it in tops")
		}
	}
	for name := range mayWait {
		if file, _, _ := strings.Cut(name, " "); !v.files[file] {
			faults = append(faults, file+" may wait, and is not there")
		}
	}
	return faults
}
