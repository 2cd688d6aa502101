package durable_test

import (
	"context"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A hedge books with one of two carriers. If the first refuses, the second wins and a later failure undoes both, each repair that keeps the choice
// books with the second alone, although the compensation of the first was executed.
func TestARepairDoesNotBookWithTheLoserOfAHedge(t *testing.T) {
	for name, repair := range map[string]repairOf{
		"retry": func(e *durable.Engine, opts ...durable.ControlOption) (*durable.Repaired, error) {
			return e.Retry(within(t), "r", opts...)
		},
		"retry from": retryWith(t, durable.From("pack")),
		"fork":       forkWith(t, durable.From("pack")),
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var mu sync.Mutex
				booked, down := make(map[string]int), true
				change := func(carrier string, by int) func(context.Context) error {
					return func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						if down && carrier == "dhl" && by > 0 {
							return errDeclined
						}
						booked[carrier] = max(booked[carrier]+by, 0)
						return nil
					}
				}
				w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
					book := func(carrier string) *durable.Future[string] {
						return c.Go(carrier, func(c *durable.Ctx) (string, error) {
							if carrier == "ups" { // after the other has failed
								if _, err := c.Receive[int]("go"); err != nil {
									return "", err
								}
							}
							if err := c.Compensate("unbook", change(carrier, -1), durable.Undoes("book")); err != nil {
								return "", err
							}
							return carrier, c.Do("book", change(carrier, 1))
						})
					}
					_, carrier, err := durable.Any(c, "courier", durable.CancelLosers, book("dhl"), book("ups"))
					if err != nil {
						return "", err
					}
					return carrier, c.Do("pack", func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						if down {
							return errDeclined
						}
						return nil
					})
				})
				e := engineOn(t, s, w)
				running(t, e)
				run := orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
				waitFor(t, func() bool {
					for _, row := range historyOf(t, e, "r") {
						if row.Name == "dhl/book" && row.Status == durable.CheckpointFailed {
							return true
						}
					}
					return false
				})
				if err := e.Signal(within(t), "r", "go", 1); err != nil {
					t.Fatal(err)
				}
				wantFailed(t, run)
				mu.Lock()
				down = false
				mu.Unlock()
				orFail(repair(e))(t)
				if got, err := run.Result(within(t)); err != nil || got != "ups" {
					t.Errorf("the repaired run ended with %q, %v", got, err)
				}
				if booked["dhl"] != 0 || booked["ups"] != 1 {
					t.Errorf("booked %v, want one booking with the winner", booked)
				}
			})
		})
	}
}
