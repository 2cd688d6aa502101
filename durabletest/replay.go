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
	Step      string   // the call at which the code diverges; empty if there is none
	Reason    string   // why the code diverges, and what to do
	Err       string   // the failure with which a live run would fail without a new call; empty if there is none
	NotCalled []string // the recorded calls that the replay did not make
	NewCalls  []string // the calls that the history does not hold, and with which the run would continue, or at which the code diverges
}

// String returns the result in one line.
func (v ReplayResult) String() string {
	switch {
	case v.Diverged:
		return fmt.Sprintf("run %q diverges at %q: %s", v.ID, v.Step, v.Reason)
	case v.Err != "":
		return fmt.Sprintf("run %q would fail now: %s", v.ID, v.Err)
	}
	return fmt.Sprintf("run %q replays", v.ID)
}

// Replay executes the current code against the history of a run that Engine.Export wrote, as [durable.Engine.ReplayExport] does. Replay reports
// whether the code diverges from the history, at which call and why. Replay finds the same divergences as [durable.Engine.Preflight] and as a
// worker, which would hold the run. Replay uses no database and calls no function of a step: the workflow is executed up to the first calls that
// have no outcome in the history.
//
// A run that has completed or failed must end in the same way in the replay, and its workflow function must make no new calls. A recorded
// call that the code no longer makes is not always a divergence: for example, the code may declare it with durable.Retired.
// ReplayResult.NotCalled lists the recorded calls that the replay did not make.
//
// If the payloads of the export are encoded, set Config.Codec with the option [Configure]. Replay fails the test only if the
// export cannot be read or belongs to another workflow, or if the workflow function does not return within 10 seconds.
func Replay(t testing.TB, w durable.Definition, exported []byte, opts ...Option) ReplayResult {
	t.Helper()
	set := newSettings(t, "Replay", opts)
	var x durable.Exported
	if err := json.Unmarshal(exported, &x); err != nil {
		t.Fatalf("durabletest: the export cannot be read: %v: pass what Engine.Export returned", err)
	}
	if x.Run.Workflow != w.Name() {
		t.Fatalf("durabletest: the export is of a run of workflow %q, not %q: pass that workflow", x.Run.Workflow, w.Name())
	}
	cfg := durable.Config{Workflows: append([]durable.Definition{w}, set.workflows...)}
	for _, change := range set.configFuncs {
		change(&cfg)
	}
	e, err := durable.New(unusedStore{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	found, err := e.ReplayExport(t.Context(), exported)
	if err != nil {
		t.Fatalf("durabletest: %v", err)
	}
	if found.Unknown {
		t.Fatalf("durabletest: the workflow function did not return in the replay of run %q: return when a durable call or Wait returns an error", found.ID)
	}
	return newReplayResult(&x, &found)
}

// unusedStore is the store of an engine that only replays exports.
type unusedStore struct{ durable.Store }

// newReplayResult returns what a replay of the export has found.
func newReplayResult(x *durable.Exported, found *durable.PreflightRun) ReplayResult {
	v := ReplayResult{ID: found.ID, Diverged: found.Diverged, Step: found.Call, Reason: found.Reason, Err: found.Err, NotCalled: found.NotCalled}
	if found.Output != nil {
		v.Reason = fmt.Sprintf("the run's output is %s, and would be %s now", formatPayload(x.Run.Output), formatPayload(found.Output))
	}
	recorded := make(map[string]bool, len(x.History))
	for i := range x.History {
		recorded[x.History[i].Name] = true
	}
	for _, call := range append(found.Next, found.Call) {
		if call != "" && !recorded[call] {
			v.NewCalls = append(v.NewCalls, call)
		}
	}
	return v
}

// ReplayDir replays every export (*.json) in the folder dir, each in a subtest. A subtest fails if the code of its workflow
// diverges, or if the run would fail now.
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
			if v := Replay(t, workflows[i], exported); v.Diverged || v.Err != "" {
				t.Error(v)
			} else if len(v.NotCalled) > 0 {
				t.Logf("the replay did not make the recorded calls %q", v.NotCalled)
			}
		})
	}
}
