package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Every write, claim, park and end is counted once.
func TestStats(t *testing.T) {
	s := openStore(t)
	const runs, steps = 5, 3
	gate := durable.Define("gate", func(c *durable.Ctx, n int) (int, error) {
		for i := range steps {
			if err := c.Do(fmt.Sprint("step", i), func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
		}
		return c.Receive[int]("open")
	})
	client := engineOn(t, struct{ durable.Store }{s}) // with a journal of its own; it executes no workflow, so that each start is claimed
	handles := make([]*durable.Run[int], runs)
	for i := range handles {
		r, err := gate.Start(within(t), client, i, durable.ID(fmt.Sprint("run", i)))
		if err != nil {
			t.Fatal(err)
		}
		handles[i] = r
	}
	if got := client.Stats(); got.Flushes != runs || got.WrittenRows != runs || got.LargestFlushRows != 1 || got.MeanFlushRows() != 1 || got.ClaimQueries != 0 {
		t.Errorf("the client: %+v", got)
	}

	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{gate}, Lease: 5 * time.Second})
	if got := e.Stats(); got != (durable.Stats{}) || got.MeanFlushRows() != 0 {
		t.Errorf("at first: %+v", got)
	}
	running(t, e)
	await := func(what string, cond func(durable.Stats) bool) {
		t.Helper()
		if !poll(within(t), func() bool { return cond(e.Stats()) }) {
			t.Fatalf("never: %s: %+v", what, e.Stats())
		}
	}
	await("all park", func(s durable.Stats) bool { return s.ParkedExecutions == runs && s.RunsInMemory == 0 })
	if got := e.Stats(); got.StartedExecutions != runs || got.ClaimedRuns != runs || got.ClaimQueries == 0 || got.EndedExecutions != 0 ||
		got.WrittenRows < runs*(steps+1) || got.TotalFlushTime <= 0 || got.AverageFlushTime <= 0 || got.WrittenBytes <= 0 {
		t.Errorf("when all are parked: %+v", got)
	}
	for i := range handles {
		if err := client.Signal(within(t), handles[i].ID(), "open", i); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range handles {
		if got, err := r.Result(within(t)); got != i || err != nil {
			t.Error(got, err)
		}
	}
	await("all have ended", func(s durable.Stats) bool { return s.EndedExecutions == runs && s.RunsInMemory == 0 })
	await("a heartbeat after the first", func(s durable.Stats) bool { return s.Heartbeats > 1 })
	if got := e.Stats(); got.StartedExecutions != got.EndedExecutions+got.ParkedExecutions || got.LostExecutions+got.ReleasedExecutions != 0 || got.PendingWrites != 0 || got.FailedFlushes != 0 {
		t.Errorf("at the end: %+v", got)
	}
}

// Engines of one store in one process write in the same transactions. An engine with a codec, which encodes what it writes, does not
// share them.
func TestEnginesOfAStoreShareTransactions(t *testing.T) {
	s := openStore(t)
	noop := durable.Define("noop", func(*durable.Ctx, int) (int, error) { return 0, nil })
	plain := durable.Config{Workflows: []durable.Definition{noop}}
	first, second := engineAsGiven(t, s, plain), engineAsGiven(t, s, plain) // engines with codecs share nothing
	encoding := engineWith(t, s, durable.Config{Codec: bothCodecs(t, "a")})
	for i, e := range []*durable.Engine{first, second} {
		if _, err := noop.Call(within(t), e, i, durable.ID(fmt.Sprint("run", i))); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := first.Stats(), second.Stats(); a.WrittenRows != 4 || b.WrittenRows != 4 || a.EndedExecutions != 1 || b.EndedExecutions != 1 {
		t.Errorf("two starts and two ends: %+v and %+v", a, b)
	}
	if got := encoding.Stats(); got.WrittenRows != 0 {
		t.Errorf("an engine with a codec has the rows of others: %+v", got)
	}
}

// The lease of a run that stays in memory is renewed.
func TestStatsOfLeases(t *testing.T) {
	release := make(chan struct{})
	w := durable.Define("stays", func(c *durable.Ctx, n int) (int, error) {
		return c.Step("stay", func(context.Context) (int, error) {
			<-release
			return n, nil
		})
	})
	e := engineWith(t, openStore(t), durable.Config{Workflows: []durable.Definition{w}, Lease: 300 * time.Millisecond})
	running(t, e)
	r, err := w.Start(within(t), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !poll(within(t), func() bool { return e.Stats().RenewedLeases > 0 || e.Stats().EndedExecutions > 0 }) {
		t.Fatalf("never renewed: %+v", e.Stats())
	}
	if e.Stats().EndedExecutions > 0 {
		t.Fatal("the run ended before it was let go")
	}
	if got := e.Stats(); got.RunsInMemory != 1 || got.Heartbeats == 0 {
		t.Errorf("%+v", got)
	}
	close(release)
	if got, err := r.Result(within(t)); got != 1 || err != nil {
		t.Error(got, err)
	}
}
