package durabletest

import (
	"context"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Replacement is done in place of steps with a name. It is an Option, and what Engine.Use
// takes. Of several for one step the last is asked first, and a FailFirst that lets the
// step go on leaves it to the one before.
type Replacement struct {
	name  string
	do    func(ctx context.Context, c engine.Call, next func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure)
	calls atomic.Int64
}

func (r *Replacement) apply(set *settings) {
	set.replacers = append(set.replacers, r)
	set.limit("a Replacement", "NewWith", "CrashEverywhere") // Replay calls no step's function
}

func (r *Replacement) matches(c engine.Call) bool { return matches(r.name, c.Name) }

// Calls is how often it was done.
func (r *Replacement) Calls() int { return int(r.calls.Load()) }

// Stub calls fn in place of the function of the step called name. What it returns is
// recorded as the step's own result would be, so T must be encoded as that is; options of
// the step, such as Retry, hold for it. durable.Attempt and durable.IdempotencyKey work in it.
//
// A name is a step's ("charge"), or one with its scope ("orders/7"), or a pattern of
// path.Match ("orders/*"). Compensations and transactions are steps too; a stub of a
// transaction writes nothing but its checkpoint.
func Stub[T any](name string, fn func(ctx context.Context) (T, error)) *Replacement {
	r := &Replacement{name: name}
	r.do = func(ctx context.Context, _ engine.Call, _ func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure) {
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
	r.do = func(_ context.Context, c engine.Call, next func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure) {
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
	e.node.log.mu.Lock()
	defer e.node.log.mu.Unlock()
	e.node.log.replacers = append(e.node.log.replacers, replacements...)
}
