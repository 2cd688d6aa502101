package durable_test

import (
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run that a renamed Map holds records nothing of the new Map, however many runs commit beside it, so a Resume under the same code holds it
// again before an item is executed a second time.
func TestAResumedRunIsHeldAgainByARenamedMap(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const runs = 60
		x := new(stepCounts)
		before, after := waits(x.mapOf("send", "a", "b"), x.steps("end")), waits(x.mapOf("deliver", "a", "b"), x.steps("end"))
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
					if row.Name == "deliver" {
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
}
