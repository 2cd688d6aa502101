package main

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable"
)

// follower reads the events of all runs as they are written. Its maps may be read after follow has
// returned.
type follower struct {
	engine *durable.Engine
	orders int
	ended  map[string]durable.EventType // by the run's UUID
	lost   map[string]int               // by the run's UUID: how often its worker was found dead
}

func newFollower(engine *durable.Engine, orders int) *follower {
	return &follower{
		engine: engine, orders: orders,
		ended: make(map[string]durable.EventType), lost: make(map[string]int),
	}
}

// follow returns when every order has ended. It returns an error if a run has an event after its
// end.
func (f *follower) follow(ctx context.Context) error {
	left := f.orders
	for event, err := range f.engine.WatchEvents(ctx, "") {
		if err != nil {
			return fmt.Errorf("watch, with %d of %d orders ended: %w", f.orders-left, f.orders, err)
		}
		if end, over := f.ended[event.RunID]; over {
			return fmt.Errorf("%s (%s) has %s, and now an event says %s", event.ID, event.RunID, end, event.Type)
		}
		switch event.Type {
		case durable.EventLeaseLost:
			f.lost[event.RunID]++
		case durable.EventCompleted, durable.EventFailed, durable.EventCancelled, durable.EventExpired:
			f.ended[event.RunID] = event.Type
			if event.Workflow != "checkout" {
				continue
			}
			if left--; left == 0 {
				return nil
			}
		}
	}
	return nil
}

// countTakeovers returns how often a worker of the run, or of one of its descendants, was found dead.
func (f *follower) countTakeovers(run *durable.RunNode) int {
	n := f.lost[run.RunID]
	for _, child := range run.Children {
		n += f.countTakeovers(child)
	}
	return n
}
