package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

const (
	ordersQueue = "orders"
	atOnce      = 5  // requests that the provider accepts at once
	perSecond   = 50 // requests that the provider accepts in a second, in the long run
	burst       = 5  // and so many more in the short run, so that a late request does not slow down those after it
)

// providerLimit is the limit of the provider, over all workers.
var providerLimit = durable.NewLimit("provider", durable.Concurrent(atOnce), durable.Rate(perSecond, time.Second), durable.Burst(burst))

// Order is the input of a run.
type Order struct {
	ID       string
	Customer string
}

// payment is what a worker sends to the provider.
type payment struct {
	Order    string
	Customer string
	Key      string // the idempotency key of the step
	Sent     time.Time
}

// tick is what a worker sends for a scheduled time.
type tick struct {
	At  time.Time
	Run string // the UUID of the run
}

// defineOrder defines the workflow of an order.
func defineOrder(c client) *durable.Workflow[Order, string] {
	return durable.Define("order", func(ctx *durable.Ctx, o Order) (string, error) {
		return ctx.Step("pay", func(s context.Context) (string, error) {
			return c.post(s, pathPay, payment{o.ID, o.Customer, durable.IdempotencyKey(s), time.Now()})
		}, providerLimit.Permit())
	}, durable.Queue(ordersQueue))
}

// defineTick defines the workflow that the schedule starts.
func defineTick(c client) *durable.Workflow[string, string] {
	return durable.Define("tick", func(ctx *durable.Ctx, _ string) (string, error) {
		at := durable.ScheduledAt(ctx)
		return ctx.Step("tell", func(s context.Context) (string, error) {
			return c.post(s, pathTick, tick{at, ctx.RunID()})
		})
	})
}

// client sends a worker's requests to the provider.
type client struct{ url string }

func (c client) post(ctx context.Context, path string, body any) (string, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the provider returned %s: %s", response.Status, text)
	}
	return string(text), err
}

// work is the main function of a worker process. It executes orders until the process is killed, or until its
// parent has ended.
func work(ctx context.Context, where fleet.Place, name, provider string) error {
	store, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	c := client{provider}
	engine, err := durable.New(store, durable.Config{
		Name: name, Workflows: []durable.Definition{defineOrder(c), defineTick(c)},
		MaxCrashes: 100, // workers are killed often, so crashes are not the fault of the orders
	})
	if err != nil {
		return err
	}
	ctx, stop := fleet.UntilParentEnds(ctx)
	defer stop()
	return engine.Run(ctx)
}
