package graph

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An Edge leads from a node to a node that refers to it.
type Edge struct {
	From, To string
	Choice   int  // the number of To's choice that From is a member of, from 1; zero: none
	K, Of    int  // that the choice needs K of Of nodes
	After    bool // To begins after the end of From, however it ends
	If       bool // a condition of To depends on From's value
	Over     bool // To is executed for each item of From's value
}

// Edges returns all edges, ordered by the declaration of To, and then by that of its needs.
func (s *Shape) Edges() (edges []Edge) {
	for _, n := range s.Nodes {
		for _, need := range n.Needs {
			e := Edge{From: need, To: n.Name, Over: need == n.Over}
			for _, on := range n.If {
				e.If = e.If || on == need
			}
			edges = append(edges, e)
		}
		for i, c := range n.Choices {
			for _, need := range c.Of {
				edges = append(edges, Edge{From: need, To: n.Name, Choice: i + 1, K: c.K, Of: len(c.Of)})
			}
		}
		for _, need := range n.After {
			edges = append(edges, Edge{From: need, To: n.Name, After: true})
		}
	}
	return edges
}

// label returns the words on the edge.
func (e *Edge) label() string {
	switch {
	case e.After:
		return "after"
	case e.Choice > 0 && e.K == 1:
		return "any"
	case e.Choice > 0:
		return fmt.Sprintf("%d of %d", e.K, e.Of)
	case e.Over:
		return "each"
	case e.If:
		return "if"
	}
	return ""
}

// Mermaid returns the graph as the text of a Mermaid flowchart. The argument states may hold the states of nodes by their names. A
// state becomes the class of its node.
func (s *Shape) Mermaid(states map[string]State) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	ids := make(map[string]string, len(s.Nodes))
	for i, n := range s.Nodes {
		id := fmt.Sprint("n", i)
		ids[n.Name] = id
		opening, closing := mermaidBrackets(n.Kind)
		fmt.Fprintf(&b, "    %s%s\"%s\"%s", id, opening, mermaidText(n.Name), closing)
		if state := states[n.Name]; state != "" {
			fmt.Fprintf(&b, ":::%s", state)
		}
		b.WriteByte('\n')
	}
	for _, e := range s.Edges() {
		arrow := "-->"
		if e.After {
			arrow = "-.->"
		}
		if label := e.label(); label != "" {
			arrow += "|" + label + "|"
		}
		fmt.Fprintf(&b, "    %s %s %s\n", ids[e.From], arrow, ids[e.To])
	}
	if id := ids[s.Output]; id != "" {
		fmt.Fprintf(&b, "    style %s stroke-width:3px\n", id)
	}
	return b.String()
}

// mermaidBrackets returns the brackets around the text of a node.
func mermaidBrackets(kind string) (opening, closing string) {
	switch kind {
	case KindEach, KindEachChild:
		return "[[", "]]"
	case KindChild:
		return "(", ")"
	case KindReceive:
		return "{{", "}}"
	}
	return "[", "]"
}

// mermaidText escapes a text within quotes. Mermaid reads such a text as Markdown, and also recognizes entities, icons ("fa:fa-x"), links,
// formulas ("$$"), line breaks ("\n") and directives ("%%{") in it. It replaces entity codes only afterwards, so an escaped rune means only
// itself.
func mermaidText(text string) string {
	var b strings.Builder
	for i, r := range text {
		if isPlainInMermaid(text, i, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// isPlainInMermaid reports whether the rune at the index has no special meaning in the text. An underscore between letters has none, and some
// marks, such as the mark of a list item, have one only at the beginning of the text.
func isPlainInMermaid(text string, at int, r rune) bool {
	switch before := text[:at]; {
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		return true
	case r == '_':
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(text[at+1:])
		return (unicode.IsLetter(last) || unicode.IsDigit(last)) && (unicode.IsLetter(next) || unicode.IsDigit(next))
	case r == ' ' || r == '-' || r == '+' || r == '=':
		return at > 0
	case r == '.' || r == ')':
		return strings.Trim(before, "0123456789") != "" && !strings.HasSuffix(strings.ToLower(before), "www")
	}
	return r >= utf8.RuneSelf || strings.ContainsRune("(,/;?'", r)
}

// DOT returns the graph in the language of Graphviz.
func (s *Shape) DOT() string {
	var b strings.Builder
	b.WriteString("digraph {\n")
	for _, n := range s.Nodes {
		var attributes []string
		switch n.Kind {
		case KindEach, KindEachChild:
			attributes = append(attributes, "shape=box3d")
		case KindReceive:
			attributes = append(attributes, "shape=hexagon")
		case KindChild:
			attributes = append(attributes, "shape=component")
		default:
			attributes = append(attributes, "shape=box")
		}
		if n.Name == s.Output {
			attributes = append(attributes, "peripheries=2")
		}
		fmt.Fprintf(&b, "\t%s [%s];\n", dotText(n.Name), strings.Join(attributes, ", "))
	}
	for _, e := range s.Edges() {
		var attributes []string
		if e.After {
			attributes = append(attributes, "style=dashed")
		}
		if label := e.label(); label != "" {
			attributes = append(attributes, "label="+dotText(label))
		}
		fmt.Fprintf(&b, "\t%s -> %s", dotText(e.From), dotText(e.To))
		if len(attributes) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(attributes, ", "))
		}
		b.WriteString(";\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText quotes a text. A quote and a backslash have a special meaning in a quoted text, and entities such as "&lt;" have one in a text
// that becomes a label.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;").Replace(text) + `"`
}
