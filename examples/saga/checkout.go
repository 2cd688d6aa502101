package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// Order is the input of both workflows.
type Order struct {
	ID    string
	Cents int
}

// Decision is the decision of a human on an order.
type Decision struct {
	Approved bool
	By       string
}

// Receipt is the result of an approved order, for the customer.
type Receipt struct{ Charge, Reservation, Parcel, ApprovedBy string }

// errRefused is the error of an order that a human refused. It is registered, so that a caller that
// waits for the result can distinguish it from other failures.
var errRefused = durable.RegisterError("saga.refused", errors.New("the order was refused"))

var (
	// The shop is slow and sometimes fails. Attempts whose workers died count too.
	shopRetry = durable.Retry(durable.Exponential(10*time.Millisecond, 200*time.Millisecond, 50))
	// Compensations are retried without limit, because nobody else would undo the effect.
	compensationRetry = durable.Retry(durable.Exponential(10*time.Millisecond, 200*time.Millisecond, durable.Unlimited))
	attemptTimeout    = durable.AttemptTimeout(10 * time.Second)
)

const (
	thinking = time.Hour             // the longest time that a human may take to decide
	drying   = 40 * time.Millisecond // the time until the glue of a parcel holds
)

// defineShip defines the workflow that sends a parcel, as a child of its order.
func defineShip(shop client) *durable.Workflow[Order, string] {
	return durable.Define("ship", func(c *durable.Ctx, in Order) (string, error) {
		label, err := c.Step("pack", func(context.Context) (string, error) {
			return fmt.Sprintf("%s, insured for %d.%02d", in.ID, in.Cents/100, in.Cents%100), nil
		})
		if err != nil {
			return "", err
		}
		if err := c.Sleep("dry", drying); err != nil {
			return "", err
		}
		return c.Step("ship", func(ctx context.Context) (string, error) {
			return shop.order(ctx, pathShip, in.ID, label)
		}, shopRetry, attemptTimeout)
	})
}

// defineCheckout defines the workflow of an order. It registers the compensation of a step before
// it tries the step: the shop accepts the refund of a charge that was never made, and rejects that
// charge from then on.
func defineCheckout(shop client) *durable.Workflow[Order, Receipt] {
	ship := defineShip(shop)
	return durable.Define("checkout", func(c *durable.Ctx, in Order) (r Receipt, err error) {
		do := func(path string) func(context.Context) (string, error) {
			return func(ctx context.Context) (string, error) { return shop.order(ctx, path, in.ID, "") }
		}
		undo := func(path string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := shop.order(ctx, path, in.ID, "")
				return err
			}
		}
		if err := c.Compensate("refund", undo(pathRefund), compensationRetry, attemptTimeout); err != nil {
			return r, err
		}
		if r.Charge, err = c.Step("charge", do(pathCharge), shopRetry, attemptTimeout); err != nil {
			return r, err
		}
		if err := c.Compensate("release", undo(pathRelease), compensationRetry, attemptTimeout); err != nil {
			return r, err
		}
		if r.Reservation, err = c.Step("reserve", do(pathReserve), shopRetry, attemptTimeout); err != nil {
			return r, err
		}

		approval := c.Callback[Decision]("approval")
		if err := c.Do("ask", func(ctx context.Context) error {
			return shop.ask(ctx, in.ID, approval.Token())
		}, shopRetry, attemptTimeout); err != nil {
			return r, err
		}
		decision, err := approval.Wait(durable.Within(thinking))
		if err != nil {
			return r, err
		}
		if !decision.Approved {
			return r, fmt.Errorf("%w by %s", errRefused, decision.By)
		}
		r.ApprovedBy = decision.By
		r.Parcel, err = c.Child("parcel", ship, in)
		return r, err
	})
}
