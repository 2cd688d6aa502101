package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// tardy is a store whose writes take effect late: the caller may have given up by then.
type tardy struct {
	durable.Store
	late atomic.Int64 // how late, as a time.Duration

	gaveUp  atomic.Int64 // claims and heartbeats that were
	flights sync.WaitGroup
}

// tardily does a write in its own time, and sends the result unless the caller has given up.
func tardily[T any](ctx context.Context, s *tardy, write func(context.Context) (T, error)) (T, error) {
	late := time.Duration(s.late.Load())
	if late == 0 {
		return write(ctx)
	}
	type reply struct {
		v   T
		err error
	}
	done := make(chan reply, 1)
	s.flights.Go(func() {
		realtime.Pass(late, "the database is this late")
		v, err := write(context.WithoutCancel(ctx))
		done <- reply{v, err}
	})
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		s.gaveUp.Add(1)
		var none T
		return none, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

func (s *tardy) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	return tardily(ctx, s, func(ctx context.Context) (store.ClaimResult, error) { return s.Store.Claim(ctx, q) })
}

func (s *tardy) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	return tardily(ctx, s, func(ctx context.Context) (store.RenewResult, error) { return s.Store.RenewLeases(ctx, h) })
}

func (s *tardy) Commit(ctx context.Context, b *store.Batch) error {
	_, err := tardily(ctx, s, func(ctx context.Context) (any, error) { return nil, s.Store.Commit(ctx, b) })
	return err
}

// unharmed asserts that the runs complete, and that none of them is taken for one that kills its process.
func unharmed(t *testing.T, e *durable.Engine, w *durable.Workflow[int, int], runs int) (claims int) {
	t.Helper()
	for i := range runs {
		id := fmt.Sprint("r", i)
		if v, err := result(t, e, w, id); v != i || err != nil {
			t.Errorf("%s: %d, %v; %+v", id, v, err, info(t, e, id))
		}
		at := info(t, e, id)
		if at.Crashes != 0 || at.Reason != "" {
			t.Errorf("%s: %d crashes, %q, and no process has died", id, at.Crashes, at.Reason)
		}
		claims += at.Epoch
	}
	return claims
}

// queue starts runs by an engine that executes none.
func queue(t *testing.T, s durable.Store, w *durable.Workflow[int, int], runs int) *durable.Engine {
	t.Helper()
	client := engineOn(t, s, durable.Config{})
	var items []durable.StartItem[int]
	for i := range runs {
		items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
	}
	if _, err := w.StartMany(bounded(t), client, items); err != nil {
		t.Fatal(err)
	}
	return client
}

// Row 37: claims are committed and their replies are lost. Their runs are released at once, long
// before their leases end, and nothing is counted as a crash.
func TestRow37_RepliesToClaimsAreLost(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const runs, losses = 20, 6
		s := db.openIn(t)
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) {
			return c.Step("s", func(context.Context) (int, error) { return in, nil })
		})
		client := queue(t, s, w, runs)
		var lost atomic.Int64
		f := &faulty{Store: s, afterClaim: func(int64, *store.ClaimResult) error {
			if lost.Add(1) > losses {
				return nil
			}
			return fmt.Errorf("%w: the reply was cut off", store.ErrUnavailable)
		}}
		began := time.Now()
		runEngine(t, engineOn(t, f, durable.Config{Lease: 10 * time.Minute, MaxCrashes: 2}, w))
		claims := unharmed(t, client, w, runs)
		if claims < runs+losses {
			t.Errorf("%d claims of %d runs, of which %d were lost", claims, runs, losses)
		}
		t.Logf("runs=%d lost_claims=%d claimed=%d done_after=%v", runs, losses, claims, time.Since(began).Round(time.Millisecond))
	})
}

// Row 41: for a while every commit takes longer than a claim or a heartbeat may, and takes effect
// after they were given up. No process has died, so no crash is counted, and all runs finish.
func TestRow41_CommitsThatTakeSeconds(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const runs, lease = 20, 500 * time.Millisecond
		inner := db.openIn(t)
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) {
			for i := range 3 {
				if _, err := c.Step(fmt.Sprint("s", i), func(context.Context) (int, error) { return in, nil }); err != nil {
					return 0, err
				}
				if err := c.Sleep(fmt.Sprint("z", i), 50*time.Millisecond); err != nil {
					return 0, err
				}
			}
			return in, nil
		})
		client := queue(t, inner, w, runs)
		slow := &tardy{Store: inner}
		t.Cleanup(slow.flights.Wait)
		runEngine(t, engineOn(t, slow, durable.Config{Lease: lease, MaxCrashes: 2, ParkAfter: time.Millisecond}, w))
		await(t, "the first runs to begin", func() bool { return info(t, client, "r0").Epoch > 0 })
		slow.late.Store(int64(lease * 6 / 10))
		await(t, "claims and heartbeats that are given up", func() bool { return slow.gaveUp.Load() > 30 })
		slow.late.Store(0)
		claims := unharmed(t, client, w, runs)
		t.Logf("runs=%d lease=%v given_up=%d claimed=%d crashes=0", runs, lease, slow.gaveUp.Load(), claims)
	})
}

// Row 37: the synchronous standby is away for many leases: what was committed gets no reply. When it
// is there again, all runs finish, and none counts a crash.
func TestRow37_StandbyAwayForManyLeases(t *testing.T) {
	t.Parallel()
	const runs, lease = 20, 500 * time.Millisecond
	server := ownServer(t)
	db := database{Kind: "postgres", Where: server.URL(), Schema: "durable"}
	s := db.openIn(t)
	var failed atomic.Int64
	f := &faulty{Store: s, failedCommit: func(error) { failed.Add(1) }}
	w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) {
		for i := range 5 {
			if _, err := c.Step(fmt.Sprint("s", i), func(context.Context) (int, error) { return in, nil }); err != nil {
				return 0, err
			}
			if err := c.Sleep(fmt.Sprint("z", i), 100*time.Millisecond); err != nil {
				return 0, err
			}
		}
		return in, nil
	})
	client := queue(t, s, w, runs)
	for range 2 {
		runEngine(t, engineOn(t, f, durable.Config{Lease: lease, MaxCrashes: 2, ParkAfter: time.Millisecond}, w))
	}
	await(t, "the first runs to begin", func() bool { return info(t, client, "r0").Epoch > 0 })
	conn := session(t, server.URL())
	sql(t, conn, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	sql(t, conn, "SELECT pg_reload_conf()")
	realtime.Pass(10*lease, "the standby is away for many leases")
	if open := sql(t, conn, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")[0][0]; open == int64(0) {
		t.Error("nothing waits for the standby")
	}
	sql(t, conn, "ALTER SYSTEM RESET synchronous_standby_names")
	sql(t, conn, "SELECT pg_reload_conf()")
	claims := unharmed(t, client, w, runs)
	t.Logf("runs=%d lease=%v away=%v failed_flushes=%d claimed=%d crashes=0", runs, lease, 10*lease, failed.Load(), claims)
}
