package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

const limitChangeEvery = 8 * time.Second

// changeLimits changes the bounds of the limits few and paced, while steps use them, until ctx ends.
func changeLimits(ctx context.Context, c *controller) error {
	set := func(limit *durable.Limit, n int, b durable.LimitBounds) error {
		x := entry{Kind: kindLimitChanging, Step: limit.Name(), Attempt: n}
		c.ledger.add(x)
		_, err := c.retry(ctx, func() error { return c.SetLimit(ctx, limit.Name(), b) })
		if ctx.Err() != nil {
			return nil // whether the change was made is not known
		}
		if err != nil {
			return fmt.Errorf("set limit %s: %w", limit.Name(), err)
		}
		x.Kind = kindLimitChanged
		c.ledger.add(x)
		return nil
	}
	for i := 0; sleepCtx(ctx, limitChangeEvery) == nil; i++ {
		n := []int{5, 1, 4, 2}[i%4]
		if err := set(few, n, durable.LimitBounds{Concurrent: n}); err != nil {
			return err
		}
		n *= 10
		if err := set(paced, n, durable.LimitBounds{Rate: n, Period: time.Second, Burst: pacedBurst}); err != nil {
			return err
		}
	}
	return nil
}

// boundPeriod is the time in which a bound of a limit may apply: a change takes effect during the call that makes it, and a
// transaction that has read the bound before may be stopped and grant later.
type boundPeriod struct {
	bound       int
	from, over  time.Time // the bound applies at no time before and after these
	alone, ends time.Time // between these, no other bound applies
}

// boundSettles is how long after a change a step may be granted a permit by the bound before, or still execute with it: longer than a process
// is stopped.
const boundSettles = 4 * time.Second

// boundPeriods returns the periods of a bound, in order.
func (e *evidence) boundPeriods(limit string, declared int) []boundPeriod {
	unknown := time.Unix(1<<40, 0)
	all := []boundPeriod{{bound: declared, over: unknown, ends: unknown}}
	for _, x := range e.entries {
		last := &all[len(all)-1]
		switch {
		case x.Step != limit:
		case x.Kind == kindLimitChanging:
			last.ends = x.At
			all = append(all, boundPeriod{bound: x.Attempt, from: x.At, over: unknown, alone: unknown, ends: unknown})
		case x.Kind == kindLimitChanged:
			last.alone = x.At.Add(boundSettles)
			all[len(all)-2].over = last.alone
		}
	}
	return all
}

// largestBound returns the largest bound that may apply at the time.
func largestBound(periods []boundPeriod, at time.Time) (most int) {
	for _, p := range periods {
		if !at.Before(p.from) && at.Before(p.over) {
			most = max(most, p.bound)
		}
	}
	return most
}
