package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// Order is the input of a checkout.
type Order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// approvalFrom is the smallest amount in cents that a person has to approve.
const approvalFrom = 100_00

var checkout = durable.Define("checkout", func(c *durable.Ctx, o Order) (string, error) {
	if o.Cents >= approvalFrom {
		approved, err := c.Receive[bool]("approval", durable.Within(48*time.Hour), durable.Else(false))
		if err != nil || !approved {
			return "not approved", err
		}
	}
	if err := c.Compensate("release stock", releaseStock); err != nil {
		return "", err
	}
	if err := c.Do("reserve stock", reserveStock); err != nil {
		return "", err
	}
	return c.Step("charge", func(ctx context.Context) (string, error) {
		return charge(ctx, o, durable.IdempotencyKey(ctx))
	}, durable.Retry(durable.Exponential(time.Second, time.Minute, 5)))
}, durable.Queue("orders"))

// config returns what every process of the shop, its command and its tests have in common.
func config() durable.Config {
	return durable.Config{
		Workflows:     []durable.Definition{checkout},
		QueueSettings: map[string]durable.QueueSettings{"orders": {MaxInProgressPerKey: 1}}, // one order of a customer at a time
	}
}

// The functions below stand for calls of other services, which accept an idempotency key.

func reserveStock(context.Context) error { return nil }

func releaseStock(context.Context) error { return nil }

func charge(_ context.Context, o Order, _ string) (string, error) {
	return fmt.Sprintf("charged %s %d.%02d", o.Customer, o.Cents/100, o.Cents%100), nil
}
