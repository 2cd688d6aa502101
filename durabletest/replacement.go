package durabletest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
)

// Replacement replaces the functions of the steps that have a given name. A Replacement is an [Option] and an argument of
// [Engine.Use]. If several replacements match a step, the replacement that was given last is called. When a [FailFirst] has
// made its attempts fail, later attempts call the replacement that was given before the FailFirst.
type Replacement struct {
	name      string
	attempt   func(ctx context.Context, c engine.HookedCall, next func() (engine.AttemptOutput, *record.Failure)) (engine.AttemptOutput, *record.Failure)
	callCount atomic.Int64

	stepWasCalled atomic.Bool // whether a step with the name was called
	optional      atomic.Bool
}

func (r *Replacement) applyToSettings(set *testSettings) {
	set.replacements = append(set.replacements, r)
	set.restrictOption("a Replacement", "NewWithOptions", "CrashEverywhere") // Replay calls no functions of steps
}

func (r *Replacement) matches(c engine.HookedCall) bool { return matchesName(r.name, c.Name) }

// Optional makes the replacement optional, so that the test does not fail if no step with its name is called. Optional returns
// the replacement.
func (r *Replacement) Optional() *Replacement {
	r.optional.Store(true)
	return r
}

// failOnUnusedReplacements fails the test for each replacement whose step was never called: its name may be misspelled, and then the
// real function is executed. It does nothing if the test has failed already, since the test may have ended early.
func failOnUnusedReplacements(t testing.TB, replacers []*Replacement, called func() []string) {
	t.Helper()
	if t.Failed() || t.Skipped() {
		return
	}
	for _, r := range replacers {
		if !r.stepWasCalled.Load() && !r.optional.Load() {
			t.Errorf("durabletest: no step %q was called, so its stub was never used; the steps called were %s: correct the name, or use Optional",
				r.name, quotedList(called()))
		}
	}
}

// quotedList returns the first names, quoted and separated by commas.
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

// CallCount returns how often the replacement was called in place of a step. For a [FailFirst], CallCount returns the number of
// attempts that the FailFirst made fail.
func (r *Replacement) CallCount() int { return int(r.callCount.Load()) }

// Stub calls fn in place of the function of the steps with the given name. The result of fn is recorded as the result of the
// step, so that T should be the type that the step returns. The function of a Do or of a compensation returns no value: to
// replace such a function, T is any, and fn returns nil as its value. The options of the step, such as Retry, apply to fn.
// durable.Attempt and durable.IdempotencyKey work in fn.
//
// The argument name is the name of a step ("charge"), a name with its scope ("orders/7"), or a pattern of path.Match
// ("orders/*"). Compensations and Tx steps are steps too. A stub of a Tx step writes nothing but its checkpoint.
//
// If no step with the name of a Stub is called by the end of the test, the test fails, and the message lists the steps that
// were called. A compensation counts as called when it is executed, not when it is registered. See [Replacement.Optional].
func Stub[T any](name string, fn func(ctx context.Context) (T, error)) *Replacement {
	r := &Replacement{name: name}
	r.attempt = func(ctx context.Context, _ engine.HookedCall, _ func() (engine.AttemptOutput, *record.Failure)) (engine.AttemptOutput, *record.Failure) {
		r.callCount.Add(1)
		v, err := fn(ctx)
		if err != nil {
			return engine.AttemptOutput{}, engine.FailureFromError(err)
		}
		b, err := engine.EncodeValue(v)
		if err != nil {
			f := engine.FailureFromError(err)
			f.Permanent = true
			return engine.AttemptOutput{}, f
		}
		return engine.AttemptOutput{Bytes: b}, nil
	}
	return r
}

// FailFirst makes the first n attempts of the steps with the given name return err without calling their functions. Later
// attempts call the steps' real functions, or the stubs in their place. FailFirst counts attempts as durable.Attempt does,
// across processes. The rules for names are those of [Stub].
func FailFirst(name string, n int, err error) *Replacement {
	r := &Replacement{name: name}
	r.attempt = func(_ context.Context, c engine.HookedCall, next func() (engine.AttemptOutput, *record.Failure)) (engine.AttemptOutput, *record.Failure) {
		if int(c.Attempt) > n {
			return next()
		}
		r.callCount.Add(1)
		return engine.AttemptOutput{}, engine.FailureFromError(err)
	}
	return r
}

// Use replaces the functions of steps from now on, in this engine and in the engines of [Engine.StartAnother].
func (e *Engine) Use(replacements ...*Replacement) {
	e.hooks.recorder.mu.Lock()
	defer e.hooks.recorder.mu.Unlock()
	e.hooks.recorder.replacements = append(e.hooks.recorder.replacements, replacements...)
}
