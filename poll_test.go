package durable_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/postgres"
)

// reads is a store that counts what an engine reads of runs.
type reads struct {
	durable.Store
	looks  atomic.Int64 // queries for statuses
	inputs atomic.Int64 // runs that were read with their inputs
	whole  atomic.Int64 // runs that were read with their inputs and outcomes
}

func (s *reads) Statuses(ctx context.Context, runs []uuid.UUID) ([]store.Status, error) {
	s.looks.Add(1)
	return s.Store.Statuses(ctx, runs)
}

func (s *reads) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	if with&store.WithInput != 0 {
		s.inputs.Add(int64(len(refs)))
	}
	if with&store.WithOutputAndError != 0 {
		s.whole.Add(int64(len(refs)))
	}
	return s.Store.GetRunsSelectingPayloads(ctx, refs, with)
}

func (s *reads) GetRuns(ctx context.Context, refs []store.RunRef) ([]*store.Run, error) {
	s.inputs.Add(int64(len(refs)))
	s.whole.Add(int64(len(refs)))
	return s.Store.GetRuns(ctx, refs)
}

// Waiting for a run reads only its status until it has ended; then its outcome is read once. Control calls read no payload
// either.
func TestWaitingForARunReadsItsStatusOnly(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const n = 5
		w := durable.Define("w", func(c *durable.Ctx, in string) (int, error) { return len(in), nil })
		counted := &reads{Store: s}
		client := engineOn(t, counted)
		var waiting sync.WaitGroup
		runs := make([]*durable.Run[int], n)
		for i := range n {
			run, err := w.Start(within(t), client, strings.Repeat("x", 1<<20), durable.Delay(time.Hour), durable.ID(strings.Repeat("r", i+1)))
			if err != nil {
				t.Fatal(err)
			}
			runs[i] = run
			waiting.Go(func() { _, _ = run.Result(within(t)) })
		}
		waitFor(t, func() bool { return counted.looks.Load() >= 20 })
		for _, run := range runs {
			must(t)(client.Pause(within(t), run.ID()))
			must(t)(client.Resume(within(t), run.ID()))
			signal(t, client, run.ID(), "s", 1)
			if err := client.SetTags(within(t), run.ID(), map[string]string{"a.b": "c"}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.TreeCounts(within(t), run.ID()); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Handle(within(t), client, run.ID()); err != nil {
				t.Fatal(err)
			}
		}
		if whole := counted.whole.Load(); whole != 0 {
			t.Errorf("%d outcomes were read before any run had ended", whole)
		}
		for _, run := range runs {
			must(t)(client.Cancel(within(t), run.ID()))
		}
		waiting.Wait()
		if whole := counted.whole.Load(); whole != n {
			t.Errorf("%d outcomes were read of %d runs", whole, n)
		}
		if inputs := counted.inputs.Load(); inputs != 0 {
			t.Errorf("%d inputs were read", inputs)
		}
		t.Logf("%d looks for statuses", counted.looks.Load())
	})
}

// bytesRead counts the bytes that are read from its connections.
type bytesRead struct {
	net.Conn
	n *atomic.Int64
}

func (c bytesRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// The same holds for the bytes on the network.
func TestWaitingForLargeRunsReadsLittle(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	var read atomic.Int64
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return bytesRead{c, &read}, nil
	}
	pool, err := pgxpool.NewWithConfig(within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(pool, postgres.Schema(pgtest.Schema(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n, looks = 20, 8
	w := durable.Define("w", func(c *durable.Ctx, in string) (int, error) { return len(in), nil })
	counted := &reads{Store: s}
	client := engineOn(t, counted)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	for range n {
		run, err := w.Start(ctx, client, strings.Repeat("x", 1<<20), durable.Delay(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		waiting.Go(func() { _, _ = run.Result(ctx) })
	}
	before, first := read.Load(), counted.looks.Load()
	waitFor(t, func() bool { return counted.looks.Load() >= first+looks })
	got := read.Load() - before
	t.Logf("%d bytes in %d looks at %d runs of 1 MiB", got, counted.looks.Load()-first, n)
	if got == 0 || got > looks*n*200 {
		t.Errorf("%d bytes were read in %d looks at %d runs", got, looks, n)
	}
}
