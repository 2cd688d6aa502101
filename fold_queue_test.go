package durable_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A queue that is full or closed refuses the starts that would create a run. Those that fold with another take effect: the last input
// of a debounced run is not lost because the run itself fills the queue. A refused start cancels no run and counts in no throttle.
func TestAFullOrClosedQueueRefusesOnlyStartsThatCreateARun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		client := engineOn(t, s)
		start := func(in int, key durable.StartOption) (*durable.Run[int], error) {
			return w.Start(ctx, client, in, durable.InQueue("mail"), key)
		}
		set := func(settings durable.QueueSettings) {
			t.Helper()
			if err := client.SetQueue(ctx, "mail", settings); err != nil {
				t.Fatal(err)
			}
		}
		join, refuse, replace := durable.Singleton("s"), durable.Singleton("s", durable.SingletonRefuse), durable.Singleton("s", durable.SingletonReplace)
		debounce := durable.Debounce("d", time.Hour, time.Hour)
		set(durable.QueueSettings{Depth: 2})
		live := orFail(start(1, join))(t)
		debounced := orFail(start(1, debounce))(t)
		for want, settings := range map[error]durable.QueueSettings{durable.ErrQueueFull: {Depth: 2}, durable.ErrQueueClosed: {Closed: true}} {
			set(settings)
			if got, err := start(1, join); err != nil || got.ID() != live.ID() {
				t.Errorf("%v: a start that joins: %v", want, err)
			}
			if _, err := start(1, refuse); !errors.Is(err, durable.ErrLive) {
				t.Errorf("%v: a start with SingletonRefuse: %v", want, err)
			}
			if got, err := start(7, debounce); err != nil || got.ID() != debounced.ID() {
				t.Errorf("%v: a further debounced start: %v", want, err)
			}
			for what, key := range map[string]durable.StartOption{
				"replaces": replace, "has a new key": durable.Singleton("new"), "is debounced with a new key": durable.Debounce("new", time.Hour, time.Hour),
				"is throttled": durable.Throttle("k", 1, time.Hour),
			} {
				if _, err := start(1, key); !errors.Is(err, want) {
					t.Errorf("a start that %s: %v, want %v", what, err, want)
				}
			}
		}
		if info := orFail(client.Get(ctx, live.ID()))(t); info.Cancellation != nil {
			t.Errorf("a refused start has cancelled the live run: %+v", info.Cancellation)
		}
		set(durable.QueueSettings{})
		orFail(start(1, durable.Throttle("k", 1, time.Hour)))(t)
	})
}
