package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A mutant whose text is not there any more is noticed here already, and not only when all
// of them are tried, which takes minutes.
func TestEveryMutantApplies(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, m := range mutants {
		if known[m.name] {
			t.Errorf("%s: two mutants have this name", m.name)
		}
		known[m.name] = true
		if len(m.places) == 0 {
			t.Errorf("%s: it changes nothing", m.name)
		}
		for _, p := range m.places {
			if _, _, err := p.mutatedText(root); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// A mutant of a Go file whose names are not there any more is noticed here, too. Mutants of different files are compiled at once.
func TestEveryMutantOfAProgramCompiles(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byFile := make(map[string][]place)
	for _, m := range mutants {
		for _, p := range m.places {
			if filepath.Ext(p.file) == ".go" {
				byFile[p.file] = append(byFile[p.file], p)
			}
		}
	}
	for len(byFile) > 0 {
		folder, replaced, packages := t.TempDir(), make(map[string]string), []string{"build", "-overlay", "overlay.json"}
		for file, places := range byFile {
			_, now, err := places[0].mutatedText(root)
			if err != nil {
				t.Fatal(err)
			}
			replaced[filepath.Join(root, file)] = filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
			if err := os.WriteFile(replaced[filepath.Join(root, file)], now, 0o600); err != nil {
				t.Fatal(err)
			}
			packages = append(packages, "./"+filepath.Dir(file))
			if byFile[file] = places[1:]; len(places) == 1 {
				delete(byFile, file)
			}
		}
		text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
		if err != nil {
			t.Fatal(err)
		}
		packages[2] = filepath.Join(folder, packages[2])
		if err := os.WriteFile(packages[2], text, 0o600); err != nil {
			t.Fatal(err)
		}
		build := exec.CommandContext(t.Context(), "go", packages...)
		build.Dir = root
		if output, err := build.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, output)
		}
	}
}

// The tests that check the syntax of changed statements exist.
func TestTheTestsOfValidStatementsExist(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for folder, by := range validityTests {
		files, err := filepath.Glob(filepath.Join(root, by.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "func "+by.name+"(t *testing.T)")
		}
		if !found {
			t.Errorf("%s: %s has no test %s", folder, by.pkg, by.name)
		}
	}
}

// guarded is a small module with the folders and tests that this module has too. Its tests compile in a moment.
var guarded = map[string]string{
	"go.mod":               "module guarded\n\ngo 1.24\n",
	"sqlite/sql/guard.sql": "UPDATE run SET status = 3 WHERE status = 2 AND epoch = 1",
	"sqlite/guard.go": `package sqlite

import _ "embed"

//go:embed sql/guard.sql
var statement string

func guard(n int) bool { return n == 2 }
`,
	"sqlite/guard_test.go": `package sqlite

import (
	"strings"
	"testing"
)

func TestStatementsPrepare(t *testing.T) {
	if strings.Contains(statement, "= =") {
		t.Error("a syntax error")
	}
}

func TestConformance(t *testing.T) {
	t.Run("run", func(t *testing.T) {
		if guard(1) || !guard(2) || !strings.Contains(statement, "status = 2") {
			t.Error("no guard")
		}
	})
}
`,
}

func writeGuarded(t *testing.T) (tree string) {
	t.Helper()
	tree = t.TempDir()
	for name, text := range guarded {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// A mutant is killed by the test that fails. What does not compile, what is no SQL, a test that does not exist, and a text
// that does not exist are errors, and no kills.
func TestWhatIsNoMutantIsNotKilled(t *testing.T) {
	tree := writeGuarded(t)
	for what, p := range map[string]place{
		"a mutant of the program":   {"sqlite/guard.go", sqliteTest("/^run$"), []change{{"n == 2", "n > 0"}}},
		"a mutant of the statement": {"sqlite/sql/guard.sql", sqliteTest("/^run$"), []change{{"status = 2 AND ", ""}}},
		"no program":                {"sqlite/guard.go", sqliteTest("/^run$"), []change{{"n == 2", "nothing"}}},
		"no SQL":                    {"sqlite/sql/guard.sql", sqliteTest("/^run$"), []change{{"status = 2", "status = = 2"}}},
		"no test":                   {"sqlite/sql/guard.sql", test{"./sqlite", "TestThatIsNot"}, []change{{"status = 2 AND ", ""}}},
		"no text":                   {"sqlite/sql/guard.sql", sqliteTest("/^run$"), []change{{"a text that is not there", ""}}},
	} {
		by, output, err := p.checkDetected(t.Context(), tree)
		if strings.HasPrefix(what, "a mutant") {
			if err != nil || by != "TestConformance/run" {
				t.Errorf("%s: got %q, %v, want the failed test:\n%s", what, by, err, output)
			}
		} else if err == nil || by != "" {
			t.Errorf("%s: got %q, %v, want an error:\n%s", what, by, err, output)
		}
		if after, err := os.ReadFile(filepath.Join(tree, p.file)); err != nil || string(after) != guarded[p.file] {
			t.Errorf("%s: the file was not put back: %v", what, err)
		}
	}
}
