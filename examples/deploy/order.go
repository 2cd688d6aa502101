package main

import (
	"context"
	"errors"

	"github.com/seed8ec063be/durable"
)

// The releases of the program. This file has the code of all three, so that they can be compared; each is a build of its own.
const (
	first   = "v1"
	renamed = "v2" // inserts a check with Patched, and renames the step "ship", without saying so
	fixed   = "v3" // says so
)

// release is the release of this build. The demo sets it with the linker's flag -X.
var release = first

// signals are what an order waits for, in their order.
var signals = []string{"confirmed", "picked", "delivered"}

// Order is the input of an order.
type Order struct {
	Number     int  `json:"number"`
	BadAddress bool `json:"bad_address,omitzero"` // its receipt cannot be sent until somebody corrects the address
}

// Receipt is the result of an order.
type Receipt struct {
	Price int `json:"price"`
}

var errBadAddress = errors.New("the customer's address does not exist")

// newOrders returns the workflow of an order, as this release executes it.
func newOrders(l *ledger) *durable.Workflow[Order, Receipt] {
	ship := "ship"
	var options []durable.WorkflowOption
	if release != first {
		ship = "ship order"
	}
	if release == fixed {
		options = append(options, durable.Renamed("ship", "ship order"))
	}
	return durable.Define("order", func(c *durable.Ctx, in Order) (Receipt, error) {
		do := func(step string) error {
			return c.Do(step, func(ctx context.Context) error { return l.add(ctx, in.Number, step) })
		}
		wait := func(signal string) error {
			_, err := c.Receive[bool](signal)
			return err
		}
		price, err := c.Step("price", func(ctx context.Context) (int, error) { return 10, l.add(ctx, in.Number, "price") })
		if err != nil {
			return Receipt{}, err
		}
		if err := wait("confirmed"); err != nil {
			return Receipt{}, err
		}
		if release != first {
			checks, err := c.Patched("fraud check")
			if err == nil && checks {
				err = do("fraud check")
			}
			if err != nil {
				return Receipt{}, err
			}
		}
		for _, step := range []func() error{
			func() error { return do("charge") },
			func() error { return wait("picked") },
			func() error { return do(ship) },
			func() error { return wait("delivered") },
		} {
			if err := step(); err != nil {
				return Receipt{}, err
			}
		}
		err = c.Do("send receipt", func(ctx context.Context) error {
			if in.BadAddress && !l.addressesAreCorrected() {
				return durable.Permanent(errBadAddress)
			}
			return l.add(ctx, in.Number, "send receipt")
		})
		return Receipt{Price: price}, err
	}, options...)
}
