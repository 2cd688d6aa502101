package main

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable"
)

// clock computes the database's time without a query for each reading.
type clock struct {
	database, local time.Time
}

const readings = 50 // the clocks are compared this often, and the quickest comparison is used: half of its round trip is the error

// readClock compares the database's clock with this process's clock.
func readClock(ctx context.Context, s durable.Store) (*clock, error) {
	var best clock
	var least time.Duration
	for i := range readings {
		asked := time.Now()
		database, err := s.Now(ctx)
		if err != nil {
			return nil, err
		}
		local := time.Now()
		if trip := local.Sub(asked); i == 0 || trip < least {
			least, best = trip, clock{database: database.Add(trip / 2).UTC(), local: local}
		}
	}
	return &best, nil
}

// at returns the database's time at a moment of this process's clock.
func (c *clock) at(local time.Time) time.Time { return c.database.Add(local.Sub(c.local)) }
