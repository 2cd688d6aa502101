package main

import (
	"encoding/json/jsontext"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// The checker of repairs finds nothing in a run that was repaired rightly, and each fault that is put in.
func TestRepairChecker(t *testing.T) {
	run := func() *evidence {
		value := func(v string) durable.Checkpoint { return durable.Checkpoint{Output: jsontext.Value(`"` + v + `"`)} }
		k := &knownRun{
			RunInfo: &durable.RunInfo{ID: "repaired-1", RunID: "R", Workflow: repairedName, Status: durable.StatusCompleted, Output: jsontext.Value(`"k1|x set k3|z"`)},
			history: map[string]durable.Checkpoint{"a": value("k1|x"), "b": value("set"), "c": value("k3|z")},
		}
		return &evidence{order: []*knownRun{k}, repairLoad: &repairLoad{ids: []string{"repaired-1"}, repairs: 1}, entries: []entry{
			{Kind: kindRepairedBegun, Run: "R", Exec: "1"},
			{Kind: kindRepairedBegun, Run: "R", Exec: "late"}, // of a process that was stopped
			{Kind: kindRepairedStep, Run: "R", Exec: "1", Step: "k1"},
			{Kind: kindRepairedReturned, Run: "R", Exec: "1", Step: "a", Value: "k1|x"},
			{Kind: kindRepairedStep, Run: "R", Exec: "late", Step: "k1"},
			{Kind: kindRepairedStep, Run: "R", Exec: "1", Step: "k2"},
			{Kind: kindRepairedBegun, Run: "R", Exec: "2"},
			{Kind: kindRepairedReturned, Run: "R", Exec: "2", Step: "a", Value: "k1|x"},
			{Kind: kindRepairedReturned, Run: "R", Exec: "2", Step: "b", Value: "set"},
			{Kind: kindRepairedStep, Run: "R", Exec: "2", Step: "k3"},
			{Kind: kindRepairedReturned, Run: "R", Exec: "2", Step: "c", Value: "k3|z"},
		}}
	}
	for name, c := range map[string]struct {
		fault func(e *evidence)
		want  string
	}{
		"right": {func(*evidence) {}, ""},
		"executed again": {func(e *evidence) {
			e.entries = slices.Insert(e.entries, 7, entry{Kind: kindRepairedStep, Run: "R", Exec: "2", Step: "k1"})
		}, "I2"},
		"another result": {func(e *evidence) { e.order[0].Output = jsontext.Value(`"k1|x k2|y k3|z"`) }, "I3"},
		"lost":           {func(e *evidence) { e.repairLoad.ids = append(e.repairLoad.ids, "repaired-2") }, "I7"},
		"failed":         {func(e *evidence) { e.order[0].Status = durable.StatusFailed }, "I7"},
	} {
		e, f := run(), &findings{}
		c.fault(e)
		e.checkRepairs(f)
		if got := strings.Join(f.violations, "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(f.violations) > 1 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
