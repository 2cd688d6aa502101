package durable_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The place of a run says whether a bound of its key holds the run back, or other runs of the key that wait before it.
func TestThePlaceOfARunTellsWhatHoldsBackItsKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("go") })
		e := engineOn(t, s, w)
		for queue, settings := range map[string]durable.QueueSettings{
			"one at a time": {MaxInProgressPerKey: 1},
			"one an hour":   {RatePerKey: durable.QueueRate{Count: 1, Period: time.Hour}},
		} {
			if err := e.SetQueue(ctx, queue, settings); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"begins", "first", "second"} {
				orFail(w.Start(ctx, e, "", durable.ID(id+" "+queue), durable.InQueue(queue), durable.GroupKey("ada")))(t)
			}
		}
		running(t, e)
		for _, queue := range []string{"one at a time", "one an hour"} {
			for id, want := range map[string]string{
				"first":  "(key ada, 0 before it, its key has reached a bound)",
				"second": "(key ada, 1 before it, behind others of its key)",
			} {
				var place *durable.QueuePlace
				arrived := poll(ctx, func() bool {
					place = orFail(e.Get(ctx, id+" "+queue))(t).Place
					return place.State == durable.PlaceBehindKey
				})
				if !arrived || !strings.HasSuffix(place.String(), want) {
					t.Errorf("%s, the %s run that waits %q, want %q", queue, id, place, want)
				}
			}
		}
		for _, q := range orFail(e.Queues(ctx))(t) {
			if q.BlockedBy != durable.BlockedByKey {
				t.Errorf("queue %q, whose waiting runs are held back by a bound of their key, is blocked by %q", q.Name, q.BlockedBy)
			}
		}
	})
}
