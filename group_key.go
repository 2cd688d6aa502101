package durable

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// MaxWeight is the largest [Weight].
const MaxWeight = store.MaxWeight

// GroupKey sets the key of the run within its queue, for example a tenant or a customer. The bounds MaxExecutingPerKey, MaxInProgressPerKey and
// RatePerKey of the queue apply to each key separately, and among runs of one priority the keys take turns: the many runs of one
// key delay the first run of another key by one turn. A child in the queue of its parent has the parent's key, unless its start
// names another. The option is [Weight].
//
// The queue needs settings, from [Engine.SetQueue] or Config.QueueSettings; otherwise the start returns [ErrInvalidConfig]. A
// worker records Config.QueueSettings when it starts, and a client never does: start a worker first, or call SetQueue. A
// child whose queue has no settings is held with that reason (see [ErrHeld]) until the queue has some. The key is a text of 1
// to 512 bytes without control characters.
func GroupKey(key string, opts ...GroupKeyOption) StartOption {
	return func(o *startOptions) {
		o.fail(o.given.addOnce(optionGroupKey, "GroupKey"))
		o.fail(naming.Check("group key", key))
		g := groupKeyOptions{weight: 1}
		o.fail(applyOptions(opts, &g))
		o.fail(g.err)
		o.groupKey, o.weight = key, int32(g.weight)
	}
}

// GroupKeyOption configures a [GroupKey].
type GroupKeyOption func(*groupKeyOptions)

type groupKeyOptions struct {
	weight int
	given  optionSet
	err    error
}

// Weight sets how many turns the group key of the run gets for each turn of a key with weight 1. It is from 1 to [MaxWeight]. The
// default is 1. Give all runs of a key the same weight.
func Weight(n int) GroupKeyOption {
	return func(o *groupKeyOptions) {
		err := o.given.addOnce(1, "Weight")
		if err == nil && (n < 1 || n > MaxWeight) {
			err = fmt.Errorf("%w: Weight(%d): it must be from 1 to %d", ErrInvalidConfig, n, MaxWeight)
		}
		if o.err == nil {
			o.err = err
		}
		o.weight = n
	}
}

// StartBy sets how long a due run may wait to begin, by the database's clock. The time that a run waits for its start key, see
// [Singleton] and [Debounce], does not count. A run that has not begun by then expires as with
// [Timeout]: its function is never called, and it ends as [StatusExpired] with [ErrTimeout]. In a queue without settings, it is
// ended by the worker that claims it, so only when a slot is free. Runs expire even while their queue is paused. d must be
// positive.
func StartBy(d time.Duration) StartOption {
	return func(o *startOptions) {
		o.fail(o.given.addOnce(optionStartBy, "StartBy"))
		o.startBy = d
		if d <= 0 {
			o.fail(fmt.Errorf("%w: StartBy of %v: it must be positive", ErrInvalidConfig, d))
		}
	}
}
