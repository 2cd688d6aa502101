package durabletest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// treeTrace is what a run and its descendants did, and how they ended.
type treeTrace struct {
	crashedWrite      string // describes the write at which the process died; empty if it did not die
	runs              []*runTrace
	rerunSteps        []string
	hasUnknownOutcome bool // a step ended with ErrOutcomeUnknown
	fixedOutputs      map[stepPath][]byte
}

// runTrace is one run of a trace.
type runTrace struct {
	path          string // see buildRunPath
	displayPath   string // the names from the root run to this one
	run           *store.Run
	steps         map[string]*store.Step
	executedSteps map[string]bool // steps whose functions were executed
	executions    []*runExecution
	stepOrder     []string // the steps in the order of their first calls
	varyingSteps  map[string]bool
}

// readRunTree returns the run of CrashEverywhere and its descendants, parents first.
func readRunTree(ctx context.Context, s store.Store) ([]*store.Run, error) {
	found, err := s.GetRuns(ctx, []store.RunRef{{UUIDOrName: crashedID}})
	if err != nil || found[0] == nil {
		return nil, err
	}
	rows, err := s.RunTree(ctx, found[0].UUID, false)
	if err != nil {
		return nil, err
	}
	refs := make([]store.RunRef, len(rows))
	for i, r := range rows {
		refs[i] = store.RunRef{UUIDOrName: r.UUID.String()}
	}
	whole, err := s.GetRuns(ctx, refs) // Tree returns no outputs
	return slices.DeleteFunc(whole, func(r *store.Run) bool { return r == nil }), err
}

// readTreeTrace returns the trace of the run. It reads the trace from the database and from the recorder.
func (h *crashTest) readTreeTrace(ctx context.Context, s store.Store, log *testRecorder, f *simulatedProcess) (*treeTrace, error) {
	rows, err := readRunTree(ctx, s)
	if err != nil {
		return nil, err
	}
	got := &treeTrace{crashedWrite: f.crashedWrite, fixedOutputs: make(map[stepPath][]byte)}
	byID := make(map[store.UUID]*runTrace)
	var names []string // pairs for a strings.Replacer, because IDs differ between databases
	for _, row := range rows {
		r := &runTrace{displayPath: naming.DisplayRun(row), run: row, steps: make(map[string]*store.Step), executedSteps: make(map[string]bool), varyingSteps: make(map[string]bool)}
		above := ""
		if parent := byID[row.Parent.UUID]; row.Parent.Valid && parent != nil {
			above, r.displayPath = parent.path, parent.displayPath+" > "+r.displayPath
		}
		r.path = buildRunPath(above, row.Name, row.Workflow)
		byID[row.UUID] = r
		names = append(names, row.UUID.String(), "<"+r.displayPath+">")
		got.runs = append(got.runs, r)
	}
	names, err = addChildrenOfGenerations(ctx, s, rows, byID, names)
	if err != nil {
		return nil, err
	}
	same := strings.NewReplacer(names...)
	neutral := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		return []byte(same.Replace(string(b)))
	}
	for _, r := range got.runs {
		r.run.Input, r.run.Output, r.run.Error = neutral(r.run.Input), neutral(r.run.Output), neutral(r.run.Error)
		steps, err := s.History(ctx, r.run.UUID)
		if err != nil {
			return nil, err
		}
		generations, err := s.SupersededGenerations(ctx, r.run.UUID, store.GenerationsQuery{})
		if err != nil {
			return nil, err
		}
		newest := int32(1)
		paths := make([]stepPath, len(steps), 2*len(steps)) // of the steps
		for i := range generations {
			newest = max(newest, generations[i].Number+1)
			before, err := s.History(ctx, generations[i].ArchiveID)
			if err != nil {
				return nil, err
			}
			for _, step := range before {
				paths = append(paths, stepPath{r.path, generations[i].Number, step.Name})
				step.Name = fmt.Sprintf("%s (generation %d)", step.Name, generations[i].Number)
				steps = append(steps, step)
			}
		}
		for i, step := range steps {
			if paths[i].generation == 0 {
				paths[i] = stepPath{r.path, newest, step.Name}
			}
			r.steps[step.Name] = &step
			made := step.Kind == store.KindNow || step.Kind == store.KindUUID
			if h.isVaryingStep(paths[i].step) || made {
				r.varyingSteps[step.Name] = true
				got.fixedOutputs[paths[i]] = step.Output
			}
			step.Output, step.Error = neutral(step.Output), neutral(step.Error)
			got.hasUnknownOutcome = got.hasUnknownOutcome || step.Status == store.StepFailed &&
				slices.Contains(record.DecodeFailure(step.Error).Codes, record.CodeOutcomeUnknown)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, x := range log.executions {
		if r := byID[x.run]; r != nil {
			r.executions = append(r.executions, x)
			for _, c := range x.calls {
				r.appendToStepOrder(c.Name)
			}
		}
	}
	for _, c := range log.attempts {
		if r := byID[c.Run]; r != nil {
			r.executedSteps[c.Name] = true
			r.appendToStepOrder(c.Name)
		}
	}
	for _, r := range got.runs {
		for _, name := range slices.Sorted(maps.Keys(r.steps)) {
			r.appendToStepOrder(name)
		}
	}
	for _, c := range log.reruns {
		got.rerunSteps = append(got.rerunSteps, naming.Display(c.Name))
	}
	return got, nil
}

// addChildrenOfGenerations appends the IDs and names of the descendants that superseded generations have started. These runs are not
// compared, but their IDs may be in the history of those generations: for example, the ID of a detached child whose end nobody
// awaited.
func addChildrenOfGenerations(ctx context.Context, s store.Store, rows []*store.Run, byID map[store.UUID]*runTrace, names []string) ([]string, error) {
	if len(rows) == 0 {
		return names, nil
	}
	all, err := s.RunTree(ctx, rows[0].UUID, true)
	if err != nil {
		return nil, err
	}
	shown := make(map[store.UUID]string) // how runs and superseded generations are shown
	for id, r := range byID {
		shown[id] = r.displayPath
	}
	for _, row := range all { // parents first
		if byID[row.UUID] != nil {
			continue
		}
		if _, known := shown[row.Parent.UUID]; !known {
			found, err := s.FindGenerations(ctx, []store.UUID{row.Parent.UUID})
			if err != nil {
				return nil, err
			}
			for _, g := range found {
				shown[g.ArchiveID] = fmt.Sprintf("%s (generation %d)", shown[g.Run], g.Number)
			}
		}
		shown[row.UUID] = shown[row.Parent.UUID] + " > " + naming.DisplayRun(row)
		names = append(names, row.UUID.String(), "<"+shown[row.UUID]+">")
	}
	return names, nil
}

func (r *runTrace) appendToStepOrder(name string) {
	if !slices.Contains(r.stepOrder, name) {
		r.stepOrder = append(r.stepOrder, name)
	}
}

// suggestVaryingSteps returns, for each choice that ended branches, how to allow another winner.
func (t *treeTrace) suggestVaryingSteps() (hints []string) {
	for _, r := range t.runs {
		for _, name := range r.stepOrder {
			step := r.steps[name]
			if step == nil || r.varyingSteps[name] {
				continue
			}
			choice := record.DecodeChoiceStep(step)
			if choice == nil {
				continue
			}
			hints = append(hints, fmt.Sprintf("run %q makes the choice %q among the branches %s: if they race and another winner is correct too, pass durabletest.VaryingSteps(%q)",
				r.displayPath, naming.Display(name), strings.Join(choice.Of, ", "), naming.Display(name)))
		}
	}
	return hints
}

// isInLosingBranch reports whether a step is in a branch that did not win a choice that VaryingSteps names, in r or
// in got, or in a node that such a choice of a graph cancelled with its losers. The calls of such a branch may differ.
func (r *runTrace) isInLosingBranch(got *runTrace, name string) bool {
	for _, t := range []*runTrace{r, got} {
		for chosen := range t.varyingSteps {
			choice := record.DecodeChoiceStep(t.steps[chosen])
			if choice == nil {
				continue
			}
			losers := slices.Concat(choice.Ended, choice.Returned)
			for i, branch := range choice.Of {
				if !slices.Contains(choice.Won, i) && !slices.Contains(choice.Failed, i) {
					losers = append(losers, branch)
				}
			}
			if slices.ContainsFunc(losers, func(branch string) bool { return strings.HasPrefix(naming.Display(name), branch+"/") }) {
				return true
			}
		}
	}
	return false
}

// compareTraces returns a description of the first difference between two traces, or an empty string.
func compareTraces(first, got *treeTrace) string {
	for _, r := range first.runs {
		i := slices.IndexFunc(got.runs, func(o *runTrace) bool { return o.path == r.path })
		if i < 0 {
			return fmt.Sprintf("run %q of workflow %q was not started", r.displayPath, r.run.Workflow)
		}
		if diff := r.firstDifference(got.runs[i]); diff != "" {
			if len(first.runs) > 1 {
				diff = fmt.Sprintf("in run %q: %s", r.displayPath, diff)
			}
			return diff
		}
	}
	for _, r := range got.runs {
		if !slices.ContainsFunc(first.runs, func(o *runTrace) bool { return o.path == r.path }) {
			return fmt.Sprintf("run %q of workflow %q was started, and was not in the first execution", r.displayPath, r.run.Workflow)
		}
	}
	return ""
}

// firstDifference returns a description of the first difference between two runs, or an empty string.
func (r *runTrace) firstDifference(got *runTrace) string {
	if !bytes.Equal(r.run.Input, got.run.Input) {
		return fmt.Sprintf("the run's input is %s, and was %s at first: what its parent gave it differs", formatPayload(got.run.Input), formatPayload(r.run.Input))
	}
	if diff := r.callDifference(got); diff != "" {
		return diff
	}
	for _, name := range r.stepOrder {
		if r.isInLosingBranch(got, name) {
			continue
		}
		if diff := r.stepDifference(got, name); diff != "" {
			return diff
		}
	}
	for _, name := range got.stepOrder {
		if r.isInLosingBranch(got, name) {
			continue
		}
		if r.steps[name] == nil && got.steps[name] != nil {
			return fmt.Sprintf("step %q is in its history, and the first run never called it", naming.Display(name))
		}
		if got.executedSteps[name] && !r.executedSteps[name] {
			return fmt.Sprintf("step %q was executed, which the first run did not do", naming.Display(name))
		}
	}
	switch a, b := r.run, got.run; {
	case a.Status != b.Status && !(isExecutedLater(a) && isExecutedLater(b)):
		return fmt.Sprintf("the run is %s%s, and was %s%s at first", b.Status, failureSuffix(b.Error), a.Status, failureSuffix(a.Error))
	case !bytes.Equal(a.Output, b.Output):
		return fmt.Sprintf("the run's output is %s, and was %s at first; no step differs, so the workflow's own code made the difference", formatPayload(b.Output), formatPayload(a.Output))
	case !equalFailures(a.Error, b.Error):
		return fmt.Sprintf("the run's error is %s, and was %s at first", formatPayload(b.Error), formatPayload(a.Error))
	}
	return ""
}

// isExecutedLater reports whether a run, such as a detached child, continues after the test. Such a run may be in memory in one execution
// and not in the other.
func isExecutedLater(r *store.Run) bool { return !r.Status.IsTerminal() && r.Status != store.Paused }

func (r *runTrace) stepDifference(got *runTrace, name string) string {
	a, b := r.steps[name], got.steps[name]
	shown := naming.Display(name)
	switch {
	case r.executedSteps[name] && !got.executedSteps[name]:
		return fmt.Sprintf("step %q was not executed", shown)
	case a == nil:
		return ""
	case b == nil:
		return fmt.Sprintf("%s %q is not in its history", a.Kind, shown)
	case a.Kind != b.Kind:
		return fmt.Sprintf("%q is recorded as a %s, and was a %s at first", shown, b.Kind, a.Kind)
	case a.Status != b.Status:
		return fmt.Sprintf("%s %q is %s%s, and was %s%s at first", a.Kind, shown, b.Status, failureSuffix(b.Error), a.Status, failureSuffix(a.Error))
	case r.varyingSteps[name]:
		return ""
	case !bytes.Equal(a.Output, b.Output):
		return fmt.Sprintf("%s %q returned %s, and %s at first", a.Kind, shown, formatPayload(b.Output), formatPayload(a.Output))
	case a.Status == store.StepFailed && !equalFailures(a.Error, b.Error):
		return fmt.Sprintf("%s %q failed with %s, and with %s at first", a.Kind, shown, formatPayload(b.Error), formatPayload(a.Error))
	}
	return ""
}

// callDifference returns a description of the first call of got that differs from the calls of the first run in the same generation. It
// compares nothing if several goroutines made calls, since their order may vary.
func (r *runTrace) callDifference(got *runTrace) string {
	longestOf := make(map[int32][]engine.HookedCall) // of a generation
	for _, x := range r.executions {
		if x.hasManyGoroutines {
			return ""
		}
		if len(x.calls) > len(longestOf[x.generation]) {
			longestOf[x.generation] = x.calls
		}
	}
	for _, x := range got.executions {
		if x.hasManyGoroutines {
			return ""
		}
		longest := longestOf[x.generation]
		for i, c := range x.calls[:min(len(x.calls), len(longest))] {
			if want := longest[i]; c.Name != want.Name || c.Kind != want.Kind {
				return fmt.Sprintf("execution %d called %s %q where the first run called %s %q (call %d)",
					x.epoch.Count, c.Kind, naming.Display(c.Name), want.Kind, naming.Display(want.Name), i+1)
			}
		}
	}
	return ""
}

// equalFailures reports whether two recorded errors look equal to a program.
func equalFailures(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	l, r := record.DecodeFailure(a), record.DecodeFailure(b)
	return l.Message == r.Message && l.Type == r.Type && l.Step == r.Step && l.Status == r.Status && slices.Equal(l.Codes, r.Codes)
}

func failureSuffix(failure []byte) string {
	if len(failure) == 0 {
		return ""
	}
	return " (" + record.DecodeFailure(failure).Message + ")"
}

// formatPayload returns a payload for a message, shortened if it is long.
func formatPayload(b []byte) string {
	const most = 200
	switch {
	case b == nil:
		return "nothing"
	case len(b) > most:
		return fmt.Sprintf("%s… (%d bytes)", b[:most], len(b))
	}
	return string(b)
}
