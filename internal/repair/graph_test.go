package repair

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// drawn returns a run of a graph: "list" feeds "left" and "right"; "join" needs both; "late" begins after "left"; "any" needs one of
// "left" and "right", and chose "right"; "other" needs nothing.
func drawn(t *testing.T, failedStep string, calls ...string) *history {
	h := failedRun(t, failedStep, append([]string{"step shape/1 completed"}, calls...)...)
	shape := graph.Shape{Output: "join", Nodes: []graph.Node{
		{Name: "list", Kind: graph.KindStep},
		{Name: "left", Kind: graph.KindStep, Needs: []string{"list"}},
		{Name: "right", Kind: graph.KindStep, Needs: []string{"list"}},
		{Name: "other", Kind: graph.KindStep},
		{Name: "late", Kind: graph.KindStep, After: []string{"left"}},
		{Name: "any", Kind: graph.KindStep, Choices: []graph.Choice{{Of: []string{"left", "right"}, K: 1, Keep: true}}},
		{Name: "join", Kind: graph.KindStep, Needs: []string{"left", "right"}, Unmet: graph.UnmetRuns},
	}}
	h.History[0].Kind = store.KindGraph
	h.History[0].Output, _ = shape.Encode()
	choice := record.Choice{Won: []int{1}, Wanted: 1, Keep: true, Of: []string{"left", "right"}}
	for i := range h.History {
		if h.History[i].Kind == store.KindChoice {
			h.History[i].Name = "any" + naming.Separator + graph.ChoiceName(0)
			h.History[i].Output, _ = choice.Encode()
		}
	}
	return h
}

var all = []string{
	"step list/step completed", "step right/step completed", "choice any/choice completed", "step any/step completed", "step left/step completed",
	"step other/step completed", "step late/step completed", "step join/step completed",
}

// A fork from a node executes it and what is downstream of it again, whatever began later.
func TestAForkFromANodeFollowsTheEdges(t *testing.T) {
	for from, dropped := range map[string][]string{
		"list":  {"list/step", "right/step", "any/choice 1", "any/step", "left/step", "late/step", "join/step"},
		"right": {"right/step", "any/choice 1", "any/step", "join/step"},
		"late":  {"late/step"},
	} {
		h := drawn(t, "", all...).live()
		q := laterRequest()
		q.From = from
		r := done(t)(PlanFork(&h.RunToRepair, q, nil))
		want(t, "dropped from "+from, r.Detail.Dropped, dropped...)
		_, d, err := CopyHistory(&h.RunToRepair, q, nil)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "dropped of a copy from "+from, d.Dropped, dropped...)
	}
}

// A fork from a call of a node, and an override of it, follow the edges too: what the node did before the call is kept, and so are the other
// items of a list.
func TestARepairFromACallOfANodeFollowsTheEdges(t *testing.T) {
	calls := append([]string{
		"step list/step completed", "map right/each completed", "step right/each/0 completed", "sleep left/delay completed", "step right/each/1 completed",
		"step right/each/2 completed",
	}, all[2:]...)
	for from, dropped := range map[string][]string{
		"left/step":    {"any/choice 1", "any/step", "left/step", "late/step", "join/step"},
		"left/delay":   {"left/delay", "any/choice 1", "any/step", "left/step", "late/step", "join/step"},
		"right/each":   {"right/each", "right/each/0", "right/each/1", "right/each/2", "any/choice 1", "any/step", "join/step"},
		"right/each/1": {"right/each/1", "any/choice 1", "any/step", "join/step"},
		"any/step":     {"any/step"},
	} {
		h := drawn(t, "", calls...).live()
		q := laterRequest()
		q.From = naming.ParseDisplay(from)
		r := done(t)(PlanFork(&h.RunToRepair, q, nil))
		want(t, "dropped from "+from, r.Detail.Dropped, dropped...)
		if from == "left/delay" || from == "right/each" {
			continue // they have no value
		}
		h = drawn(t, "", calls...)
		for i := range h.History {
			if h.History[i].Name == q.From {
				h.History[i].Output = []byte("1")
			}
		}
		r = done(t)(PlanOverride(&h.RunToRepair, laterRequest(), q.From, []byte("2")))
		want(t, "dropped by an override of "+from, r.Detail.Dropped, slices.DeleteFunc(slices.Clone(dropped), func(name string) bool { return name == from })...)
	}
}

// A retry of a failed node also executes those again that ran because it failed, or were skipped because of that. A choice that others
// have won stays.
func TestARetryFollowsTheEdges(t *testing.T) {
	calls := slices.Clone(all)
	calls[4] = "step left/step failed"
	h := drawn(t, "left/step", append(calls, "step late/skip completed")...)
	want(t, "dropped", h.retry(Request{}).Detail.Dropped, "left/step", "late/step", "join/step", "late/skip")
}

// A node that ran because a choice had ended another one runs again if a repair drops the choice, because that one may complete now. If it had
// completed all the same, nothing changes for what follows it.
func TestADroppedChoiceAlsoDropsWhatFollowedTheEndOfALoser(t *testing.T) {
	run := func(list string, loser ...string) *history {
		calls := append([]string{"step shape/1 completed", "step a/step completed"}, loser...)
		h := failedRun(t, "", append(calls, "choice c/choice completed", "step after/step completed", "step late/step completed", "step c/step completed")...).live()
		shape := graph.Shape{Output: "c", Nodes: []graph.Node{
			{Name: "a", Kind: graph.KindStep},
			{Name: "loser", Kind: graph.KindEach, Over: "a", Needs: []string{"a"}},
			{Name: "after", Kind: graph.KindStep, After: []string{"loser"}},
			{Name: "late", Kind: graph.KindStep, Needs: []string{"after"}},
			{Name: "c", Kind: graph.KindStep, Choices: []graph.Choice{{Of: []string{"a", "loser"}, K: 1}}},
		}}
		h.History[0].Kind = store.KindGraph
		h.History[0].Output, _ = shape.Encode()
		h.History[1].Output = []byte(list)
		choice := record.Choice{Won: []int{0}, Wanted: 1, Of: []string{"a", "loser"}, Ended: []string{"loser"}}
		for i := range h.History {
			switch row := &h.History[i]; row.Kind {
			case store.KindChoice:
				row.Name = "c" + naming.Separator + graph.ChoiceName(0)
				row.Output, _ = choice.Encode()
			case store.KindMap:
				row.Output = []byte("2")
			}
		}
		return h
	}
	q := laterRequest()
	q.From = "c"
	again, kept := []string{"c/choice 1", "after/step", "late/step", "c/step"}, []string{"c/choice 1", "c/step"}
	for what, test := range map[string]struct {
		h       *history
		dropped []string
	}{ // a repair may have made the list longer or shorter since the Map recorded that it has two items
		"before it began":         {run("[1,2]"), again},
		"in the middle":           {run("[1,2]", "map loser/each completed", "step loser/each/0 completed"), again},
		"after its calls":         {run("[1,2]", "map loser/each completed", "step loser/each/0 completed", "step loser/each/1 completed"), kept},
		"in the middle of more":   {run("[1,2,3]", "map loser/each completed", "step loser/each/0 completed", "step loser/each/1 completed"), again},
		"after the calls of more": {run("[1,2,3]", "map loser/each completed", "step loser/each/0 completed", "step loser/each/1 completed", "step loser/each/2 completed"), kept},
		"after the calls of less": {run("[1]", "map loser/each completed", "step loser/each/0 completed", "step loser/each/1 completed"), kept},
		"without items":           {run("[]", "graph loser/held completed"), kept},
	} {
		r := done(t)(PlanFork(&test.h.RunToRepair, q, nil))
		want(t, "dropped of a loser that ended "+what, r.Detail.Dropped, test.dropped...)
	}
}

// A choice that other nodes won before a need of its node failed stays, so what it ended stays ended.
func TestARetryKeepsTheChoiceOfANodeThatWaitedForTheFailedOne(t *testing.T) {
	h := failedRun(t, "need/step", "step shape/1 completed", "step a/step completed", "child loser/child started", "choice c/choice completed", "step need/step failed")
	shape := graph.Shape{Output: "c", Nodes: []graph.Node{
		{Name: "a", Kind: graph.KindStep},
		{Name: "loser", Kind: graph.KindChild, Workflow: "w"},
		{Name: "need", Kind: graph.KindStep},
		{Name: "c", Kind: graph.KindStep, Needs: []string{"need"}, Choices: []graph.Choice{{Of: []string{"a", "loser"}, K: 1}}},
	}}
	h.History[0].Kind = store.KindGraph
	h.History[0].Output, _ = shape.Encode()
	h.History[3].Name = "c" + naming.Separator + graph.ChoiceName(0)
	choice := record.Choice{Won: []int{0}, Wanted: 1, Of: []string{"a", "loser"}, Ended: []string{"loser"}}
	h.History[3].Output, _ = choice.Encode()
	h.child("loser/child", store.Cancelled, `its branch was ended by the choice "c/choice 1" of its parent`)
	want(t, "dropped", h.retry(Request{}).Detail.Dropped, "need/step")
}

// The record of the shape cannot be repeated: today's shape would be recorded without a comparison with what has begun.
func TestTheShapeIsNotRepeated(t *testing.T) {
	h := drawn(t, "", all...).live()
	if _, err := PlanRerun(&h.RunToRepair, laterRequest(), naming.ParseDisplay("shape/1")); !errors.Is(err, ErrNoStep) {
		t.Errorf("a rerun of the shape: %v", err)
	}
}

// From takes the name of a node as it was declared, also if it contains a slash.
func TestAForkFromANodeWhoseNameHasASlash(t *testing.T) {
	h := failedRun(t, "", "step shape/1 completed", "step a%2Fb/step completed", "step c/step completed").live()
	shape := graph.Shape{Output: "c", Nodes: []graph.Node{{Name: "a/b", Kind: graph.KindStep}, {Name: "c", Kind: graph.KindStep, Needs: []string{"a/b"}}}}
	h.History[0].Kind = store.KindGraph
	h.History[0].Output, _ = shape.Encode()
	for _, from := range []string{"a/b", "a%2Fb"} {
		q := laterRequest()
		q.From = naming.ParseDisplay(from)
		want(t, "dropped from "+from, done(t)(PlanFork(&h.RunToRepair, q, nil)).Detail.Dropped, "a%2Fb/step", "c/step")
	}
}

// From takes the name of each node as it was declared, also if it contains a slash and a percent sign, or is that of the record of a shape.
func TestAForkFromANodeWithAnUnusualName(t *testing.T) {
	for _, name := range []string{"a/50% off", "50% off", "a/%2Fb", "shape/1"} {
		display := naming.Display(name)
		h := failedRun(t, "", "step shape/1 completed", "step node/step completed", "step other/step completed").live()
		shape := graph.Shape{Output: "other", Nodes: []graph.Node{{Name: name, Kind: graph.KindStep}, {Name: "other", Kind: graph.KindStep}}}
		h.History[0].Kind = store.KindGraph
		h.History[0].Output, _ = shape.Encode()
		h.History[1].Name = name + naming.Separator + "step"
		q := laterRequest()
		q.From = naming.ParseDisplay(name)
		want(t, "dropped from "+name, done(t)(PlanFork(&h.RunToRepair, q, nil)).Detail.Dropped, display+"/step")
	}
}

// A repair that makes a list longer or shorter also corrects the recorded number of items of the nodes that are executed for each item of it. The
// results of former items stay.
func TestARepairOfAListCorrectsTheNumberOfItems(t *testing.T) {
	for list, want := range map[string]string{"[1,2,3,4]": "4", "[1,2]": "", "[1]": "", "[]": ""} {
		h := failedRun(t, "", "step shape/1 completed", "step list/step completed", "map each/each completed", "step each/each/0 completed", "step each/each/1 completed",
			"map over/each completed", "step over/each/0 completed", "step over/each/1 completed", "map other/each completed").live()
		shape := graph.Shape{Output: "over", Nodes: []graph.Node{
			{Name: "list", Kind: graph.KindStep},
			{Name: "each", Kind: graph.KindEach, Over: "list", Needs: []string{"list"}},
			{Name: "over", Kind: graph.KindEach, Over: "each", Needs: []string{"each"}},
			{Name: "second", Kind: graph.KindStep},
			{Name: "other", Kind: graph.KindEach, Over: "second", Needs: []string{"second"}},
		}}
		h.History[0].Kind = store.KindGraph
		h.History[0].Output, _ = shape.Encode()
		h.History[1].Output = []byte("[1,2]")
		for i := range h.History {
			if h.History[i].Kind == store.KindMap {
				h.History[i].Output = []byte("2")
			}
		}
		q := laterRequest()
		q.FromEnd = true
		r := done(t)(PlanOverride(&h.RunToRepair, q, h.History[1].Name, []byte(list)))
		copied, _, err := CopyHistory(&h.RunToRepair, q, map[string][]byte{h.History[1].Name: []byte(list)})
		if err != nil {
			t.Fatal(err)
		}
		for _, steps := range [][]store.Step{r.Repair.NewSteps, copied} {
			for _, row := range steps {
				if row.Kind != store.KindMap {
					continue
				}
				if got := cmp.Or(want, "2"); string(row.Output) != got && row.Name != h.History[8].Name || row.Name == h.History[8].Name && string(row.Output) != "2" {
					t.Errorf("with the list %s, %s has %s items, want %s", list, naming.Display(row.Name), row.Output, got)
				}
			}
		}
		changed := 0
		for _, row := range r.Repair.NewSteps {
			if row.Kind == store.KindMap {
				changed++
			}
		}
		if (changed == 2) != (want != "") || r.Detail.Kept != 8 {
			t.Errorf("with the list %s, %d rows of Maps are changed, and %d rows are kept", list, changed, r.Detail.Kept)
		}
	}
}
