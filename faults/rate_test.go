package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// The rate of the queue and of the limit of row 50.
const (
	ratePeriod = time.Second
	rateCount  = 4 // in a period
)

// beginnings are the times of the database at which something began, by what bounds it: a queue, or a limit.
type beginnings struct {
	durable.Store
	mu  sync.Mutex
	all map[string][]time.Time
}

func (b *beginnings) add(name string, at time.Time, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		b.all[name] = append(b.all[name], at)
	}
}

// AdmitRuns implements store.QueueAdmitter.
func (b *beginnings) AdmitRuns(ctx context.Context, a *store.AdmissionRequest) error {
	err := b.Store.AdmitRuns(ctx, a)
	if err == nil {
		b.add("queue "+a.Queue, a.AdmittedAt, a.AdmittedCount)
	}
	return err
}

// GrantAndReturnPermits implements store.LimitStore.
func (b *beginnings) GrantAndReturnPermits(ctx context.Context, p *store.PermitBatch) error {
	err := b.Store.GrantAndReturnPermits(ctx, p)
	for _, a := range p.Requests {
		if err == nil && a.Outcome == store.Written {
			b.add("limit "+a.Limit+a.Key, a.GrantedAt, 1)
		}
	}
	return err
}

func (b *beginnings) count(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all[name])
}

// sorted returns the times in their order.
func (b *beginnings) sorted(name string) []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(slices.Values(b.all[name]), time.Time.Compare)
}

// Row 50: an asynchronous standby that is behind is promoted, which lacks the latest beginnings of a queue with a rate, and of a limit
// with a rate. After the promotion nothing begins for one period, and not before a whole burst is paid back, so no rate is exceeded.
func TestRow50_RateOverAFailover(t *testing.T) {
	t.Parallel()
	for _, burst := range []int{rateCount, 3 * rateCount} {
		t.Run(fmt.Sprint("burst=", burst), func(t *testing.T) {
			t.Parallel()
			rateOverAFailover(t, burst)
		})
	}
}

func rateOverAFailover(t *testing.T, burst int) {
	const runs = 100
	payback := time.Duration(burst) * ratePeriod / rateCount // how long a whole burst takes
	primary := ownServer(t)
	standby := standbyOf(t, primary, "behind")
	db := database{Kind: "postgres", Where: pgtest.Hosts(primary, standby), Schema: "s"}
	b := &beginnings{Store: db.openIn(t), all: make(map[string][]time.Time)}
	logged := &journalled{}
	limit := durable.NewLimit("calls", durable.Rate(rateCount, ratePeriod), durable.Burst(burst))
	queued := durable.Define("queued", func(*durable.Ctx, int) (int, error) { return 0, nil })
	calls := durable.Define("calls", func(c *durable.Ctx, _ int) (int, error) {
		return 0, c.Do("call", func(context.Context) error { return nil }, limit.Permit())
	})
	away := make(chan struct{})
	fresh := durable.Define("fresh", func(c *durable.Ctx, _ int) (int, error) { // its key is used for the first time while the standby is away
		if err := c.Do("wait", func(context.Context) error { <-away; return nil }); err != nil {
			return 0, err
		}
		return 0, c.Do("call", func(context.Context) error { return nil }, limit.Permit(durable.LimitKey(" fresh")))
	})
	e := engineOn(t, b, durable.Config{Lease: ratePeriod, Poll: 50 * time.Millisecond, ParkAfter: 100 * time.Millisecond, Logger: logged.logger()}, queued, calls, fresh)
	rate := durable.QueueRate{Count: rateCount, Period: ratePeriod, Burst: burst}
	must(t, "set", e.SetQueue(bounded(t), "mail", durable.QueueSettings{Rate: rate}))
	for i := range runs {
		start(t, e, queued, i, durable.InQueue("mail"))
		start(t, e, calls, i)
		start(t, e, fresh, i)
	}
	names := []string{"queue mail", "limit calls", "limit calls fresh"}
	further := func(n int, names []string) { // awaits that many further beginnings of each
		for _, name := range names {
			before := b.count(name)
			await(t, fmt.Sprint(n, " further beginnings of ", name), func() bool { return b.count(name) >= before+n })
		}
	}
	stop := runEngine(t, e)
	further(1, names[:2])
	must(t, "let the standby see them", primary.WaitUntilCaughtUp(bounded(t), "behind"))
	must(t, "keep the standby behind", standby.Stop(pgtest.Fast))
	close(away)
	further(burst, names)
	must(t, "kill the primary", primary.Kill9())
	killed := time.Now()
	must(t, "start the standby", standby.Restart(bounded(t)))
	promoted := time.Now()
	must(t, "promote", standby.Promote(bounded(t)))
	for _, name := range names {
		await(t, "beginnings of "+name+" after the promotion", func() bool {
			all := b.sorted(name)
			return len(all) > burst && all[len(all)-burst-1].After(killed)
		})
	}
	stop()
	for _, name := range names {
		all := b.sorted(name)
		after := slices.IndexFunc(all, func(at time.Time) bool { return at.After(killed) })
		if pause := all[after].Sub(promoted); pause < payback {
			t.Errorf("%s: something began %v after the promotion", name, pause)
		}
		var used time.Time // the rate is used up to this time
		for _, at := range all {
			if used.Before(at) {
				used = at
			}
			if used = used.Add(ratePeriod / rateCount); used.Sub(at) > payback {
				t.Errorf("%s: too many began at %v: the rate is used up to %v", name, at, used)
			}
		}
		t.Logf("%s: before=%d after=%d first=%v", name, after, len(all)-after, all[after].Sub(promoted).Round(time.Millisecond))
	}
	if len(logged.with("goes on from another point of its history")) == 0 {
		t.Error("the promotion was not noticed")
	}
}
