package lint

import (
	"fmt"
	"go/ast"
	"go/doc"
	"path"
	"slices"
	"strings"
	"testing"
)

// withExamples are the folders of packages whose functions and methods each have a runnable example.
var withExamples = []string{".", "sqlite", "postgres", "durabletest", "durablecli"}

// noExample lists the exported functions and methods without a runnable example, with the reason.
var noExample = map[string]string{
	"durable.Ctx.Value":     "it is a method of context.Context, which needs no explanation",
	"durabletest.Main":      "it takes a *testing.M, which an example has not; its example is only compiled",
	"durabletest.ReplayDir": "it takes a *testing.T, which an example has not; its example is only compiled",
}

// verb is an exported function or method.
type verb struct{ pkg, receiver, name string }

func (v verb) String() string {
	return strings.ReplaceAll(v.pkg+"."+v.receiver+"."+v.name, "..", ".")
}

// call is a selector in a runnable example: of a package, or of a value.
type call struct{ of, name string }

// withoutExample returns the exported functions and methods that no runnable example in a file named
// example_*_test.go or example_test.go mentions. A function of a package counts as mentioned by pkg.Name, and
// a method by a selector with its name.
func withoutExample(files []*file) (missing []verb) {
	mentioned := make(map[call]bool)
	var verbs []verb
	for _, f := range files {
		pkg := packages[f.folder()]
		switch {
		case !slices.Contains(withExamples, f.folder()):
		case f.test() && strings.HasPrefix(path.Base(f.name), "example_"):
			noteExamples(f, mentioned)
		case !f.test():
			for _, d := range f.tree.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Name.IsExported() {
					v := verb{pkg: pkg, name: d.Name.Name}
					if d.Recv != nil {
						v.receiver = receiver(d)
					}
					if v.receiver == "" || ast.IsExported(v.receiver) && !ofAnInterface[v.name] {
						verbs = append(verbs, v)
					}
				}
			}
		}
	}
	for _, v := range verbs {
		key := call{v.pkg, v.name}
		if v.receiver != "" {
			key.of = ""
		}
		if !mentioned[key] {
			missing = append(missing, v)
		}
	}
	return missing
}

// ofAnInterface are methods that printing and errors.Is call.
var ofAnInterface = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "String": true}

// noteExamples adds the selectors of the file's examples that are executed, which are those with an output.
func noteExamples(f *file, mentioned map[call]bool) {
	for _, x := range doc.Examples(f.tree) {
		if x.Output == "" && !x.EmptyOutput {
			continue
		}
		ast.Inspect(x.Code, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"durable", "sqlite", "postgres", "durabletest", "durablecli"}, pkg.Name) {
				mentioned[call{pkg.Name, s.Sel.Name}] = true
				return true
			}
			mentioned[call{"", s.Sel.Name}] = true
			return true
		})
	}
}

func TestExportedFunctionsHaveExamples(t *testing.T) {
	unused := make(map[string]bool)
	for name := range noExample {
		unused[name] = true
	}
	for _, v := range withoutExample(load(t)) {
		if noExample[v.String()] == "" {
			t.Errorf("%s is in no example with an output: write one in an example_*_test.go file of its package", v)
		}
		delete(unused, v.String())
	}
	for name := range unused {
		t.Errorf("%s has an example, or does not exist: remove it from noExample", name)
	}
}

// The rule finds what has no example, or only one that is not executed.
func TestMissingExamplesAreFound(t *testing.T) {
	read := func(name, text string) *file {
		f, err := parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	code := read("x.go", "package durable; type T int; func F() {}; func (T) M() {}; func (T) Error() string { return \"\" }; func g() {}")
	for body, want := range map[string][]string{
		"durable.F(); t.M()\n// Output:\n": {},
		"durable.F(); t.M()\n":             {"durable.F", "durable.T.M"},
		"durable.F()\n// Output: x\n":      {"durable.T.M"},
		"t.F(); durable.M()\n// Output:\n": {"durable.F", "durable.T.M"},
		"fmt.Println(\"F M\")\n// Output:": {"durable.F", "durable.T.M"},
	} {
		example := read("example_x_test.go", "package durable_test\n\nfunc ExampleF() {\n"+body+"\n}\n")
		got := []string{}
		for _, v := range withoutExample([]*file{code, example}) {
			got = append(got, v.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("with the example %q these have none: %s", body, fmt.Sprint(got))
		}
	}
}
