package durable_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Get tells what a run waits for that its key does not let begin yet, also while it is paused, and in a queue with settings.
func TestGetTellsWhichRunAndKeyARunWaitsFor(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		j := newJourney()
		client := engineOn(t, s, j)
		if err := client.SetQueue(ctx, "imports", durable.QueueSettings{MaxExecuting: 1}); err != nil {
			t.Fatal(err)
		}
		replace := durable.Singleton("tenant 1", durable.SingletonReplace)
		live := orFail(j.Start(ctx, client, "live", replace, durable.ID("live")))(t)
		stop := running(t, engineOn(t, s, j))
		waitFor(t, func() bool { return orFail(client.Get(ctx, "live"))(t).Status == durable.StatusWaiting })
		stop() // so that nobody executes the compensation of the live run
		wait := orFail(j.Start(ctx, client, "waits", replace, durable.InQueue("imports")))(t)
		quiet := orFail(j.Start(ctx, client, "quiet", durable.Debounce("page-3", time.Hour, 24*time.Hour)))(t)
		if info := orFail(client.Get(ctx, live.ID()))(t); info.KeyWait != nil {
			t.Errorf("the live run: %+v", info.KeyWait)
		}
		const text = `waits for the end of run "live", which has its singleton key "tenant 1"`
		check := func(what string) {
			t.Helper()
			info := orFail(client.Get(ctx, wait.ID()))(t)
			if w := info.KeyWait; w == nil || w.Kind != "singleton" || w.Key != "tenant 1" || w.Live != "live" || w.String() != text || !w.Until.IsZero() {
				t.Errorf("%s: %+v", what, w)
			}
			if info.Place == nil || !strings.Contains(info.Place.String(), "imports") {
				t.Errorf("%s: place %v", what, info.Place)
			}
		}
		check("a run that waits")
		if info := orFail(client.Get(ctx, wait.ID()))(t); !strings.Contains(info.Place.String(), text) {
			t.Errorf("its place: %v", info.Place)
		}
		if _, err := client.Pause(ctx, wait.ID()); err != nil {
			t.Fatal(err)
		}
		check("a run that waits and is paused")
		if w := orFail(client.Get(ctx, quiet.ID()))(t).KeyWait; w == nil || w.Kind != "debounce" || w.Key != "page-3" || w.Live != "" ||
			time.Until(w.Until) < 30*time.Minute || !strings.Contains(w.String(), `debounce key "page-3"`) {
			t.Errorf("a debounced run: %+v", w)
		}
		late := orFail(j.Start(ctx, client, "late", replace, durable.Delay(time.Hour)))(t)
		if w := orFail(client.Get(ctx, late.ID()))(t).KeyWait; w == nil || w.Live != "live" || w.Until.IsZero() || !strings.Contains(w.String(), "and until 2") {
			t.Errorf("a run with a delay that waits: %+v", w)
		}
		if w := orFail(client.Get(ctx, wait.ID()))(t).KeyWait; w != nil && w.Key != "" {
			t.Errorf("a run that was replaced: %+v", w)
		}
	})
}

// Without a worker, starts give a debounced run their input until its longest time is over. The first start after that releases the
// run, and the next start creates another.
func TestWithoutAWorkerAStartReleasesADebouncedRunWhoseTimeIsOver(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		j := newJourney()
		client := engineOn(t, s)
		start := func(input string, atMost time.Duration) *durable.Run[string] {
			t.Helper()
			return orFail(j.Start(ctx, client, input, durable.Debounce("page-3", atMost, atMost)))(t)
		}
		first, second := start("first", time.Hour), start("second", time.Hour)
		if info := orFail(client.Get(ctx, first.ID()))(t); second.ID() != first.ID() || info.KeyWait == nil || info.Status != durable.StatusPending {
			t.Errorf("a start within the time leads to run %s, want %s: %+v", second.ID(), first.ID(), info)
		}
		third := start("third", time.Microsecond)
		info := orFail(client.Get(ctx, first.ID()))(t)
		if third.ID() != first.ID() || info.KeyWait != nil || info.WakeAt.IsZero() || string(info.Input) != `"third"` {
			t.Errorf("a start after the time leads to run %s, want %s: %+v", third.ID(), first.ID(), info)
		}
		if fourth := start("fourth", time.Hour); fourth.ID() == first.ID() {
			t.Error("a start after the release leads to the same run")
		}
	})
}
