package main

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// goodRevised returns evidence without a violation: a run of the first version that was held once, and a run of the second version, after the
// first one had called a function that was not recorded.
func goodRevised() *evidence {
	run := func(id, version string, kind durable.Kind) *knownRun {
		return &knownRun{
			RunInfo: &durable.RunInfo{RunID: id, Status: durable.StatusCompleted, Output: []byte(`"` + version + `"`)},
			history: map[string]durable.Checkpoint{chargeCall: {Kind: kind}},
		}
	}
	step := func(id, name, version string) entry {
		return entry{Kind: kindRevisedStep, Run: id, Step: name, Version: version}
	}
	return &evidence{
		revisedLoad: &revisedLoad{started: []string{"1", "2"}},
		runs:        map[string]*knownRun{"1": run("1", firstVersion, durable.KindStep), "2": run("2", secondVersion, durable.KindSleep)},
		events:      []durable.Event{{Type: durable.EventPaused, RunID: "1"}},
		entries:     []entry{step("1", chargeCall, firstVersion), step("1", shipStep, firstVersion), step("2", chargeCall, firstVersion), step("2", shipStep, secondVersion)},
	}
}

// The checker finds no violation in good evidence of two versions, and finds each that is added to it.
func TestRevisedChecker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string // empty: no violation
	}{
		"nothing":                     {func(*evidence) {}, ""},
		"a run is lost":               {func(e *evidence) { delete(e.runs, "1") }, "run 1 of workflow revised has not completed"},
		"a run stays held":            {func(e *evidence) { e.runs["1"].Status = durable.StatusPaused }, "run 1 of workflow revised has not completed"},
		"the other version completes": {func(e *evidence) { e.runs["1"].Output = []byte(`"second"`) }, "has completed with"},
		"the other version executes":  {func(e *evidence) { e.entries[1].Version = secondVersion }, "has called step ship"},
		"somebody pauses it":          {func(e *evidence) { e.events[0].Actor = "ann" }, "was paused by"},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := goodRevised(), &findings{}
			c.spoil(e)
			e.checkRevised(f)
			switch got := strings.Join(f.violations, "\n"); {
			case c.want == "" && got != "", c.want != "" && !strings.Contains(got, c.want):
				t.Errorf("violations: %q, want %q", got, c.want)
			}
		})
	}
}
