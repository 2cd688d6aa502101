package graph

import (
	"strings"
	"testing"
)

// Names of nodes appear in drawings as they are, whatever their characters mean to Mermaid and Graphviz.
func TestNamesAreEscapedInDrawings(t *testing.T) {
	for name, want := range map[string]struct{ mermaid, dot string }{
		"read files":       {`read files`, `read files`},
		"read_file (v1.2)": {`read_file (v1.2)`, `read_file (v1.2)`},
		"prüfe 日本":         {`prüfe 日本`, `prüfe 日本`},
		"a-b/c, d; e=f":    {`a-b/c, d; e=f`, `a-b/c, d; e=f`},
		"`rm`":             {`#96;rm#96;`, "`rm`"},
		"R&D &lt; #35;":    {`R#38;D #38;lt; #35;35;`, `R&amp;D &amp;lt; #35;`},
		`say "hi" <b>`:     {`say #34;hi#34; #60;b#62;`, `say \"hi\" <b>`},
		`C:\new`:           {`C#58;#92;new`, `C:\\new`},
		"*all* _of_ ~it~":  {`#42;all#42; #95;of#95; #126;it#126;`, `*all* _of_ ~it~`},
		"1. first":         {`1#46; first`, `1. first`},
		"- first":          {`#45; first`, `- first`},
		"fa:fa-car $$x$$":  {`fa#58;fa-car #36;#36;x#36;#36;`, `fa:fa-car $$x$$`},
		"%%{init}%% [x]":   {`#37;#37;#123;init#125;#37;#37; #91;x#93;`, `%%{init}%% [x]`},
		"www.example.org":  {`www#46;example.org`, `www.example.org`},
	} {
		s := &Shape{Nodes: []Node{{Name: name, Kind: KindStep}}, Output: name}
		if got, want := s.Mermaid(nil), `["`+want.mermaid+`"]`; !strings.Contains(got, want) {
			t.Errorf("Mermaid draws %q as %s, want %s", name, got, want)
		}
		if got, want := s.DOT(), "\t\""+want.dot+"\" ["; !strings.Contains(got, want) {
			t.Errorf("DOT draws %q as %s, want %s", name, got, want)
		}
	}
}
