package main

import (
	"context"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// work is the main function of a worker process. It executes orders until the process is killed, or
// until its standard input ends because the parent has closed it or has died.
func work(ctx context.Context, where fleet.Place, shop client) error {
	store, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := durable.New(store, durable.Config{
		Name: shop.worker, Workflows: []durable.Definition{defineCheckout(shop), defineShip(shop)},
		MaxCrashes: 100, // the parent kills several workers in a second, so crashes are not the fault of the orders
	})
	if err != nil {
		return err
	}
	ctx, stop := fleet.UntilParentEnds(ctx)
	defer stop()
	return engine.Run(ctx)
}
