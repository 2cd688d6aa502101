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

// ReplayResult is the result of [Replay].
type ReplayResult struct {
	ID        string // the ID of the run
	Diverged  bool
	Step      string   // the step at which the code diverges; empty if there is none
	Reason    string   // why the code diverges, and what to do
	NotCalled []string // the recorded calls that the code no longer makes
	NewCalls  []string // the calls with which the run would continue, and which are not in the history
}

// String returns the result in one line.
func (v ReplayResult) String() string {
	if !v.Diverged {
		return fmt.Sprintf("run %q replays", v.ID)
	}
	return fmt.Sprintf("run %q diverges at %q: %s", v.ID, v.Step, v.Reason)
}

// oldestFormat is the oldest export format that Replay reads; see durable.ExportFormat.
const oldestFormat = 2

// Replay executes the current code against the history of a run that Engine.Export wrote, in a temporary database. Replay
// reports whether the code diverges from the history, at which step and why. Replay calls no function of a step: the workflow
// is executed up to the first calls that the history does not hold.
//
// A run that has completed or failed must end in the same way in the replay, and make no new calls. In the replay, a run that
// had not ended, or was cancelled, may make new calls after it has made all recorded calls. If the replay makes new calls while
// recorded calls are missing, the code diverges: a step was probably renamed, and would be executed again. If the code no
// longer makes a recorded call, this alone is no divergence; ReplayResult.NotCalled lists the recorded calls that the replay
// did not make.
//
// Replay fails the test only if the export cannot be read or belongs to another workflow.
func Replay(t testing.TB, w durable.Definition, exported []byte, opts ...Option) ReplayResult {
	t.Helper()
	var x durable.Exported
	if err := json.Unmarshal(exported, &x); err != nil {
		t.Fatalf("durabletest: the export cannot be read: %v: pass what Engine.Export returned", err)
	}
	if x.Format != durable.ExportFormat && x.Format != oldestFormat {
		t.Fatalf("durabletest: the export is of format %d, and this code reads %d and %d: export the run again", x.Format, oldestFormat, durable.ExportFormat)
	}
	if x.Run.Workflow != w.Name() {
		t.Fatalf("durabletest: the export is of a run of workflow %q, not %q: pass that workflow", x.Run.Workflow, w.Name())
	}
	v, err := replayExport(t, w, &x, opts)
	if err != nil {
		t.Fatalf("durabletest: replay run %q: %v", x.Run.ID, err)
	}
	return v
}

// ReplayDir replays every export (*.json) in the folder dir, each in a subtest. A subtest fails if the code of its workflow
// diverges.
func ReplayDir(t *testing.T, dir string, workflows ...durable.Definition) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("durabletest: there are no exports (*.json) in %q (%v): write the exports that Engine.Export returns there", dir, err)
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
				t.Fatalf("durabletest: %s cannot be read: %v: pass what Engine.Export returned", file, err)
			}
			i := slices.IndexFunc(workflows, func(w durable.Definition) bool { return w.Name() == head.Run.Workflow })
			if i < 0 {
				t.Fatalf("durabletest: %s is of a run of workflow %q: pass that workflow to ReplayDir too", file, head.Run.Workflow)
			}
			if v := Replay(t, workflows[i], exported); v.Diverged {
				t.Error(v)
			} else if len(v.NotCalled) > 0 {
				t.Logf("the code no longer calls %q", v.NotCalled)
			}
		})
	}
}
