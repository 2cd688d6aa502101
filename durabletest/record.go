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
type record struct {
	mu         sync.Mutex
	executions []*execution
	attempts   []engine.Call
	reruns     []engine.Call
	replacers  []*Replacement
	fixed      map[place][]byte    // what steps return in any case
	paths      map[store.ID]string // of the runs that were seen
	replay     *replay             // nil: new steps are executed
}

// execution is one execution of a run: what it called, in order.
type execution struct {
	run        store.ID
	epoch      store.Epoch
	calls      []engine.Call
	goroutine  string
	concurrent bool // not all calls were made in one goroutine
}

func (r *record) called(c engine.Call) {
	self := goroutine()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow(c)
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
	for _, p := range r.replacers {
		if p.matches(c) {
			p.met.Store(true)
		}
	}
	if r.replay != nil {
		r.replay.called(c)
	}
	x.concurrent = x.concurrent || x.goroutine != self
}

// goroutine is the name of the calling goroutine.
func goroutine() string {
	var head [40]byte
	name, _, _ := bytes.Cut(head[:runtime.Stack(head[:], false)], []byte(" ["))
	return string(name)
}

// names returns the names of what was called, each once.
func (r *record) names() []string {
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

// unmet fails the test for replacements whose steps were never called.
func (r *record) unmet(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	replacers := slices.Clone(r.replacers)
	r.mu.Unlock()
	unmet(t, replacers, r.names)
}

func (r *record) attempted(c engine.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = append(r.attempts, c)
}

func (r *record) again(c engine.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reruns = append(r.reruns, c)
}

// replaced makes the attempt, or what stands for it.
func (r *record) replaced(ctx context.Context, c engine.Call, next func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure) {
	r.mu.Lock()
	for _, p := range r.replacers {
		if inner := next; c.Kind != store.KindChoice && p.matches(c) {
			next = func() (engine.Output, *engine.Failure) { return p.do(ctx, c, inner) }
		}
	}
	r.mu.Unlock()
	out, failure := next()
	if failure != nil {
		return out, failure
	}
	if fixed, ok := r.settled(c); ok {
		out = engine.Output{Bytes: fixed}
	}
	return out, nil
}

// sealing is what a transaction records in place of its output.
func (r *record) sealing(c engine.Call, output []byte) []byte {
	if fixed, ok := r.settled(c); ok {
		return fixed
	}
	return output
}

// settled is what the step returned in the first run, if it is one of those that vary.
func (r *record) settled(c engine.Call) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fixed, ok := r.fixed[place{r.paths[c.Run], c.Name}]
	return fixed, ok
}

// follow notes where in the tree the call's run is. A parent was seen before its children. r.mu is held.
func (r *record) follow(c engine.Call) {
	if _, known := r.paths[c.Run]; known {
		return
	}
	if r.paths == nil {
		r.paths = make(map[store.ID]string)
	}
	r.paths[c.Run] = pathOf(r.paths[c.Parent.UUID], c.RunName, c.Workflow)
}

// pathOf is the path of a run beneath the one with the path above: the same in all databases of one
// CrashEverywhere, and of no other run. Names have no control characters but those of scopes.
func pathOf(above, name, workflow string) string { return above + "\x00" + name + "\x00" + workflow }

// place names a step in all databases of one CrashEverywhere.
type place struct{ path, step string }

// matches reports whether a pattern means the step: by its name, by its name with its
// scope, or as path.Match has it.
func matches(pattern, name string) bool { return means(pattern, engine.Shown(name)) }

// means is matches for a name as people see it. The step's own name may also stand as the code has it.
func means(pattern, shown string) bool {
	last := shown[strings.LastIndexByte(shown, '/')+1:]
	if pattern == shown || pattern == last || pattern == engine.Unshown(last) {
		return true
	}
	ok, err := path.Match(pattern, shown)
	return ok && err == nil
}
