package durabletest

import (
	"bytes"
	"context"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// testRecorder records what the engines of one test did, and holds the replacements for their steps.
type testRecorder struct {
	mu           sync.Mutex
	executions   []*runExecution
	attempts     []engine.HookedCall
	reruns       []engine.HookedCall
	replacements []*Replacement
	fixedOutputs map[stepPath][]byte   // the outputs of VaryingSteps
	runPaths     map[store.UUID]string // the paths of the runs that made calls
}

// runExecution is one execution of a run, with its durable calls in order.
type runExecution struct {
	run               store.UUID
	epoch             store.Epoch
	generation        int32
	calls             []engine.HookedCall
	goroutine         string
	hasManyGoroutines bool // several goroutines made calls
}

func (r *testRecorder) onCall(c engine.HookedCall) {
	self := goroutineID()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordRunPath(c)
	var x *runExecution
	for i := len(r.executions) - 1; i >= 0; i-- {
		if e := r.executions[i]; e.run == c.Run && e.epoch == c.Epoch {
			x = e
			break
		}
	}
	if x == nil {
		x = &runExecution{run: c.Run, epoch: c.Epoch, generation: c.Generation, goroutine: self}
		r.executions = append(r.executions, x)
	}
	x.calls = append(x.calls, c)
	r.markReplacementsUsed(c)
	x.hasManyGoroutines = x.hasManyGoroutines || x.goroutine != self
}

// markReplacementsUsed records, in each replacement that matches the step, that the step was called. The caller holds r.mu.
func (r *testRecorder) markReplacementsUsed(c engine.HookedCall) {
	for _, p := range r.replacements {
		if p.matches(c) {
			p.stepWasCalled.Store(true)
		}
	}
}

// goroutineID returns the text that begins the calling goroutine's stack, such as "goroutine 7".
func goroutineID() string {
	var head [40]byte
	name, _, _ := bytes.Cut(head[:runtime.Stack(head[:], false)], []byte(" ["))
	return string(name)
}

// calledNames returns the sorted names of the durable calls and of the compensations that were executed, without duplicates.
func (r *testRecorder) calledNames() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, x := range r.executions {
		for _, c := range x.calls {
			all = append(all, naming.Display(c.Name))
		}
	}
	for _, c := range r.attempts {
		all = append(all, naming.Display(c.Name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// failOnUnusedReplacements fails the test for each replacement whose step was never called.
func (r *testRecorder) failOnUnusedReplacements(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	replacers := slices.Clone(r.replacements)
	r.mu.Unlock()
	failOnUnusedReplacements(t, replacers, r.calledNames)
}

// onAttempt records an attempt. The function of a compensation is called by the engine and not by the workflow, so that only its
// attempts show that it was called.
func (r *testRecorder) onAttempt(c engine.HookedCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = append(r.attempts, c)
	r.markReplacementsUsed(c)
}

func (r *testRecorder) onRerun(c engine.HookedCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reruns = append(r.reruns, c)
}

// executeAttemptOrReplacement executes the attempt, or the replacements that match the step.
func (r *testRecorder) executeAttemptOrReplacement(ctx context.Context, c engine.HookedCall, next func() (engine.AttemptOutput, *record.Failure)) (engine.AttemptOutput, *record.Failure) {
	r.mu.Lock()
	for _, p := range r.replacements {
		if inner := next; c.Kind != store.KindChoice && p.matches(c) {
			next = func() (engine.AttemptOutput, *record.Failure) { return p.attempt(ctx, c, inner) }
		}
	}
	r.mu.Unlock()
	out, failure := next()
	if failure != nil {
		return out, failure
	}
	if fixed, ok := r.findBaselineOutput(c); ok {
		out = engine.AttemptOutput{Bytes: fixed}
	}
	return out, nil
}

// ownOrFixedOutput returns the output that a Tx step records: its own, or the fixed one of VaryingSteps.
func (r *testRecorder) ownOrFixedOutput(c engine.HookedCall, output []byte) []byte {
	if fixed, ok := r.findBaselineOutput(c); ok {
		return fixed
	}
	return output
}

// findBaselineOutput returns the output that the step returned in the run without a crash, if VaryingSteps names the step.
func (r *testRecorder) findBaselineOutput(c engine.HookedCall) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fixed, ok := r.fixedOutputs[stepPath{r.runPaths[c.Run], c.Generation, c.Name}]
	return fixed, ok
}

// recordRunPath records the path of the call's run in the tree of runs. A parent is always recorded before its
// children. The caller holds r.mu.
func (r *testRecorder) recordRunPath(c engine.HookedCall) {
	if _, known := r.runPaths[c.Run]; known {
		return
	}
	if r.runPaths == nil {
		r.runPaths = make(map[store.UUID]string)
	}
	r.runPaths[c.Run] = buildRunPath(r.runPaths[c.Parent.UUID], c.RunName, c.Workflow)
}

// buildRunPath returns the path of a run, given the path of its parent. The path of a run is the same in all databases of
// one CrashEverywhere, and differs from the paths of other runs. The separator is a NUL byte, which names cannot
// contain.
func buildRunPath(above, name, workflow string) string {
	return above + "\x00" + name + "\x00" + workflow
}

// stepPath identifies a step in all databases of one CrashEverywhere.
type stepPath struct {
	run        string
	generation int32
	step       string
}

// matchesName reports whether the pattern matches the step: by its name, by its name with its scope, or by path.Match.
func matchesName(pattern, name string) bool { return matchesDisplayName(pattern, naming.Display(name)) }

// matchesDisplayName is matchesName for the escaped form of the name that users see. The pattern may also be the unescaped
// name.
func matchesDisplayName(pattern, shown string) bool {
	last := shown[strings.LastIndexByte(shown, '/')+1:]
	if pattern == shown || pattern == last || pattern == naming.ParseDisplay(last) {
		return true
	}
	ok, err := path.Match(pattern, shown)
	return ok && err == nil
}
