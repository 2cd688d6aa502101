package main

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// goodBrief returns evidence without a violation: a run that was kept with its child, one that a client deleted, and one that the retention
// deleted, whose detached child is left.
func goodBrief() *evidence {
	e := &evidence{
		runs: make(map[string]*knownRun), briefLoad: &briefLoad{started: []string{"kept", "deleted", "retired"}, deleting: map[string]bool{"deleted": true}},
		events: []durable.Event{{Type: durable.EventDeleted, RunID: "deleted"}},
	}
	for _, run := range []struct{ id, root, name string }{{"kept", "", ""}, {"child", "kept", "child"}, {"deleted", "", ""}, {"retired", "", ""}, {"left", "retired", "detached"}} {
		e.entries = append(e.entries, entry{Kind: kindBriefBegun, Run: run.id, Value: run.root})
		e.events = append(e.events, durable.Event{Type: durable.EventCompleted, RunID: run.id})
		if run.id != "deleted" && run.id != "retired" {
			e.runs[run.id] = &knownRun{
				RunInfo: &durable.RunInfo{RunID: run.id, Parent: run.root, Name: run.name, Workflow: briefName, Status: durable.StatusCompleted},
				history: map[string]durable.Checkpoint{lastStep: {Status: "completed"}},
			}
		}
	}
	e.entries = append(e.entries, entry{Kind: kindArchived, Run: "retired"})
	return e
}

// The checker finds no violation in good evidence of deletions, and finds each that is added to it.
func TestBriefChecker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string // empty: no violation
	}{
		"nothing":                         {func(*evidence) {}, ""},
		"rows are left":                   {func(e *evidence) { e.leftovers = []string{"3 step of run X"} }, "3 step of run X"},
		"a run is lost":                   {func(e *evidence) { delete(e.runs, "kept") }, "run kept is gone, which nobody has deleted"},
		"a run is deleted before its end": {func(e *evidence) { e.events = e.events[:3] }, "run retired is lost"},
		"a run is not archived":           {func(e *evidence) { e.entries = e.entries[:5] }, "run retired is gone, which nobody has deleted"},
		"half of a run is archived":       {func(e *evidence) { e.entries[5].Err = "it is running" }, "half of run retired"},
		"a run is left":                   {func(e *evidence) { e.briefLoad.deleting["kept"] = true }, "run kept was deleted, and is there"},
		"a run may be left":               {func(e *evidence) { e.briefLoad.deleting["kept"] = false }, ""},
		"a run loses its steps":           {func(e *evidence) { delete(e.runs["child"].history, lastStep) }, "half of it is left"},
		"a child is left":                 {func(e *evidence) { e.runs["left"].Name = "child" }, "left of a tree"},
		"a child has not ended":           {func(e *evidence) { e.runs["left"].Status = durable.StatusRunning }, "I7: run left"},
		"an end has another event":        {func(e *evidence) { e.runs["left"].Status = durable.StatusFailed }, "I5: run left"},
		"a run is deleted twice":          {func(e *evidence) { e.events = append(e.events, e.events[0]) }, "2 events of its deletion"},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := goodBrief(), &findings{}
			c.spoil(e)
			e.checkBrief(f)
			switch got := strings.Join(f.violations, "\n"); {
			case c.want == "" && got != "", c.want != "" && !strings.Contains(got, c.want):
				t.Errorf("violations: %q, want %q", got, c.want)
			}
		})
	}
}
