package lint

import (
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// repository is what documents may name.
type repository struct {
	files   map[string]bool            // files and folders, slash-separated, from the module's root
	bases   map[string]bool            // their last elements
	names   map[string]bool            // exported functions, methods, types, fields, constants and variables
	tests   map[string]bool            // tests, benchmarks, fuzz targets and examples
	targets map[string]bool            // of the Makefile
	anchors map[string]map[string]bool // of each document
	texts   map[string]string          // of each document
	code    string                     // of all Go files but tests
}

// TestDocuments checks that the links between documents resolve, and that the files, tests, exported
// names, make targets and lines of the log that documents quote exist.
func TestDocuments(t *testing.T) {
	r := survey(t)
	if len(r.texts) < 10 {
		t.Fatalf("found %d documents: %q", len(r.texts), slices.Sorted(maps.Keys(r.texts)))
	}
	for name, text := range r.texts {
		for _, fault := range slices.Concat(r.deadLinks(name, text), r.unknownNames(text)) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestDocumentRulesFindFaults plants each fault that TestDocuments is for.
func TestDocumentRulesFindFaults(t *testing.T) {
	r := survey(t)
	for _, text := range []string{
		"[a](missing.md)", "[a](../docs/missing.md)", "[a](../README.md#no-such-heading)", "[a](#no-such-heading)",
		"`internal/engine/missing.go`", "`missing.sql`", "`internal/missing`", "`schema/grants/*.missing`",
		"`TestMissing`", "`TestMissing/part`", "`Engine.NoSuchMethod`", "`ErrMissing`", "`*postgres.MissingError`", "`make missing`",
		"`no process logs a line like this`",
	} {
		if len(slices.Concat(r.deadLinks("docs/planted.md", text), r.unknownNames(text))) != 1 {
			t.Errorf("not exactly one fault was found in %s", text)
		}
	}
	for _, text := range []string{
		"[a](operations.md#postgresql-with-standbys)", "[a](../README.md)", "[a](https://example.com/missing.md)", "`[a](missing.md)`",
		"```\n[a](missing.md)\n```", "`internal/engine/engine.go`", "`step.go`", "`schema/grants/*.sql`", "`TestDocuments`",
		"`TestConformance/nonce`", "`TestRow…`", "`Engine.Pause`", "`*postgres.UntrustedOwnerError`", "`Schema(name)`", "`make soak`", "`backup.db`",
	} {
		if faults := slices.Concat(r.deadLinks("docs/planted.md", text), r.unknownNames(text)); len(faults) > 0 {
			t.Errorf("%q has no fault, but the rules found %q", text, faults)
		}
	}
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```[^\n]*$")
	quoted   = regexp.MustCompile("`[^`\n]+`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	target   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	fileLike = regexp.MustCompile(`^[\w./*-]+\.(go|sql|md|svg)$`)
	testLike = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z_]\w*$`)
	goLike   = regexp.MustCompile(`^\*?((durable|postgres|sqlite|schema|durabletest)\.)?([A-Z]\w*[a-z]\w*(\.[A-Z]\w*)?)(\(.*\))?$`)
	makeLike = regexp.MustCompile(`^make ([a-z][a-z-]*)`)
	lineLike = regexp.MustCompile(`^[a-z]+( [a-z;,]+){4,}$`) // a line of the log
)

// deadLinks returns the relative links of a document that lead nowhere.
func (r *repository) deadLinks(name, text string) (faults []string) {
	for _, m := range link.FindAllStringSubmatch(quoted.ReplaceAllString(fence.ReplaceAllString(text, ""), "``"), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		to := name
		if file != "" {
			to = path.Join(path.Dir(name), file)
		}
		switch {
		case file != "" && !r.files[to]:
			faults = append(faults, fmt.Sprintf("links to %s, which does not exist", to))
		case anchor != "" && !r.anchors[to][anchor]:
			faults = append(faults, fmt.Sprintf("links to %s#%s, and %s has no such heading", to, anchor, to))
		}
	}
	return faults
}

// unknownNames returns the files, tests, exported names, make targets and lines of the log that a document quotes
// in backticks and that do not exist.
func (r *repository) unknownNames(text string) (faults []string) {
	missing := func(kind, name string) {
		faults = append(faults, fmt.Sprintf("names the %s %q, which does not exist", kind, name))
	}
	for _, span := range quoted.FindAllString(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Trim(span, "`")
		top, _, inFolder := strings.Cut(name, "/")
		test, _, _ := strings.Cut(name, "/")
		switch {
		case makeLike.MatchString(name):
			if m := makeLike.FindStringSubmatch(name); !r.targets[m[1]] {
				missing("make target", m[1])
			}
		case lineLike.MatchString(name):
			if !strings.Contains(r.code, name) {
				missing("line of the log", name)
			}
		case testLike.MatchString(test):
			if !r.tests[test] && !r.names[test] {
				missing("test", test)
			}
		case fileLike.MatchString(name) || inFolder && r.files[top] && !strings.ContainsAny(name, " …{"):
			if !r.exists(strings.TrimSuffix(name, "/")) {
				missing("file", name)
			}
		case goLike.MatchString(name):
			for part := range strings.SplitSeq(goLike.FindStringSubmatch(name)[3], ".") {
				if !r.names[part] {
					missing("identifier", name)
					break
				}
			}
		}
	}
	return faults
}

// exists reports whether a file is there: under its path, or anywhere if the name has no folder. The name may be a pattern.
func (r *repository) exists(name string) bool {
	among := r.files
	if !strings.Contains(name, "/") {
		among = r.bases
	}
	if among[name] {
		return true
	}
	for file := range among {
		if ok, err := path.Match(name, file); ok && err == nil {
			return true
		}
	}
	return false
}

// survey reads the repository.
func survey(t *testing.T) *repository {
	t.Helper()
	r := &repository{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}, map[string]string{}, ""}
	const root = "../.."
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && strings.HasPrefix(base, ".") && name != root {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		r.files[rel], r.bases[path.Base(rel)] = true, true
		if !strings.HasSuffix(rel, ".md") && rel != "Makefile" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if rel == "Makefile" {
			for _, m := range target.FindAllStringSubmatch(string(text), -1) {
				r.targets[m[1]] = true
			}
			return nil
		}
		r.texts[rel], r.anchors[rel] = string(text), anchorsOf(string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range load(t) {
		r.declared(f)
		if !f.test() {
			code.WriteString(f.text)
		}
	}
	r.code = code.String()
	return r
}

// declared notes what a Go file declares.
func (r *repository) declared(f *file) {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if f.test() {
				r.tests[n.Name.Name] = true
			} else {
				r.names[n.Name.Name] = true
			}
			return false
		case *ast.TypeSpec:
			r.names[n.Name.Name] = !f.test() || r.names[n.Name.Name]
		case *ast.ValueSpec:
			for _, name := range n.Names {
				r.names[name.Name] = !f.test() || r.names[name.Name]
			}
		case *ast.Field:
			for _, name := range n.Names {
				r.names[name.Name] = !f.test() || r.names[name.Name]
			}
		}
		return true
	})
}

// anchorsOf returns the anchors that GitHub gives the headings of a document.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		anchor := strings.Map(func(c rune) rune {
			switch {
			case c == ' ' || c == '-':
				return '-'
			case c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c):
				return unicode.ToLower(c)
			}
			return -1
		}, m[1])
		for i := 1; anchors[anchor]; i++ {
			anchor = fmt.Sprintf("%s-%d", strings.TrimSuffix(anchor, fmt.Sprintf("-%d", i-1)), i)
		}
		anchors[anchor] = true
	}
	return anchors
}
