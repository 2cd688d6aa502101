package lint

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
)

// subject matches the beginning of a comment that says what a thing with the name of a Go identifier is or does.
var subject = regexp.MustCompile(`^(\w*[a-z][A-Z]\w*|[A-Z]\w*) (?:[a-z]+s|are)\b`)

// A comment may also begin with one of these words, which are no identifiers.
var noIdentifiers = []string{
	"A", "All", "An", "Code", "Compensations", "Each", "Every", "Everything", "Here", "It", "Nobody", "Nothing", "On", "One", "Only", "PostgreSQL", "SQLite",
	"That", "The", "There", "These", "This", "Those", "What", "Whether", "Which",
}

// commentsNameTheirSubject finds comments that begin with another name than that of what they document, such as the name it had
// before it was renamed.
func commentsNameTheirSubject(f *file) (faults []string) {
	if f.test() {
		return nil
	}
	check := func(doc *ast.CommentGroup, names ...*ast.Ident) {
		m := subject.FindStringSubmatch(doc.Text())
		if len(names) == 0 || m == nil || slices.Contains(noIdentifiers, m[1]) {
			return
		}
		if !slices.ContainsFunc(names, func(n *ast.Ident) bool { return n.Name == m[1] }) {
			faults = append(faults, fmt.Sprintf("line %d: the comment of %s begins with %q: begin it with the name of what it documents",
				f.fset.Position(names[0].Pos()).Line, names[0].Name, m[1]))
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Doc, n.Name)
		case *ast.GenDecl:
			if len(n.Specs) == 1 {
				if s, ok := n.Specs[0].(*ast.TypeSpec); ok {
					check(n.Doc, s.Name)
				} else if s, ok := n.Specs[0].(*ast.ValueSpec); ok {
					check(n.Doc, s.Names...)
				}
			}
		case *ast.TypeSpec:
			check(n.Doc, n.Name)
		case *ast.ValueSpec:
			check(n.Doc, n.Names...)
		case *ast.Field:
			check(n.Doc, n.Names...)
		}
		return true
	})
	return faults
}
