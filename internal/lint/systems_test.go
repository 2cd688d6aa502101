package lint

import (
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	gotypes "go/types"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// otherSystems are those for which the library is checked beside the one that executes the tests.
var otherSystems = []string{"darwin", "windows"}

// libraries are the folders of what a program links that has files for some systems only.
var libraries = []string{"sqlite"}

// The files of one system declare everything that the others use. This takes no compiler and no imported
// package, so faults that the type checker finds on this system too are not counted: the compiler says
// otherwise.
func TestEachSystemHasItsDeclarations(t *testing.T) {
	for _, library := range libraries {
		known := undeclared(t, filesOn(t, runtime.GOOS, library))
		for _, system := range otherSystems {
			for _, fault := range undeclared(t, filesOn(t, system, library)) {
				if !slices.Contains(known, fault) {
					t.Errorf("%s on %s: %s", library, system, fault)
				}
			}
		}
	}
}

// filesOn returns the names of the files that a system compiles, each with a nil text.
func filesOn(t *testing.T, system, folder string) map[string]any {
	t.Helper()
	ctxt := build.Default
	ctxt.GOOS = system
	folder = filepath.Join("..", "..", folder)
	pkg, err := ctxt.ImportDir(folder, 0)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]any, len(pkg.GoFiles))
	for _, name := range pkg.GoFiles {
		texts[filepath.Join(folder, name)] = nil
	}
	return texts
}

// undeclared returns what the type checker finds in the files of one package, with their texts (nil: those on
// disk), except that their imports are missing.
func undeclared(t *testing.T, texts map[string]any) (faults []string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range texts {
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	config := gotypes.Config{Importer: noImports{}, Error: func(err error) {
		if text := err.Error(); !strings.Contains(text, "could not import") {
			faults = append(faults, text)
		}
	}}
	_, _ = config.Check("library", fset, files, nil) // its error is the first that Error gets
	return faults
}

// noImports imports nothing, so the type checker knows nothing of other packages, and accepts what is used of
// them.
type noImports struct{}

func (noImports) Import(string) (*gotypes.Package, error) { return nil, errors.New("not imported") }

func TestUndeclaredFindsFaults(t *testing.T) {
	for _, text := range []string{
		"package p; var x = missing",
		"package p; type t struct{}; func f(v t) { v.missing() }",
	} {
		if faults := undeclared(t, map[string]any{"p.go": text}); len(faults) != 1 {
			t.Errorf("%q: %q", text, faults)
		}
	}
	if faults := undeclared(t, map[string]any{"p.go": `package p; import "io"; func f(r io.Reader) { r.Read(nil) }`}); len(faults) != 0 {
		t.Errorf("what is imported is checked: %q", faults)
	}
}
