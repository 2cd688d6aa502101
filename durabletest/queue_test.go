package durabletest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// Runs in a queue with settings begin at the times of the test's clock, also if several engines admit runs and one of them has set the
// queue. What must end without a place ends at its time.
func TestQueuesFollowTheClock(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, defs(begun), append(opts, noon)...)
		e.FreezeClock()
		other := e.StartAnother(begun)
		must(t, other.SetQueue(quickly(t), "mail", durable.QueueSettings{MaxInProgressPerKey: 1, RatePerKey: durable.QueueRate{Count: 1, Period: time.Minute}}))
		e.Advance(0) // every engine knows the queue
		start := func(in, key string, opts ...durable.StartOption) *durable.Run[string] {
			t.Helper()
			run, err := begun.Start(quickly(t), e.Engine, in, append(opts, durable.InQueue("mail"), durable.GroupKey(key))...)
			must(t, err)
			e.Advance(time.Second)
			return run
		}
		runs := []*durable.Run[string]{start("a", "k"), start("b", "k"), start("c", "other"), start("d", "k")}
		late := start("late", "k", durable.StartBy(30*time.Second))
		e.Advance(3 * time.Minute)
		var got []string
		for _, run := range runs {
			got = append(got, resultOf(t, run))
		}
		if want := []string{"a 12:00:00", "b 12:01:00", "c 12:00:02", "d 12:02:00"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		info, err := e.Get(quickly(t), late.ID())
		must(t, err)
		if info.Status != durable.StatusExpired || info.EndedAt.Format(time.TimeOnly) != "12:00:34" {
			t.Errorf("the run that had to begin by 12:00:34 is %s since %s", info.Status, info.EndedAt.Format(time.TimeOnly))
		}
		queues, err := e.Queues(quickly(t))
		must(t, err)
		if len(queues) != 1 || queues[0].QueueUse != (durable.QueueUse{}) {
			t.Errorf("the queues are %+v", queues)
		}
	})
}

// The last input of a debounced run is not lost because the run itself fills its queue.
func TestADebouncedRunInAFullQueueGetsTheLastInput(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, defs(begun), append(opts, noon)...)
		e.FreezeClock()
		must(t, e.SetQueue(quickly(t), "mail", durable.QueueSettings{Depth: 1}))
		var run *durable.Run[string]
		for _, in := range []string{"first", "last"} {
			var err error
			run, err = begun.Start(quickly(t), e.Engine, in, durable.InQueue("mail"), durable.Debounce("k", time.Minute, time.Hour))
			must(t, err)
		}
		e.Advance(2 * time.Minute)
		if got, want := resultOf(t, run), "last 12:01:00"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// A run that starts a child with a group key in a queue without settings is held until the queue has settings, for however long. That
// counts towards no crash, so that the run is never paused for it, and continues by itself.
func TestAParentWaitsForTheSettingsOfAQueue(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		parent := durable.Define("parent", func(c *durable.Ctx, in string) (string, error) {
			return c.Child("kid", begun, in, durable.InQueue("mail"), durable.GroupKey("k"))
		})
		e := durabletest.NewWithOptions(t, defs(parent, begun), append(opts, noon)...)
		e.FreezeClock()
		run, err := parent.Start(quickly(t), e.Engine, "a", durable.ID("p"))
		must(t, err)
		e.Advance(30 * time.Minute)
		info, err := e.Get(quickly(t), "p")
		must(t, err)
		const want = `start child "kid": durable: invalid configuration: workflow "begun" is started with GroupKey("k") in queue "mail", which has no settings: create them with SetQueue`
		if info.Status != durable.StatusPending || info.Crashes != 0 || !strings.HasPrefix(info.Reason, want) {
			t.Errorf("after half an hour, the parent is %s after %d crashes, because %s", info.Status, info.Crashes, info.Reason)
		}
		must(t, e.SetQueue(quickly(t), "mail", durable.QueueSettings{MaxExecuting: 1}))
		e.UnfreezeClock()
		if got, want := resultOf(t, run), "a 12:30:30"; got != want {
			t.Errorf("the parent returned %q, want %q", got, want)
		}
	})
}
