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
	"github.com/seed8ec063be/durable/internal/store"
)

// record is what the engines of one test were seen to do, and what they are to do instead.
type recorder struct {
	mu           sync.Mutex
	executions   []*execution
	attempts     []engine.Call
	reruns       []engine.Call
	replacements []*Replacement
	fixedOutputs map[stepPath][]byte // what steps return in any case
	runPaths     map[store.ID]string // of the runs that were seen
	replay       *replaySession      // nil: new steps are executed
}

// execution is one execution of a run: what it called, in order.
type execution struct {
	run            store.ID
	epoch          store.Epoch
	calls          []engine.Call
	goroutine      string
	multiGoroutine bool // not all calls were made in one goroutine
}

func (r *recorder) onCall(c engine.Call) {
	self := goroutineID()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordRunPath(c)
	var x *execution
	for i := len(r.executions) - 1; i >= 0; i-- {
		if e := r.executions[i]; e.run == c.Run && e.epoch == c.Epoch {
			x = e
			break
		}
	}
	if x == nil {
		x = &execution{run: c.Run, epoch: c.Epoch, goroutine: self}
		r.executions = append(r.executions, x)
	}
	x.calls = append(x.calls, c)
	for _, p := range r.replacements {
		if p.matches(c) {
			p.used.Store(true)
		}
	}
	if r.replay != nil {
		r.replay.onCall(c)
	}
	x.multiGoroutine = x.multiGoroutine || x.goroutine != self
}

// goroutineID is the name of the calling goroutine.
func goroutineID() string {
	var head [40]byte
	name, _, _ := bytes.Cut(head[:runtime.Stack(head[:], false)], []byte(" ["))
	return string(name)
}

// calledNames returns the names of what was called, each once.
func (r *recorder) calledNames() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, x := range r.executions {
		for _, c := range x.calls {
			all = append(all, engine.Shown(c.Name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// failUnused fails the test for replacements whose steps were never called.
func (r *recorder) failUnused(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	replacers := slices.Clone(r.replacements)
	r.mu.Unlock()
	failUnused(t, replacers, r.calledNames)
}

func (r *recorder) onAttempt(c engine.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = append(r.attempts, c)
}

func (r *recorder) onRerun(c engine.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reruns = append(r.reruns, c)
}

// attemptReplaced makes the attempt, or what stands for it.
func (r *recorder) attemptReplaced(ctx context.Context, c engine.Call, next func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure) {
	r.mu.Lock()
	for _, p := range r.replacements {
		if inner := next; c.Kind != store.KindChoice && p.matches(c) {
			next = func() (engine.Output, *engine.Failure) { return p.attempt(ctx, c, inner) }
		}
	}
	r.mu.Unlock()
	out, failure := next()
	if failure != nil {
		return out, failure
	}
	if fixed, ok := r.fixedOutput(c); ok {
		out = engine.Output{Bytes: fixed}
	}
	return out, nil
}

// outputToCommit is what a transaction records in place of its output.
func (r *recorder) outputToCommit(c engine.Call, output []byte) []byte {
	if fixed, ok := r.fixedOutput(c); ok {
		return fixed
	}
	return output
}

// fixedOutput is what the step returned in the first run, if it is one of those that vary.
func (r *recorder) fixedOutput(c engine.Call) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fixed, ok := r.fixedOutputs[stepPath{r.runPaths[c.Run], c.Name}]
	return fixed, ok
}

// recordRunPath notes where in the tree the call's run is. A parent was seen before its children. r.mu is held.
func (r *recorder) recordRunPath(c engine.Call) {
	if _, known := r.runPaths[c.Run]; known {
		return
	}
	if r.runPaths == nil {
		r.runPaths = make(map[store.ID]string)
	}
	r.runPaths[c.Run] = runPath(r.runPaths[c.Parent.UUID], c.RunName, c.Workflow)
}

// runPath is the path of a run beneath the one with the path above: the same in all databases of one
// CrashEverywhere, and of no other run. Names have no control characters but those of scopes.
func runPath(above, name, workflow string) string { return above + "\x00" + name + "\x00" + workflow }

// stepPath names a step in all databases of one CrashEverywhere.
type stepPath struct{ run, step string }

// matchesName reports whether a pattern means the step: by its name, by its name with its
// scope, or as path.Match has it.
func matchesName(pattern, name string) bool { return matchesShown(pattern, engine.Shown(name)) }

// matchesShown is matches for a name as people see it. The step's own name may also stand as the code has it.
func matchesShown(pattern, shown string) bool {
	last := shown[strings.LastIndexByte(shown, '/')+1:]
	if pattern == shown || pattern == last || pattern == engine.Unshown(last) {
		return true
	}
	ok, err := path.Match(pattern, shown)
	return ok && err == nil
}
