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
	books := map[string]func(c *durable.Ctx, bookBox, book func(context.Context) error) error{
		"a step": func(c *durable.Ctx, _, book func(context.Context) error) error { return c.Do("book", book) },
		"a Map": func(c *durable.Ctx, bookBox, book func(context.Context) error) error {
			_, err := c.Map("book", []string{"box", "bag"}, func(ctx context.Context, item string) (bool, error) {
				if item == "box" { // the loser has booked the box when it refuses the bag
					return true, bookBox(ctx)
				}
				return true, book(ctx)
			}, durable.Parallel(1))
			return err
		},
	}
	for name, repair := range map[string]repairOf{
		"retry": func(e *durable.Engine, opts ...durable.ControlOption) (*durable.Repaired, error) {
			return e.Retry(within(t), "r", opts...)
		},
		"retry from": retryWith(t, durable.From("pack")),
		"fork":       forkWith(t, durable.From("pack")),
	} {
		for what, callBook := range books {
			t.Run(name+" after "+what, func(t *testing.T) {
				onStores(t, func(t *testing.T, s durable.Store) { repairHedge(t, s, repair, callBook) })
			})
		}
	}
}

// repairHedge executes the workflow with the hedge, whose call "book" callBook makes, and repairs it after its failure.
func repairHedge(t *testing.T, s durable.Store, repair repairOf, callBook func(c *durable.Ctx, bookBox, book func(context.Context) error) error) {
	var mu sync.Mutex
	booked, down := make(map[string]int), true
	book := func(what string) func(context.Context) error {
		return func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if down && what == "dhl" {
				return errDeclined
			}
			booked[what]++
			return nil
		}
	}
	unbook := func(carrier string) func(context.Context) error {
		return func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			delete(booked, carrier)
			delete(booked, carrier+" box")
			return nil
		}
	}
	w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
		bookWith := func(carrier string) *durable.Future[string] {
			return c.Go(carrier, func(c *durable.Ctx) (string, error) {
				if carrier == "ups" { // after the other has failed
					if _, err := c.Receive[int]("go"); err != nil {
						return "", err
					}
				}
				if err := c.Compensate("unbook", unbook(carrier), durable.Undoes("book")); err != nil {
					return "", err
				}
				return carrier, callBook(c, book(carrier+" box"), book(carrier))
			})
		}
		_, carrier, err := durable.Any(c, "courier", durable.CancelLosers, bookWith("dhl"), bookWith("ups"))
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
	if booked["dhl"] != 0 || booked["dhl box"] != 0 || booked["ups"] != 1 || booked["ups box"] > 1 {
		t.Errorf("booked %v, want one booking with the winner", booked)
	}
}
