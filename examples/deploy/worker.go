package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// lease is short, so that held orders are tried soon.
const lease = 3 * time.Second

// newEngine returns an engine that executes orders as this release does.
func newEngine(s durable.Store, l *ledger) (*durable.Engine, *durable.Workflow[Order, Receipt], error) {
	orders := newOrders(l)
	e, err := durable.New(s, durable.Config{
		Workflows: []durable.Definition{orders}, Version: release, Name: release, Lease: lease, Concurrency: 50,
		Logger: slog.New(slog.DiscardHandler),
	})
	return e, orders, err
}

// work is a worker process of this release. It drains when its parent closes its input.
func work(ctx context.Context, place fleet.Place, folder string) (err error) {
	s, l, err := open(ctx, place, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	e, _, err := newEngine(s, l)
	if err != nil {
		return err
	}
	ctx, stop := fleet.UntilParentEnds(ctx)
	defer stop()
	return e.Run(ctx)
}

// preflight prints what this release would make of the live orders, and executes nothing.
func preflight(ctx context.Context, place fleet.Place, folder string) (err error) {
	s, l, err := open(ctx, place, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	e, _, err := newEngine(s, l)
	if err != nil {
		return err
	}
	report, err := e.Preflight(ctx, durable.Filter{Workflow: "order"})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func open(ctx context.Context, place fleet.Place, folder string) (durable.Store, *ledger, error) {
	l, err := openLedger(folder)
	if err != nil {
		return nil, nil, err
	}
	s, err := place.Open(ctx)
	return s, l, err
}
