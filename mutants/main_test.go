package main

import (
	"os"
	"path/filepath"
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
			if _, _, err := p.mutated(root); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// What does not compile, what is no SQL, a test that is not there, and a text that is not
// there are errors, and no kills.
func TestWhatIsNoMutantIsNotKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the tests of a package three times")
	}
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	if err := copyTree(root, tree); err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]place{
		"no program": {"sqlite/tag.go", sqlite("/^tag$/set"), []change{{"found := false", "found := nothing"}}},
		"no SQL":     {"sqlite/sql/run_finish.sql", sqlite("/^run$/the_first_end"), []change{{"AND status = 2 AND", "AND status = = 2 AND"}}},
		"no test":    {"sqlite/sql/run_finish.sql", test{"./sqlite", "TestThatIsNot"}, []change{{"AND status = 2 AND", "AND"}}},
		"no text":    {"sqlite/sql/run_finish.sql", sqlite("/^run$/the_first_end"), []change{{"a text that is not there", ""}}},
	} {
		before, err := os.ReadFile(filepath.Join(tree, p.file))
		if err != nil {
			t.Fatal(err)
		}
		by, output, err := p.kill(t.Context(), tree)
		if err == nil || by != "" {
			t.Errorf("%s: got %q, %v, want an error:\n%s", what, by, err, output)
		}
		if after, err := os.ReadFile(filepath.Join(tree, p.file)); err != nil || string(after) != string(before) {
			t.Errorf("%s: the file was not put back: %v", what, err)
		}
	}
}
