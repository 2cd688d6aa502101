package durable_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A log line that a recorded call of its branch follows is not written again, however often the run is loaded into memory. A line that may
// be new is written.
func TestLinesBetweenRecordedCallsAreWrittenOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			c.Logger().Info("at the start")
			charge := c.Go("charge", func(c *durable.Ctx) (int, error) {
				if err := c.Do("charge", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				c.Logger().With("by", "card").Info("charged")
				return c.Receive[int]("settled")
			})
			pack := c.Go("pack", func(c *durable.Ctx) (int, error) {
				for _, box := range []string{"one", "two", "three"} {
					if _, err := c.Receive[int](box); err != nil {
						return 0, err
					}
					c.Logger().Info("packed " + box)
					if err := c.Do("seal "+box, func(context.Context) error { return nil }); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
			_, err := durable.All(charge, pack)
			if err != nil {
				return 0, err
			}
			c.Logger().Info("at the end")
			return 0, nil
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}})
		client := engineWith(t, s, durable.Config{})
		run := read(w.Start(within(t), client, 1, durable.ID("run")))(t)
		for _, signal := range []string{"one", "two", "settled", "three"} {
			stop := running(t, engineWith(t, s, cfg))
			awaitStatus(t, client, "run", durable.StatusWaiting)
			if err := client.Signal(within(t), "run", signal, 1); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Unreceived[signal] == 0 })
			if signal != "three" {
				awaitStatus(t, client, "run", durable.StatusWaiting)
			} else if _, err := run.Result(within(t)); err != nil {
				t.Fatal(err)
			}
			stop()
		}
		for _, line := range []string{"at the start", "charged", "packed one", "packed two", "packed three", "at the end"} {
			if n := strings.Count(log.String(), `"msg":"`+line+`"`); n != 1 {
				t.Errorf("%q was written %d times, want once, in:\n%s", line, n, log)
			}
		}
	})
}
