package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Engines of one store claim together: one sends the claims, and each executes as many runs as it has slots. When the one that claims
// stops, another one continues.
func TestEnginesOfAStoreClaimTogether(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		release := make(chan struct{})
		holds := durable.Define("holds", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("wait", func(ctx context.Context) (int, error) {
				select {
				case <-release:
					return n, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
		})
		client := engineAsGiven(t, s, durable.Config{})
		var runs []*durable.Run[int]
		for i := range 7 {
			runs = append(runs, orFail(holds.Start(ctx, client, i))(t))
		}
		engines, stops := make([]*durable.Engine, 3), make([]func(), 3)
		for i := range engines { // engines with codecs claim alone
			engines[i] = engineAsGiven(t, s, durable.Config{Name: fmt.Sprint("engine", i), Workflows: []durable.Definition{holds}, Concurrency: 2, Lease: 3 * time.Second, Grace: -1})
			stops[i] = running(t, engines[i])
		}
		var leader int
		for i, e := range engines {
			waitFor(t, func() bool { return e.Stats().RunsInMemory == 2 })
			if got := e.Stats(); got.ClaimedRuns != 2 {
				t.Errorf("engine %d has claimed %d runs", i, got.ClaimedRuns)
			} else if got.ClaimQueries > 0 {
				leader = i
			}
		}
		for i, e := range engines {
			if n := e.Stats().ClaimQueries; i != leader && n > 0 {
				t.Errorf("engines %d and %d claim", i, leader)
			}
		}
		owned := make(map[string]int)
		for _, w := range orFail(client.Workers(ctx))(t) {
			for _, r := range runs {
				if orFail(client.Get(ctx, r.ID()))(t).Owner == w.ID {
					owned[w.Name]++
				}
			}
		}
		if fmt.Sprint(owned) != "map[engine0:2 engine1:2 engine2:2]" {
			t.Errorf("the runs belong to %v", owned)
		}
		waitFor(t, func() bool { return engines[(leader+1)%3].Stats().RenewedLeases > 0 })
		stops[leader]()
		close(release)
		for i, r := range runs {
			if got, err := r.Result(ctx); got != i || err != nil {
				t.Errorf("run %d: %d, %v", i, got, err)
			}
		}
		if n := engines[(leader+1)%3].Stats().ClaimQueries + engines[(leader+2)%3].Stats().ClaimQueries; n == 0 {
			t.Error("nobody claims any more")
		}
	})
}

// The engine that claims for the others may be quiet: they claim as before.
func TestAQuietEngineClaimsForOthers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		quick := durable.Define("quick", double)
		client := engineAsGiven(t, s, durable.Config{})
		var engines [2]*durable.Engine
		var logs [2]*lines
		for i := range engines {
			cfg, log := logged(durable.Config{Name: fmt.Sprint("engine", i), Workflows: []durable.Definition{quick}, Lease: 6 * time.Second})
			engines[i], logs[i] = engineAsGiven(t, s, cfg), log
			running(t, engines[i])
			waitFor(t, func() bool { return engines[0].Stats().ClaimQueries > 0 })
		}
		waitFor(t, func() bool { return len(orFail(client.Workers(ctx))(t)) == 2 })
		for _, w := range orFail(client.Workers(ctx))(t) {
			if w.Name == "engine0" {
				if err := client.QuietWorker(ctx, w.ID, durable.Reason("its disk is full")); err != nil {
					t.Fatal(err)
				}
			}
		}
		logs[0].await(t, "its disk is full")
		before := engines[0].Stats()
		for i := range 5 {
			if _, err := orFail(quick.Start(ctx, client, i))(t).Result(ctx); err != nil {
				t.Error(err)
			}
		}
		if after := engines[0].Stats(); after.StartedExecutions != before.StartedExecutions || engines[1].Stats().ClaimedRuns != 5 {
			t.Errorf("the quiet engine has %+v after %+v, the other one %+v", after, before, engines[1].Stats())
		}
	})
}
