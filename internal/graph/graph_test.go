package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/naming"
)

// drawShape draws a valid shape.
func drawShape(t *rapid.T) *Shape {
	s := new(Shape)
	for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
		n := Node{Name: fmt.Sprint("n", i), Kind: KindStep, Unmet: rapid.SampledFrom([]UnmetPolicy{UnmetSkips, UnmetFailsRun, UnmetRuns}).Draw(t, "policy")}
		some := func(what string) (names []string) {
			if i == 0 {
				return nil
			}
			for _, j := range rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 0, min(i, 3), rapid.ID[int]).Draw(t, what) {
				names = append(names, fmt.Sprint("n", j))
			}
			return names
		}
		n.Needs, n.After = some("needs"), some("after")
		for range 2 {
			if of := some("choice"); len(of) > 0 {
				n.Choices = append(n.Choices, Choice{Of: of, K: rapid.IntRange(1, len(of)).Draw(t, "k"), Keep: rapid.Bool().Draw(t, "keep")})
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	s.Output = s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "output")].Name
	return s
}

// drawStates draws a state for each node, as it may be during an execution.
func drawStates(t *rapid.T, s *Shape) map[string]State {
	states := make(map[string]State)
	for _, n := range s.Nodes {
		states[n.Name] = rapid.SampledFrom([]State{Waiting, Running, Completed, Failed, Skipped, Cancelled}).Draw(t, n.Name)
	}
	return states
}

// A verdict other than Wait and VerdictChoose stays when further nodes end, so that it does not depend on the order in which an
// execution learns of them. When all nodes are over, no verdict is Wait.
func TestVerdictsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		states := drawStates(t, s)
		state := func(node string) State { return states[node] }
		chosen := func(int) bool { return false }
		n := &s.Nodes[len(s.Nodes)-1]
		before, _ := n.NextVerdict(state, chosen)
		for _, other := range s.Nodes {
			if !states[other.Name].IsFinal() {
				states[other.Name] = rapid.SampledFrom([]State{Completed, Failed, Skipped, Cancelled}).Draw(t, "then "+other.Name)
			}
		}
		after, _ := n.NextVerdict(state, chosen)
		if after == VerdictWait {
			t.Fatalf("all nodes are over, and %+v waits", n)
		}
		if before != VerdictWait && before != VerdictChoose && after != before {
			// Only a choice, which is recorded, may come between: its members were not over.
			t.Fatalf("the verdict %d became %d: %+v", before, after, n)
		}
	})
}

// A node that never begins makes no choice, also if one of its choices can be made: else its state would depend on what completes first.
func TestNoChoiceIsMadeForANodeThatNeverBegins(t *testing.T) {
	n := Node{Choices: []Choice{{Of: []string{"completed"}, K: 1}, {Of: []string{"failed", "completed"}, K: 2}}}
	state := func(node string) State { return State(node) }
	if v, _ := n.NextVerdict(state, func(int) bool { return false }); v != VerdictSkip {
		t.Errorf("the verdict is %d", v)
	}
	n.Unmet = UnmetRuns
	if v, choice := n.NextVerdict(state, func(int) bool { return false }); v != VerdictChoose || choice != 0 {
		t.Errorf("the verdict is %d for choice %d", v, choice)
	}
}

func all(string) bool  { return true }
func none(string) bool { return false }

// A shape is read as it was written, and a run can always continue with the shape that it recorded.
func TestShapeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		b, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(b)
		if err != nil || back.CheckRevision(s, all, none) != nil {
			t.Fatalf("%+v was read as %+v: %v", s, back, err)
		}
		again, err := back.Encode()
		if err != nil || string(again) != string(b) {
			t.Fatalf("%s, %s, %v", b, again, err)
		}
		for _, n := range s.Nodes {
			if !strings.Contains(s.Mermaid(nil), n.Name) || !strings.Contains(s.DOT(), n.Name) {
				t.Fatalf("%q is not drawn", n.Name)
			}
		}
		if lines := strings.Count(s.DOT(), " -> "); lines != len(s.Edges()) {
			t.Fatalf("%d of %d edges are drawn", lines, len(s.Edges()))
		}
	})
	for _, b := range []string{"", "{}", `{"nodes":[{"name":"a","kind":"step"}],"output":"b"}`, `{"nodes":[{"name":"a","kind":"what"}],"output":"a"}`} {
		if _, err := Decode([]byte(b)); err == nil {
			t.Errorf("%q was read as a shape", b)
		}
	}
}

// Index finds the nodes that the shape has now, also if they have changed since Check.
func TestIndexAfterChange(t *testing.T) {
	s := &Shape{Nodes: []Node{{Name: "a", Kind: KindStep}, {Name: "b", Kind: KindStep}}, Output: "b"}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	s.Nodes = append([]Node{{Name: "c", Kind: KindStep}}, s.Nodes[1:]...)
	for name, want := range map[string]int{"a": -1, "b": 1, "c": 0} {
		if got := s.Index(name); got != want {
			t.Errorf("the index of %q is %d, want %d", name, got, want)
		}
	}
}

// A node that has not begun may change and go; one that has begun may not.
func TestRevise(t *testing.T) {
	was := &Shape{Nodes: []Node{{Name: "a", Kind: KindStep}, {Name: "b", Kind: KindStep, Needs: []string{"a"}}}, Output: "b"}
	begun := func(node string) bool { return node == "a" }
	for want, now := range map[string][]Node{
		"":                               {{Name: "a", Kind: KindStep, If: []string{}}, {Name: "c", Kind: KindStep}, {Name: "b", Kind: KindChild, Workflow: "w", Unmet: UnmetRuns, After: []string{"c"}}},
		`node "a" has begun, and the co`: {{Name: "b", Kind: KindStep}},
		`as step, and the code declares it as step with the policy "fail"`:         {{Name: "a", Kind: KindStep, Unmet: UnmetFailsRun}},
		`declares it as child of workflow "w" with a delay`:                        {{Name: "a", Kind: KindChild, Workflow: "w", Delayed: true}},
		`declares it as step that needs 1 of ["x" "y"] and keeps the others after`: {{Name: "a", Kind: KindStep, Choices: []Choice{{Of: []string{"x", "y"}, K: 1, Keep: true}}, After: []string{"z"}}},
	} {
		err := was.CheckRevision(&Shape{Nodes: now}, begun, none)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

// A node that was skipped behind another skipped one, and after which a third has begun, must still be skipped with the newer shape.
func TestCheckSkips(t *testing.T) {
	shape := func(ship, mail []string) *Shape {
		return &Shape{Nodes: []Node{
			{Name: "charge", Kind: KindStep},
			{Name: "other", Kind: KindStep},
			{Name: "ship", Kind: KindStep, Needs: ship},
			{Name: "mail", Kind: KindStep, Needs: mail},
			{Name: "file", Kind: KindStep, Needs: []string{"mail"}},
			{Name: "tell", Kind: KindStep, After: []string{"file"}},
		}, Output: "tell"}
	}
	charge, other, ship, both := []string{"charge"}, []string{"other"}, []string{"ship"}, []string{"charge", "ship"}
	failed := HistoryRow{Name: "charge" + naming.Separator + "step", Status: "failed"}
	told := HistoryRow{Name: "tell" + naming.Separator + "step", Status: "started"}
	for what, c := range map[string]struct {
		was, now *Shape
		rows     []HistoryRow
		want     string
	}{
		"the same":                   {shape(charge, ship), shape(charge, ship), []HistoryRow{failed, told}, ""},
		"nobody acted on the skip":   {shape(charge, ship), shape(other, ship), []HistoryRow{failed}, ""},
		"it is skipped all the same": {shape(charge, both), shape(other, both), []HistoryRow{failed, told}, ""},
		"it was not skipped yet":     {shape(other, ship), shape(charge, ship), []HistoryRow{told}, ""},
		"it may begin":               {shape(charge, ship), shape(other, ship), []HistoryRow{failed, told}, `node "file" was skipped because of node "ship", and the node "tell"`},
	} {
		err := c.was.CheckSkips(c.now, c.rows, none)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// The view of a list counts its items, and a list without items is completed once it is recorded that it is executed.
func TestViewOfLists(t *testing.T) {
	s := &Shape{Nodes: []Node{
		{Name: "list", Kind: KindStep}, {Name: "each", Kind: KindEach, Over: "list", Needs: []string{"list"}}, {Name: "last", Kind: KindStep, Needs: []string{"each"}},
	}, Output: "last"}
	at := time.Unix(1, 0)
	row := func(name, status, output string) HistoryRow {
		return HistoryRow{Name: strings.ReplaceAll(name, "/", naming.Separator), Status: status, Output: []byte(output), Attempts: 1, StartedAt: at, EndedAt: at}
	}
	for _, c := range []struct {
		rows []HistoryRow
		over bool
		want string
	}{
		{nil, false, "ready waiting waiting"},
		{nil, true, "cancelled skipped skipped"},
		{[]HistoryRow{row("list/step", "backoff", "")}, false, "running waiting waiting"},
		{[]HistoryRow{row("list/step", "completed", `[1,[2,3]]`)}, false, "completed ready waiting"},
		{[]HistoryRow{row("list/step", "completed", `[]`)}, false, "completed ready waiting"},
		{[]HistoryRow{row("list/step", "completed", `[]`)}, true, "completed cancelled skipped"},
		{[]HistoryRow{row("list/step", "completed", `[]`), row("each/held", "completed", "")}, false, "completed completed ready"},
		{[]HistoryRow{row("list/step", "completed", `null`), row("each/held", "completed", "")}, false, "completed completed ready"},
		{[]HistoryRow{row("list/step", "completed", `[]`), row("each/held", "completed", ""), row("each/delay", "completed", "")}, true, "completed completed cancelled"},
		{[]HistoryRow{row("list/step", "completed", `"YQ=="`), row("each/each/0", "completed", "")}, false, "completed completed ready"},
		{[]HistoryRow{row("list/step", "completed", `"YWI="`), row("each/each/0", "completed", "")}, false, "completed running waiting"},
		{[]HistoryRow{row("list/step", "completed", `[1]`), row("each/each/0", "completed", ""), row("each/each/1", "completed", "")}, false, "completed completed ready"},
		{[]HistoryRow{row("list/step", "completed", `[1,2]`), row("each/each/0", "failed", ""), row("each/each/1", "cancelled", "")}, true, "completed cancelled skipped"},
		{[]HistoryRow{row("list/step", "completed", `[]`), row("each/delay", "started", "")}, false, "completed delayed waiting"},
		{[]HistoryRow{row("list/step", "completed", `[1]`), row("each/delay", "completed", "")}, false, "completed ready waiting"},
		{[]HistoryRow{row("list/step", "completed", `[1,2]`), row("each/each/1", "completed", "")}, false, "completed running waiting"},
		{[]HistoryRow{row("list/step", "completed", `[1,2]`), row("each/each/1", "failed", "")}, false, "completed failed skipped"},
		{[]HistoryRow{row("list/step", "completed", `[1,2]`), row("each/each/1", "failed", ""), row("each/each/0", "started", "")}, false, "completed running waiting"},
		{[]HistoryRow{row("list/step", "completed", `[1,2]`), row("each/each/1", "completed", ""), row("each/each/0", "completed", "")}, false, "completed completed ready"},
		{[]HistoryRow{row("list/delay", "started", "")}, false, "delayed waiting waiting"},
		{[]HistoryRow{row("list/delay", "completed", "")}, false, "ready waiting waiting"},
		{[]HistoryRow{row("list/step", "completed", `[1]`), row("each/fails with list", "completed", "")}, true, "completed failed skipped"},
		{[]HistoryRow{row("list/skip", "completed", "")}, false, "skipped skipped skipped"},
	} {
		var got []string
		for _, v := range s.NodeViews(c.rows, func(string) bool { return false }, c.over) {
			got = append(got, string(v.State))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, want %s", c.rows, got, c.want)
		}
	}
}

// A node whose list is empty has completed once its condition is recorded, also if a choice ends it then: it makes no call that the choice
// could refuse.
func TestViewOfAnEmptyListWithACondition(t *testing.T) {
	s := &Shape{Nodes: []Node{
		{Name: "list", Kind: KindStep}, {Name: "each", Kind: KindEach, Over: "list", Needs: []string{"list"}, If: []string{"list"}},
	}, Output: "each"}
	rows := []HistoryRow{{Name: "list" + naming.Separator + "step", Status: "completed", Output: []byte("[]")}}
	ended := func(node string) bool { return node == "each" }
	none := func(string) bool { return false }
	if got := s.NodeViews(rows, none, false)[1].State; got != Ready {
		t.Errorf("before its condition is known it is %s", got)
	}
	if got := s.NodeViews(rows, ended, true)[1].State; got != Cancelled {
		t.Errorf("ended before its condition is known it is %s", got)
	}
	rows = append(rows, HistoryRow{Name: "each" + naming.Separator + CallHeld, Status: "completed"})
	for what, is := range map[string]func(string) bool{"open": none, "ended": ended} {
		if got := s.NodeViews(rows, is, true)[1].State; got != Completed {
			t.Errorf("%s, with its condition it is %s", what, got)
		}
	}
}

// The reason why a condition on a node without a value does not hold is why that node has none.
func TestCausesBehindACondition(t *testing.T) {
	s := &Shape{Nodes: []Node{
		{Name: "failed", Kind: KindStep},
		{Name: "below", Kind: KindStep, Needs: []string{"failed"}},
		{Name: "zero", Kind: KindStep},
		{Name: "out", Kind: KindStep, Needs: []string{"below", "zero"}, If: []string{"below", "zero"}, Unmet: UnmetRuns},
	}, Output: "out"}
	for condition, want := range map[string]int{"below": 0, "zero": 3} {
		outcomes := []NodeOutcome{{State: Failed}, {State: Skipped}, {State: Completed}, {State: Skipped, Condition: condition}}
		if got := s.Causes(3, func(i int) NodeOutcome { return outcomes[i] }); !slices.Equal(got, []int{want}) {
			t.Errorf("a condition on %q: %v, want %d", condition, got, want)
		}
	}
}

// A shape whose nodes and needs are in another order continues as it was recorded; a changed one keeps what has not changed.
func TestContinue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		now := &Shape{Output: s.Output}
		for _, at := range rapid.Permutation(indexes(len(s.Nodes))).Draw(t, "order") {
			n := s.Nodes[at]
			n.Needs = rapid.Permutation(n.Needs).Draw(t, "needs")
			n.After = rapid.Permutation(n.After).Draw(t, "after")
			n.Choices = slices.Clone(n.Choices)
			for i := range n.Choices {
				n.Choices[i].Of = rapid.Permutation(n.Choices[i].Of).Draw(t, "of")
			}
			now.Nodes = append(now.Nodes, n)
		}
		if err := s.CheckRevision(now, all, none); err != nil {
			t.Fatal(err)
		}
		if s.ContinuedShape(now) != s {
			t.Fatal("another order is another shape")
		}
		now.Nodes = append(now.Nodes, Node{Name: "more", Kind: KindStep})
		next := s.ContinuedShape(now)
		for i, n := range next.Nodes[:len(s.Nodes)] {
			if was := s.Nodes[s.Index(n.Name)]; n.Name != now.Nodes[i].Name || fmt.Sprint(n) != fmt.Sprint(was) {
				t.Fatalf("%+v, want %+v", n, was)
			}
		}
	})
}

func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}
