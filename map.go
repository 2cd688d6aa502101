package durable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// defaultParallel is how many items of a Map are worked on at once unless Parallel says.
const defaultParallel = 16

// Map runs fn for every item, each as a step of its own in the scope called name, several
// at once, and answers the results in the items' order. An item's step is called by its
// place, from "0", or by what Key answers; use Key where the items' order may change.
//
// Unless Collect is given, the first failure stops it: items that have begun are let
// finish, no more begin, also when the run goes on in another process, and that *StepError is
// the error. With Collect every item is
// tried, and the error joins all failures; results of failed items are zero.
func (c *Ctx) Map[In, Out any](name string, items []In, fn func(context.Context, In) (Out, error), opts ...MapOption) ([]Out, error) {
	o := mapOptions{parallel: defaultParallel}
	for _, opt := range opts {
		opt(&o)
	}
	if o.err != nil {
		return nil, fmt.Errorf("map %q: %w", name, o.err)
	}
	if fn == nil {
		return nil, fmt.Errorf("%w: map %q has no function", ErrInvalidConfig, name)
	}
	where := site(0)
	names, err := namesOf(name, items, o.key)
	if err != nil {
		return nil, err
	}
	scope, counted, err := c.calls().Counted(name, where, len(items))
	if err != nil {
		return nil, err
	}
	defer counted()
	m := mapping[In, Out]{
		c: &Ctx{Context: scope.Context(), scope: scope, maxPayload: c.maxPayload}, where: where, items: items, names: names, fn: fn, o: o,
		results: make([]Out, len(items)), errs: make([]error, len(items)),
	}
	return m.run()
}

// mapping is one Map on its way.
type mapping[In, Out any] struct {
	c       *Ctx
	where   uintptr
	items   []In
	names   []string // of the items' steps
	fn      func(context.Context, In) (Out, error)
	o       mapOptions
	results []Out
	errs    []error
	begun   []bool // which of them have a row in history; nil: none
	next    atomic.Int64
	stop    atomic.Bool
}

// run works the items off with a few goroutines of the run's.
func (m *mapping[In, Out]) run() ([]Out, error) {
	var failed bool
	m.begun, failed = m.c.scope.Begun(m.names)
	m.stop.Store(failed && !m.o.collect)
	var working sync.WaitGroup
	for range min(m.o.parallel, len(m.items)) {
		i := 0
		working.Add(1)
		err := m.c.scope.Go(func() {
			for {
				if i = int(m.next.Add(1)) - 1; i >= len(m.items) {
					break
				}
				if !m.stop.Load() || m.begun != nil && m.begun[i] {
					m.do(i)
				}
			}
			working.Done()
		}, func(f *engine.Failure) { // what fn does wrong is its step's; a record's decoding may panic
			m.errs[i] = stepError(m.c.scope.Full(m.names[i]), f)
			m.stop.Store(true)
			working.Done()
		})
		if err != nil {
			working.Done()
			m.errs[0] = err
		}
	}
	working.Wait()
	for _, err := range m.errs {
		if errors.Is(err, ErrSuspended) {
			return nil, ErrSuspended
		}
	}
	if m.o.collect {
		return m.results, errors.Join(m.errs...)
	}
	for _, err := range m.errs {
		if err != nil {
			return nil, err
		}
	}
	return m.results, nil
}

func (m *mapping[In, Out]) do(i int) {
	call := newCall[Out](m.c, m.names[i], store.KindStep, m.o.steps)
	call.spec.Site = m.where
	call.spec.Attempt = func(ctx context.Context) (engine.Output, *engine.Failure) {
		out, err := m.fn(ctx, m.items[i])
		return call.record(out, err)
	}
	m.results[i], m.errs[i] = call.do()
	if err := m.errs[i]; err != nil && (!m.o.collect || errors.Is(err, ErrSuspended)) {
		m.stop.Store(true)
	}
}

// namesOf names the items' steps by their places, or by the key function given.
func namesOf[In any](name string, items []In, given any) ([]string, error) {
	names := make([]string, len(items))
	if given == nil {
		for i := range items {
			names[i] = strconv.Itoa(i)
		}
		return names, nil
	}
	key, ok := given.(func(In) string)
	if !ok || key == nil {
		return nil, fmt.Errorf("%w: Key of map %q is a %T, it must take the map's own items", ErrInvalidConfig, name, given)
	}
	first := make(map[string]int, len(items))
	for i, item := range items {
		names[i] = key(item)
		if j, twice := first[names[i]]; twice { // which of them ran would differ in a replay
			return nil, fmt.Errorf("%w: items %d and %d of map %q both have the key %q: give each item a key of its own", ErrDuplicateStep, j, i, name, names[i])
		}
		first[names[i]] = i
	}
	return names, nil
}

// MapOption changes one Map.
type MapOption func(*mapOptions)

type mapOptions struct {
	parallel int
	collect  bool
	key      any
	steps    []StepOption
	given    given
	err      error
}

const (
	givenParallel given = 1 << iota
	givenCollect
	givenKey
)

func (o *mapOptions) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// Parallel is how many items are worked on at once. Unless given: 16.
func Parallel(n int) MapOption {
	return func(o *mapOptions) {
		o.fail(o.given.once(givenParallel, "Parallel"))
		o.parallel = n
		if n < 1 {
			o.err = fmt.Errorf("%w: Parallel(%d): it must be at least 1", ErrInvalidConfig, n)
		}
	}
}

// Collect tries every item, whatever fails.
func Collect() MapOption {
	return func(o *mapOptions) {
		o.fail(o.given.once(givenCollect, "Collect"))
		o.collect = true
	}
}

// Key names each item's step by the item itself, not by its place. Two items with one key
// are ErrDuplicateStep.
func Key[In any](key func(In) string) MapOption {
	return func(o *mapOptions) {
		o.fail(o.given.once(givenKey, "Key"))
		o.key = key
	}
}

// EachStep gives options to the steps of the items.
func EachStep(opts ...StepOption) MapOption {
	return func(o *mapOptions) { o.steps = append(o.steps, opts...) }
}
