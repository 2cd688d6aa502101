package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run that a renamed or moved Map holds records nothing of the new Map, however many runs commit beside it, so a Resume under the same code holds it
// again before an item is executed a second time, and code that fits misses no call.
func TestAResumedRunIsHeldAgainByANewMap(t *testing.T) {
	for name, test := range map[string]struct {
		after func(x *stepCounts) func(c *durable.Ctx) error
		row   string
	}{
		"renamed": {func(x *stepCounts) func(c *durable.Ctx) error { return x.mapOf("deliver", "a", "b") }, "deliver"},
		"moved":   {func(x *stepCounts) func(c *durable.Ctx) error { return inAwaitedBranch(x.mapOf("send", "a", "b")) }, "side/send"},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				const runs = 60
				x := new(stepCounts)
				before, after := waits(x.mapOf("send", "a", "b"), x.steps("end")), waits(test.after(x), x.steps("end"))
				stop := atVersion(t, s, "v1", before)
				client := engineOn(t, s)
				ids := make([]string, runs)
				for i := range ids {
					ids[i] = fmt.Sprint("run", i)
					orFail(before.Start(within(t), client, 0, durable.ID(ids[i])))(t)
				}
				for _, id := range ids {
					awaitStatus(t, client, id, durable.StatusWaiting)
				}
				stop()
				for _, id := range ids {
					if err := client.Signal(within(t), id, "go", 1); err != nil {
						t.Fatal(err)
					}
				}
				atVersion(t, s, "v2", after)
				for range 3 {
					for _, id := range ids {
						waitFor(t, func() bool {
							info := read(client.Get(within(t), id))(t)
							return info.Diverged || info.Status == durable.StatusCompleted
						})
						for _, row := range read(client.History(within(t), id))(t) {
							if row.Name == test.row {
								t.Errorf("run %q has recorded the new Map", id)
							}
						}
					}
					for _, id := range ids {
						orFail(client.Resume(within(t), id))(t)
					}
				}
				if want := fmt.Sprintf("map[a:%d b:%d]", runs, runs); x.String() != want {
					t.Errorf("executed %s, want %s", x, want)
				}
			})
		})
	}
}

// A Map whose items are all refused records nothing, whatever else is committed meanwhile.
func TestAMapWhoseItemsAreRefusedRecordsNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("refused", func(c *durable.Ctx, _ int) (int, error) {
			for i := range 10 {
				_, err := c.Map(fmt.Sprint("send", i), []int{0, 1}, func(_ context.Context, item int) (int, error) { return item, nil }, durable.ItemOptions(durable.AttemptTimeout(-1)))
				if !errors.Is(err, durable.ErrInvalidConfig) {
					return 0, fmt.Errorf("the Map returned %w", err)
				}
				if err := c.Do(fmt.Sprint("after", i), func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		var ids []string
		for i := range 20 {
			ids = append(ids, fmt.Sprint("run", i))
			orFail(w.Start(within(t), e, 0, durable.ID(ids[i])))(t)
		}
		for _, id := range ids {
			orFail(w.Call(within(t), e, 0, durable.ID(id)))(t)
			for _, row := range read(e.History(within(t), id))(t) {
				if row.Kind == durable.KindMap {
					t.Errorf("run %q has recorded the Map %q", id, row.Name)
				}
			}
		}
	})
}
