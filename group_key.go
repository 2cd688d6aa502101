package durable

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// MaxKeyWeight is the largest [KeyWeight].
const MaxKeyWeight = store.MaxWeight

// GroupKey sets the key of the run within its queue, for example a tenant or a customer. The bounds MaxExecutingPerKey,
// MaxInProgressPerKey and RatePerKey of the queue apply to each key separately. Among the runs of one priority, the group keys
// take turns, so that many runs of one key delay the first run of another key by one turn only. A child in the queue of its
// parent has the parent's key, unless the start of the child names another key. GroupKey takes the option [KeyWeight].
//
// A start with GroupKey returns [ErrInvalidConfig] if the queue has no settings from [Engine.SetQueue] or Config.QueueSettings.
// A worker records Config.QueueSettings when it starts, but a client never does: start a worker before such a client, or call
// SetQueue. If a run starts a child with a GroupKey and the queue of the child has no settings, the run that starts the child
// is held (see [ErrHeld]), and a worker executes this parent run again every 30 seconds until the queue has settings. A hold
// because a queue has no settings does not count towards Config.MaxCrashes. A group key is a text of 1 to 512 bytes without
// control characters.
func GroupKey(key string, opts ...GroupKeyOption) StartOption {
	return func(o *startOptions) {
		o.setFirstError(o.given.addOnce(optionGroupKey, "GroupKey"))
		o.setFirstError(naming.Check("group key", key))
		g := groupKeyOptions{weight: 1}
		o.setFirstError(applyOptions(opts, &g))
		o.setFirstError(g.err)
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

// KeyWeight sets how many turns the group key of the run gets for each turn of a key with weight 1. A weight is from 1 to
// [MaxKeyWeight]; the default is 1. Give all runs of a key the same weight.
func KeyWeight(n int) GroupKeyOption {
	return func(o *groupKeyOptions) {
		err := o.given.addOnce(1, "KeyWeight")
		if err == nil && (n < 1 || n > MaxKeyWeight) {
			err = fmt.Errorf("%w: KeyWeight(%d): it must be from 1 to %d", ErrInvalidConfig, n, MaxKeyWeight)
		}
		if o.err == nil {
			o.err = err
		}
		o.weight = n
	}
}

// StartBy sets how long a due run may wait to begin, by the database's clock. The time for which a run waits because of
// [Singleton] or [Debounce] does not count. A run that has not begun within d expires as with [Timeout]: its function is never
// called, and the run ends as [StatusExpired] with [ErrTimeout]. In a queue without settings, a worker must claim an expired
// run to end it, and therefore ends the run only when a slot is free. Runs expire even while their queue is paused,
// but not as long as no live worker executes their workflow in their queue, as with Timeout. The argument d must be positive.
func StartBy(d time.Duration) StartOption {
	return func(o *startOptions) {
		o.setFirstError(o.given.addOnce(optionStartBy, "StartBy"))
		o.startBy = atLeastMicrosecond(d)
		if d <= 0 {
			o.setFirstError(fmt.Errorf("%w: StartBy of %v: it must be positive", ErrInvalidConfig, d))
		}
	}
}

// atLeastMicrosecond returns d, but a microsecond if d is positive and shorter. The database records times in microseconds, and zero
// means that there is no time limit.
func atLeastMicrosecond(d time.Duration) time.Duration {
	if d > 0 {
		return max(d, time.Microsecond)
	}
	return d
}
