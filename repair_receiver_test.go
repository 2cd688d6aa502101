package durable_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A repair releases the signals of the receives that it drops, and no signal of an earlier generation, whatever the names of its branches and
// receives are.
func TestARepairReleasesNoSignalOfAnEarlierGeneration(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("account", func(c *durable.Ctx, sum int) (int, error) {
			if sum > 0 {
				v, err := c.Receive[int]("deposit", durable.OnSignal("money"))
				if err != nil {
					return 0, err
				}
				return sum + v, c.Do("book", func(context.Context) error { return nil })
			}
			sum, err := c.Go("deposit", func(c *durable.Ctx) (sum int, err error) {
				for i := range 3 {
					v, err := c.Receive[int](fmt.Sprintf("#%d", i), durable.OnSignal("money"))
					if err != nil {
						return 0, err
					}
					sum += v
				}
				return sum, nil
			}).Wait()
			if err != nil {
				return 0, err
			}
			return 0, c.ContinueAsNew(sum)
		})
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(within(t), e, 0, durable.ID("a")))(t)
		for _, v := range []int{1, 20, 300, 4000} {
			if err := e.Signal(within(t), "a", "money", v); err != nil {
				t.Fatal(err)
			}
		}
		if got := orFail(run.Result(within(t)))(t); got != 4321 {
			t.Fatalf("the balance is %d", got)
		}
		orFail(e.Rerun(within(t), "a", "deposit"))(t)
		awaitStatus(t, e, "a", durable.StatusCompleted)
		if info := orFail(e.Get(within(t), "a"))(t); string(info.Output) != "4321" || len(info.Unreceived) > 0 {
			t.Errorf("after the repair, the balance is %s, and %v are not received", info.Output, info.Unreceived)
		}
	})
}
