package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
)

// oldestPermit is how long before its step a permit of a rate may have been granted. So up to 1.1 s of permits are
// used in one second.
const oldestPermit = 100 * time.Millisecond

// allowed returns how many requests the limit allows in a second that permits of the given age or less are used in.
func allowed(age time.Duration) int { return burst + int(perSecond*(time.Second+age).Seconds()) }

// report is the result of the example.
type report struct {
	orders, kills         int
	counts                counts
	urgent, normal, small time.Duration
}

// report reads how long the orders took.
func (s *session) report(ctx context.Context, all []placed, c counts) (report, error) {
	r := report{orders: len(all), kills: s.kills, counts: c}
	took := make(map[string]time.Duration, len(all))
	for page := (durable.Page{Limit: 1000}); ; {
		found, err := s.engine.List(ctx, durable.Filter{Workflow: "order"}, page)
		if err != nil {
			return r, err
		}
		for _, run := range found.Runs {
			took[run.ID] = run.EndedAt.Sub(run.CreatedAt)
		}
		if found.Next == "" {
			break
		}
		page.Cursor = found.Next
	}
	var urgent, normal, small []time.Duration
	for _, o := range all {
		d, ok := took[o.ID]
		if !ok {
			return r, fmt.Errorf("there is no run of %s", o.ID)
		}
		if o.Customer != large && !o.urgent {
			small = append(small, d)
		}
		if o.urgent {
			urgent = append(urgent, d)
		} else {
			normal = append(normal, d)
		}
	}
	r.urgent, r.normal, r.small = quantile(urgent, 0.5), quantile(normal, 0.5), quantile(small, 0.99)
	return r, nil
}

// quantile returns the quantile of the durations, or zero if there are none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

// String returns the last line.
func (r report) String() string {
	c := r.counts
	return fmt.Sprintf("queues: orders=%d kills=%d max_concurrent=%d max_per_second=%d max_sent_per_second=%d jitter_ms=%.1f key_overlaps=%d charged_twice=%d "+
		"urgent_p50_s=%.2f normal_p50_s=%.2f small_tenant_p99_s=%.2f fires=%d doubled=%d missed=%d",
		r.orders, r.kills, c.MaxConcurrent, c.MaxPerSecond, c.MaxSent, float64(c.Jitter.Microseconds())/1000, c.KeyOverlaps, c.ChargedTwice,
		r.urgent.Seconds(), r.normal.Seconds(), r.small.Seconds(), c.Fires, c.Doubled, c.Missed)
}

// verdict returns an error that names each promise that was not kept.
func (r report) verdict() error {
	c := r.counts
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Charged == r.orders, "%d of %d orders were charged", c.Charged, r.orders)
	check(c.ChargedTwice == 0, "%d orders were charged twice", c.ChargedTwice)
	check(c.MaxConcurrent <= atOnce, "%d requests were at the provider at once, and %d are allowed", c.MaxConcurrent, atOnce)
	check(c.MaxSent <= allowed(oldestPermit), "%d requests were sent in a second, and %d are allowed", c.MaxSent, allowed(oldestPermit))
	check(c.MaxPerSecond <= allowed(oldestPermit+c.Jitter), "%d requests reached the provider in a second, and %d are allowed with a jitter of %v",
		c.MaxPerSecond, allowed(oldestPermit+c.Jitter), c.Jitter)
	check(c.KeyOverlaps == 0, "%d requests overlapped another of the same customer", c.KeyOverlaps)
	check(c.Fires > 0 && c.Doubled == 0 && c.Missed == 0, "of %d scheduled times %d were doubled and %d missed", c.Fires, c.Doubled, c.Missed)
	check(r.urgent < r.normal, "urgent orders took %v, and others %v", r.urgent, r.normal)
	return errors.Join(errs...)
}
