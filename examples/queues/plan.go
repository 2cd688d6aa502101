package main

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable"
)

const (
	customers = 100
	large     = "customer-00" // has half of all orders
	oneUrgent = 20            // one of so many orders of the other customers is urgent
)

// placed is an order, and how it is placed.
type placed struct {
	Order
	urgent bool
}

// plan returns the orders, in the order in which they are placed: those of the large customer come first, so that
// the others have to pass them.
func plan(orders int) (all []placed) {
	for i := range orders {
		o := placed{Order: Order{ID: fmt.Sprintf("order-%04d", i), Customer: large}}
		if i >= orders/2 {
			o.Customer = fmt.Sprintf("customer-%02d", 1+i%(customers-1))
			o.urgent = i%oneUrgent == 0
		}
		all = append(all, o)
	}
	return all
}

// place starts the orders. Those of one customer are started in one transaction.
func place(ctx context.Context, e *durable.Engine, all []placed) (runs []*durable.Run[string], err error) {
	type group struct {
		customer string
		urgent   bool
	}
	var groups []group
	items := make(map[group][]durable.StartItem[Order])
	for _, o := range all {
		g := group{o.Customer, o.urgent}
		if items[g] == nil {
			groups = append(groups, g)
		}
		items[g] = append(items[g], durable.StartItem[Order]{ID: o.ID, Input: o.Order})
	}
	workflow := defineOrder(client{})
	for _, g := range groups {
		opts := []durable.StartOption{durable.GroupKey(g.customer)}
		if g.urgent {
			opts = append(opts, durable.Priority(durable.HighestPriority))
		}
		started, err := workflow.StartMany(ctx, e, items[g], opts...)
		if err != nil {
			return nil, err
		}
		runs = append(runs, started...)
	}
	return runs, nil
}
