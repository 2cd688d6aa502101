package durabletest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Replacement is done in place of steps with a name. It is an Option, and what Engine.Use
// takes. Of several for one step the last is asked first, and a FailFirst that lets the
// step go on leaves it to the one before.
type Replacement struct {
	name    string
	attempt func(ctx context.Context, c engine.Call, next func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure)
	calls   atomic.Int64

	used     atomic.Bool // a step with the name was called
	optional atomic.Bool
}

func (r *Replacement) apply(set *settings) {
	set.replacements = append(set.replacements, r)
	set.restrict("a Replacement", "NewWithOptions", "CrashEverywhere") // Replay calls no step's function
}

func (r *Replacement) matches(c engine.Call) bool { return matchesName(r.name, c.Name) }

// Optional returns the Replacement, which no longer fails the test if no step with its name is called.
func (r *Replacement) Optional() *Replacement {
	r.optional.Store(true)
	return r
}

// failUnused fails the test for the replacements whose steps were never called: their names may be wrong, and
// what they replace is executed. A test that has failed already may not have come so far.
func failUnused(t testing.TB, replacers []*Replacement, called func() []string) {
	t.Helper()
	if t.Failed() || t.Skipped() {
		return
	}
	for _, r := range replacers {
		if !r.used.Load() && !r.optional.Load() {
			t.Errorf("durabletest: no step %q was called, so nothing was done in its place; called were %s: correct the name, or use Optional",
				r.name, quotedList(called()))
		}
	}
}

// quotedList lists names, up to a bound.
func quotedList(names []string) string {
	const most = 30
	if len(names) == 0 {
		return "none"
	}
	var all []string
	for _, name := range names[:min(len(names), most)] {
		all = append(all, strconv.Quote(name))
	}
	if len(names) > most {
		all = append(all, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(all, ", ")
}

// Calls is how often it was done.
func (r *Replacement) Calls() int { return int(r.calls.Load()) }

// Stub calls fn in place of the function of the step called name. What it returns is
// recorded as the step's own result would be, so T must be encoded as that is; options of
// the step, such as Retry, hold for it. durable.Attempt and durable.IdempotencyKey work in it.
//
// A name is a step's ("charge"), or one with its scope ("orders/7"), or a pattern of
// path.Match ("orders/*"). Compensations and transactions are steps too; a stub of a
// transaction writes nothing but its checkpoint.
//
// If no step with the name is called by the end of the test, the test fails with the names of the steps
// that were. Optional is for one that need not be.
func Stub[T any](name string, fn func(ctx context.Context) (T, error)) *Replacement {
	r := &Replacement{name: name}
	r.attempt = func(ctx context.Context, _ engine.Call, _ func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure) {
		r.calls.Add(1)
		v, err := fn(ctx)
		if err != nil {
			return engine.Output{}, engine.FailureOf(err)
		}
		b, err := engine.Encode(v)
		if err != nil {
			f := engine.FailureOf(err)
			f.Permanent = true
			return engine.Output{}, f
		}
		return engine.Output{Bytes: b}, nil
	}
	return r
}

// FailFirst has the first n attempts of the step fail with err, before its function is
// called; those after call it. Attempts are counted over all processes.
func FailFirst(name string, n int, err error) *Replacement {
	r := &Replacement{name: name}
	r.attempt = func(_ context.Context, c engine.Call, next func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure) {
		if int(c.Attempt) > n {
			return next()
		}
		r.calls.Add(1)
		return engine.Output{}, engine.FailureOf(err)
	}
	return r
}

// Use replaces steps from now on, in this engine and in those made by its Another.
func (e *Engine) Use(replacements ...*Replacement) {
	e.probe.recorder.mu.Lock()
	defer e.probe.recorder.mu.Unlock()
	e.probe.recorder.replacements = append(e.probe.recorder.replacements, replacements...)
}
