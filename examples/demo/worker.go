package main

import (
	"context"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// work is the main function of the worker process. It executes runs until the process is killed, or
// until its parent has stopped it or has died.
func work(ctx context.Context, where fleet.Place, ledgerName string) error {
	l, err := openLedger(ledgerName)
	if err != nil {
		return err
	}
	store, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{define(l)}})
	if err != nil {
		return err
	}
	ctx, stop := fleet.UntilParentEnds(ctx)
	defer stop()
	return engine.Run(ctx)
}
