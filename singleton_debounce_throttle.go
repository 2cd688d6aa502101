package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// MaxThrottle is the largest number of starts that [Throttle] allows per period.
const MaxThrottle = startkey.MaxThrottle

// SingletonPolicy determines what a start with [Singleton] does while a run with the same key is live.
type SingletonPolicy string

// The values of SingletonPolicy.
const (
	// SingletonJoin starts no run. A start with SingletonJoin returns the handle of the live run, or of the run that waits to
	// replace the live run.
	SingletonJoin SingletonPolicy = SingletonPolicy(startkey.Join)
	// SingletonRefuse starts no run and returns a [*LiveError], which names the live run.
	SingletonRefuse SingletonPolicy = SingletonPolicy(startkey.Refuse)
	// SingletonReplace cancels the live run as [Engine.Cancel] does, and starts a run that begins when the live run has ended,
	// compensations included. At most one run per key waits for the end of the live run. If another start replaces the waiting
	// run, the waiting run ends as cancelled.
	SingletonReplace SingletonPolicy = SingletonPolicy(startkey.Replace)
)

// Singleton allows at most one live run of the workflow with the given key. A run is live from its start to its end, even while
// the run waits, is paused, or is delayed. Keys are names of up to 512 bytes. The same key of two workflows is two keys, but
// starts of one workflow in different queues share a key. Runs that were started without Singleton do not count as live runs
// with the key. If two processes start a run with the same key at the same time, at most one of the two starts creates a live
// run.
//
// If no SingletonPolicy is given, a start while a run with the same key is live joins the live run: see [SingletonJoin]. If a
// start joins a live run, the input of the start is not used.
//
// If the option [ID] is given too, and a run with the ID exists, the start returns that run, as a start without Singleton does.
// A run that waits for the end of another run is due when its [Delay] is over and the other run has ended. The times of
// [Timeout] and [StartBy] of the waiting run begin when the waiting run is due.
//
// A start returns [ErrInvalidName] if the key is empty or too long. Children and [Workflow.StartMany] refuse Singleton with
// [ErrInvalidConfig].
func Singleton(key string, policy ...SingletonPolicy) StartOption {
	return func(o *startOptions) {
		s := o.setStartKey(store.StartKeySingleton, "Singleton", key)
		s.SingletonPolicy = startkey.Join
		if len(policy) > 0 {
			s.SingletonPolicy = startkey.SingletonPolicy(policy[0])
		}
		switch {
		case len(policy) > 1:
			o.setFirstError(fmt.Errorf("%w: Singleton has %d values of SingletonPolicy: give it one", ErrInvalidConfig, len(policy)))
		case s.SingletonPolicy != startkey.Join && s.SingletonPolicy != startkey.Refuse && s.SingletonPolicy != startkey.Replace:
			o.setFirstError(fmt.Errorf("%w: Singleton with the SingletonPolicy %.40q: use SingletonJoin, SingletonRefuse or SingletonReplace", ErrInvalidConfig, s.SingletonPolicy))
		}
	}
}

// Debounce combines starts in quick succession into one run, which gets the input of the last start. A debounced run begins
// when no further start with the same key has come for the duration quiet, but at the latest atMost after the first start. The
// durations quiet and atMost must be positive; if quiet is longer than atMost, atMost is used for both. All combined starts
// return the handle of the one run. A debounced run has the queue, priority, [StartBy] and tags of the first start, and the
// input and [Timeout] of the last start. StartBy and Timeout begin when the run is due. Once a debounced run is due, the next
// start with the same key begins another run. The rules for keys are those of [Singleton].
//
// A start that is repeated, because the reply of the database was lost or because its step is executed again, never replaces
// the input of a newer start.
//
// A start with Debounce and [ID] or [Delay] returns [ErrInvalidConfig], because Debounce makes one run of several starts, and
// sets the time at which the run is due. Children and [Workflow.StartMany] refuse Debounce with ErrInvalidConfig, too.
func Debounce(key string, quiet, atMost time.Duration) StartOption {
	return func(o *startOptions) {
		s := o.setStartKey(store.StartKeyDebounce, "Debounce", key)
		s.QuietPeriod, s.AtMost = o.checkStartKeyDuration("Debounce", "quiet", quiet), o.checkStartKeyDuration("Debounce", "atMost", atMost)
	}
}

// Throttle allows at most n starts with the key in any window as long as period. A start beyond the n allowed starts creates no
// run and returns a [*ThrottledError], which tells when the next start is possible. The argument n is at least 1 and at most
// [MaxThrottle]. The rules for keys are those of [Singleton]. If the [ID] of a start belongs to an existing run, the start
// returns that run and does not count towards n again. Children and [Workflow.StartMany] refuse Throttle with
// [ErrInvalidConfig].
func Throttle(key string, n int, period time.Duration) StartOption {
	return func(o *startOptions) {
		s := o.setStartKey(store.StartKeyThrottle, "Throttle", key)
		s.Count, s.Period = n, o.checkStartKeyDuration("Throttle", "period", period)
		if n < 1 || n > MaxThrottle {
			o.setFirstError(fmt.Errorf("%w: Throttle of %d starts: n must be between 1 and %d; for more starts, shorten the period", ErrInvalidConfig, n, MaxThrottle))
		}
	}
}

// startKeyOptions are the names of the options with a start key.
var startKeyOptions = map[store.StartKeyKind]string{store.StartKeySingleton: "Singleton", store.StartKeyDebounce: "Debounce", store.StartKeyThrottle: "Throttle"}

// recordStartKeyOption records the option. It returns ErrInvalidConfig if the start has another option with a start key.
func (o *startOptions) recordStartKeyOption(option string) error {
	if o.startKeySpec != nil && startKeyOptions[o.startKeySpec.Kind] != option {
		return fmt.Errorf("%w: the options %s and %s are given together: leave one of them out", ErrInvalidConfig, startKeyOptions[o.startKeySpec.Kind], option)
	}
	return o.given.addOnce(optionStartKey, option)
}

// setStartKey sets the start key.
func (o *startOptions) setStartKey(kind store.StartKeyKind, option, key string) *startkey.Spec {
	o.setFirstError(o.recordStartKeyOption(option))
	if err := naming.Check("key", key); err != nil {
		o.setFirstError(fmt.Errorf("%s: %w", option, err))
	}
	o.startKeySpec = &startkey.Spec{Kind: kind, Key: key}
	return o.startKeySpec
}

// maxStartKeyDuration bounds the durations of starts with a start key.
const maxStartKeyDuration = 366 * 24 * time.Hour

// checkStartKeyDuration checks a duration, and returns it in whole microseconds.
func (o *startOptions) checkStartKeyDuration(option, field string, d time.Duration) time.Duration {
	if d < time.Microsecond || d > maxStartKeyDuration {
		o.setFirstError(fmt.Errorf("%w: %s with a %s of %v: it must be between 1µs and %v", ErrInvalidConfig, option, field, d, maxStartKeyDuration))
	}
	return d.Truncate(time.Microsecond)
}

// applyStartKey checks the options that do not go together, and sets the start key of the request.
func (o *startOptions) applyStartKey(request *engine.StartRequest) error {
	if request.StartKey = o.startKeySpec; o.startKeySpec == nil || o.startKeySpec.Kind != store.StartKeyDebounce {
		return nil
	}
	if o.given&(optionID|optionDelay) != 0 {
		return fmt.Errorf("%w: the option Debounce is given beside ID or Delay: leave those out, because several starts become one run, whose time Debounce sets", ErrInvalidConfig)
	}
	return nil
}

// checkNoStartKey returns ErrInvalidConfig with the reason if the start has a start key.
func (o *startOptions) checkNoStartKey(reason string) error {
	if o.startKeySpec == nil {
		return nil
	}
	return fmt.Errorf("%w: the options Singleton, Debounce and Throttle are not possible here: %s", ErrInvalidConfig, reason)
}

// startWithStartKey makes a start with Singleton, Debounce or Throttle.
func (w *Workflow[I, O]) startWithStartKey(ctx context.Context, e *Engine, request *engine.StartRequest, o *startOptions) (*Run[O], error) {
	var started engine.StartResult
	var err error
	if o.insert != nil {
		started, err = e.inner.StartWithStartKeyInTx(ctx, request, func(c *store.StartKeyChangeRequest) error { return o.insertWithStartKey(ctx, e.inner.RawStore(), c) })
	} else {
		started, err = e.inner.StartWithStartKey(ctx, request)
	}
	if err == nil {
		err = convertLiveOrThrottledError(started.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("start workflow %q: %w", w.name, err)
	}
	return newRun[O](e, &started.Run), nil
}

// LiveError is returned by a start with [Singleton] and [SingletonRefuse] while a run with the same key is live. A LiveError
// wraps [ErrLive]. [Ctx.Start] returns a [*StepError] instead, which wraps ErrLive and names the live run in its text.
type LiveError struct {
	Workflow string
	Key      string
	ID       string // the ID of the live run
	RunID    string // the UUID of the live run
	text     string
}

// Error returns a text that names the key and the live run.
func (e *LiveError) Error() string { return e.text }

// Unwrap returns [ErrLive].
func (e *LiveError) Unwrap() error { return ErrLive }

// ThrottledError is returned by a start with [Throttle] if no further start with the key is allowed in the period. A
// ThrottledError wraps [ErrThrottled].
type ThrottledError struct {
	Workflow string
	Key      string
	Until    time.Time // the time from which the next start is possible, if no other start comes first
	text     string
}

// Error returns a text with the key and the time.
func (e *ThrottledError) Error() string { return e.text }

// Unwrap returns [ErrThrottled].
func (e *ThrottledError) Unwrap() error { return ErrThrottled }

// convertLiveOrThrottledError converts the errors of package startkey to the public ones, and returns other errors unchanged.
func convertLiveOrThrottledError(err error) error {
	if live, ok := errors.AsType[*startkey.LiveError](err); ok {
		return &LiveError{Workflow: live.Workflow, Key: live.Key, ID: live.ID, RunID: live.RunID, text: live.Error()}
	}
	if skipped, ok := errors.AsType[*startkey.SkippedError](err); ok {
		return &ThrottledError{Workflow: skipped.Workflow, Key: skipped.Key, Until: skipped.Until, text: skipped.Error()}
	}
	return err
}
