package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// defaultParallel is the number of items that a Map executes at once by default.
const defaultParallel = 16

// Map executes fn for every item, several items at once. Each item is a step of its own, in a scope that has the name of the
// Map. Map returns the results in the order of the items. The name of an item's step is the item's index, from "0", or the text
// that the option [Key] returns for the item. Use Key if the order of the items may change.
//
// By default the first failure stops the Map: items that have begun finish, no further item begins, and Map returns the
// [*StepError] of the failure. Map also returns the StepError if the run or the branch is ended before the other items have
// finished. With [Collect], every item is executed, the error of Map joins all failures, and the results of failed items are
// zero values.
func (c *Ctx) Map[In, Out any](name string, items []In, fn func(context.Context, In) (Out, error), opts ...MapOption) ([]Out, error) {
	o := mapOptions{parallel: defaultParallel}
	if err := cmp.Or(applyOptions(opts, &o), o.err); err != nil {
		return nil, fmt.Errorf("map %q: %w", name, err)
	}
	if fn == nil {
		return nil, noFunctionError("map", name)
	}
	where := callSite(0)
	names, err := itemNames(name, items, o.key)
	if err != nil {
		return nil, err
	}
	scope, counted, err := c.callScope().OpenMapScope(name, where, len(items))
	if err != nil {
		return nil, err
	}
	defer counted()
	if err := scope.CheckMapItems(names); err != nil {
		return nil, err
	}
	scope.DeferRefusedItems()
	m := mapCall[In, Out]{
		c: c.withScope(scope), callSite: where, items: items, names: names, fn: fn, options: o,
		results: make([]Out, len(items)), errs: make([]error, len(items)),
	}
	return m.executeItems()
}

// mapCall is the state of one call of Map.
type mapCall[In, Out any] struct {
	c        *Ctx
	callSite uintptr
	items    []In
	names    []string // the names of the items' steps
	fn       func(context.Context, In) (Out, error)
	options  mapOptions
	results  []Out
	errs     []error
	hasRow   []bool // which items have a row in the history; nil: none
	nextItem atomic.Int64
	stopped  atomic.Bool
	leftOut  atomic.Bool // an item was not executed, because the Map had stopped
}

// executeItems executes the items in goroutines that the run owns.
func (m *mapCall[In, Out]) executeItems() ([]Out, error) {
	var failed bool
	m.hasRow, failed = m.c.scope.FindBegunCalls(m.names)
	m.stopped.Store(failed && !m.options.collectsErrors)
	var working sync.WaitGroup
	for range min(m.options.parallel, len(m.items)) {
		i := 0
		working.Add(1)
		err := m.c.scope.Go(func() {
			for {
				if i = int(m.nextItem.Add(1)) - 1; i >= len(m.items) {
					break
				}
				if !m.stopped.Load() || m.hasRow != nil && m.hasRow[i] {
					m.executeItem(i)
				} else {
					m.leftOut.Store(true)
				}
			}
			working.Done()
		}, func(f *record.Failure) { // a panic outside of fn, such as one of decoding a record
			m.errs[i] = newStepError(m.c.scope.DisplayName(m.names[i]), f)
			m.stopped.Store(true)
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
			m.c.scope.NoteBranchSuspensionSeen()
			return nil, ErrSuspended
		}
	}
	if m.options.collectsErrors {
		m.c.scope.SettleItems(false, false)
		return m.results, joinErrors(m.errs)
	}
	failedItem := m.firstFailedItem()
	m.c.scope.SettleItems(failedItem != nil, m.leftOut.Load())
	if failedItem != nil {
		return nil, failedItem
	}
	if err := cmp.Or(m.errs...); err != nil {
		return nil, err
	}
	return m.results, nil
}

// firstFailedItem returns the error of the first item that has failed, or nil. It takes precedence over the errors of items that were refused,
// which a replay does not repeat: a replay begins none of the items that have no row if another item has failed. The error notes which other
// items have failed, so that a retry of the run executes all of them again.
func (m *mapCall[In, Out]) firstFailedItem() error {
	var first *StepError
	for _, err := range m.errs {
		switch item, failed := err.(*StepError); {
		case !failed:
		case first == nil:
			first = item
		default:
			first.otherItems = append(first.otherItems, item.Step)
		}
	}
	if first == nil {
		return nil
	}
	return first
}

func (m *mapCall[In, Out]) executeItem(i int) {
	item := func(ctx context.Context) (Out, error) { return m.fn(ctx, m.items[i]) }
	call := newDurableCall(m.c, m.names[i], store.KindStep, m.callSite, item, m.options.stepOptions)
	if call.spec.ItemNumber = i + 1; m.options.key != nil {
		call.spec.ItemKey = m.names[i]
	}
	m.results[i], m.errs[i] = call.executeCall()
	if err := m.errs[i]; err != nil && (!m.options.collectsErrors || errors.Is(err, ErrSuspended)) {
		m.stopped.Store(true)
	}
}

// itemNames returns the names of the items' steps: their indexes, or what the key function returns.
func itemNames[In any](name string, items []In, given any) ([]string, error) {
	names := make([]string, len(items))
	if given == nil {
		for i := range items {
			names[i] = strconv.Itoa(i)
		}
		return names, nil
	}
	key, err := keyFunc[In](name, given)
	if err != nil {
		return nil, err
	}
	first := make(map[string]int, len(items))
	for i, item := range items {
		names[i] = key(item)
		if j, twice := first[names[i]]; twice { // a replay could not tell which item has run
			return nil, fmt.Errorf("%w: items %d and %d of map %q both have the key %q: give each item a key of its own", ErrDuplicateStep, j, i, name, names[i])
		}
		first[names[i]] = i
	}
	return names, nil
}

// keyFunc returns the function that the option Key has set for a map.
func keyFunc[In any](name string, given any) (func(In) string, error) {
	key, ok := given.(func(In) string)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: Key of map %q is a %T, it must take the map's own items", ErrInvalidConfig, name, given)
	case key == nil:
		return nil, fmt.Errorf("%w: Key of map %q has no function", ErrInvalidConfig, name)
	}
	return key, nil
}

// MapOption configures one call of [Ctx.Map].
type MapOption func(*mapOptions)

type mapOptions struct {
	givenOptions
	parallel       int
	collectsErrors bool
	key            any
	stepOptions    []StepOption
}

const (
	optionParallel optionSet = 1 << iota
	optionCollect
	optionKey
)

// Parallel sets how many items of the Map are executed at once. The default is 16.
func Parallel(n int) MapOption {
	return func(o *mapOptions) {
		o.addOptionOnce(optionParallel, "Parallel")
		o.parallel = n
		if n < 1 {
			o.err = fmt.Errorf("%w: Parallel(%d): it must be at least 1", ErrInvalidConfig, n)
		}
	}
}

// Collect makes Map execute every item, even after some items have failed.
func Collect() MapOption {
	return func(o *mapOptions) {
		o.addOptionOnce(optionCollect, "Collect")
		o.collectsErrors = true
	}
}

// Key makes Map name the step of each item by what key returns for the item, instead of by the item's index. Map returns
// [ErrDuplicateStep] for two items with the same key. The key names the recorded result of the item: if newer code adds, removes
// or changes the Key of a Map that has recorded items, the run is held before an item is executed again; see [OnDrift].
func Key[In any](key func(In) string) MapOption {
	return func(o *mapOptions) {
		o.addOptionOnce(optionKey, "Key")
		o.key = key
	}
}

// ItemOptions sets options of the items' steps.
func ItemOptions(opts ...StepOption) MapOption {
	return func(o *mapOptions) { o.stepOptions = append(o.stepOptions, opts...) }
}
