package durabletest

import (
	"encoding/json/v2"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable"
)

// ReplayResult is what today's code makes of a run's history.
type ReplayResult struct {
	ID        string // of the run
	Diverged  bool
	Step      string   // the step, if there is one
	Reason    string   // in words, with what to do
	NotCalled []string // recorded steps that the code did not ask for
	NewCalls  []string // calls that history does not hold: where the run would go on
}

// String is the verdict in one line.
func (v ReplayResult) String() string {
	if !v.Diverged {
		return fmt.Sprintf("run %q replays", v.ID)
	}
	return fmt.Sprintf("run %q diverges at %q: %s", v.ID, v.Step, v.Reason)
}

// oldestFormat is the oldest export that Replay reads; see durable.ExportFormat.
const oldestFormat = 2

// Replay executes today's code of a workflow on the history of a run that Engine.Export
// wrote, in a throwaway database, and answers whether it would diverge, where and why. No
// step's function is called: the code is executed up to what history does not hold.
//
// A run that has completed or failed must come to the same end, and call nothing new. One that had not
// ended, or was cancelled, may go on with something new once it has asked for all that
// is recorded: if something is left, a step was likely renamed, and would be executed
// again. Calls that were removed are no divergence by themselves: see Unasked.
//
// It fails the test only if the export cannot be read or is of another workflow.
func Replay(t testing.TB, w durable.Definition, exported []byte, opts ...Option) ReplayResult {
	t.Helper()
	var x durable.Exported
	if err := json.Unmarshal(exported, &x); err != nil {
		t.Fatalf("durabletest: the export cannot be read: %v: give what Engine.Export answered", err)
	}
	if x.Format != durable.ExportFormat && x.Format != oldestFormat {
		t.Fatalf("durabletest: the export is of format %d, and this code reads %d and %d: export the run again", x.Format, oldestFormat, durable.ExportFormat)
	}
	if x.Run.Workflow != w.Name() {
		t.Fatalf("durabletest: the export is of a run of workflow %q, not %q: give that one", x.Run.Workflow, w.Name())
	}
	v, err := replayExport(t, w, &x, opts)
	if err != nil {
		t.Fatalf("durabletest: replay run %q: %v", x.Run.ID, err)
	}
	return v
}

// ReplayDir replays every export in the folder's *.json files, each in a subtest that fails
// if the code of its workflow diverges.
func ReplayDir(t *testing.T, dir string, workflows ...durable.Definition) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("durabletest: there are no exports (*.json) in %q (%v): write what Engine.Export answers there", dir, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			exported, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var head struct {
				Run struct {
					Workflow string `json:"workflow"`
				} `json:"run"`
			}
			if err := json.Unmarshal(exported, &head); err != nil {
				t.Fatalf("durabletest: %s cannot be read: %v: give what Engine.Export answered", file, err)
			}
			i := slices.IndexFunc(workflows, func(w durable.Definition) bool { return w.Name() == head.Run.Workflow })
			if i < 0 {
				t.Fatalf("durabletest: %s is of a run of workflow %q: give that to ReplayDir too", file, head.Run.Workflow)
			}
			if v := Replay(t, workflows[i], exported); v.Diverged {
				t.Error(v)
			} else if len(v.NotCalled) > 0 {
				t.Logf("the code no longer asks for %q", v.NotCalled)
			}
		})
	}
}
