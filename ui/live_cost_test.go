package ui_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/ui"
)

// What the dashboard may send to the database, as docs/dashboard.md says: for a page, and in a second.
const (
	mostOfAPage   = 30
	mostOfASecond = 2 + 4*mostOfAPage
)

// statements counts what is sent to the server.
type statements struct{ sent atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.sent.Add(1)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	s.sent.Add(1)
}

func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// counted returns an engine that executes runs, and one for the dashboard, whose statements are counted.
func counted(t *testing.T) (working, looking *durable.Engine, count *statements) {
	t.Helper()
	schema := postgres.Schema(pgtest.LendSchema(t, "migration", "secret"))
	store, err := postgres.Open(within(t), pgtest.ServerURL(t), schema)
	if err != nil {
		t.Fatal(err)
	}
	if working, err = durable.New(store, durable.Config{Workflows: []durable.Definition{order, approval, family, leaf, large, repairPreview}}); err != nil {
		t.Fatal(err)
	}
	cfg, err := pgxpool.ParseConfig(pgtest.ServerURL(t))
	if err != nil {
		t.Fatal(err)
	}
	count = new(statements)
	cfg.ConnConfig.Tracer = count
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	traced, err := postgres.New(pool, schema)
	if err != nil {
		t.Fatal(err)
	}
	if looking, err = durable.New(traced, durable.Config{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- working.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		err := errors.Join(<-done, store.Close(), traced.Close())
		pool.Close()
		if err != nil {
			t.Error(err)
		}
	})
	return working, looking, count
}

// However many people watch, a serving process sends a bounded number of statements a second.
func TestStatementsOfWatchersAreBounded(t *testing.T) {
	t.Parallel()
	working, looking, count := counted(t)
	var waiting []string
	for i := range 9 {
		waiting = append(waiting, fmt.Sprint("waits ", i))
		start(t, working, approval, waiting[i], "in")
	}
	start(t, working, order, "bad", "declined")
	if _, err := large.Call(within(t), working, [2]int{70, 120}, durable.ID("large")); err != nil {
		t.Fatal(err)
	}
	if _, err := repairPreview.Start(within(t), working, "in", durable.ID("plan")); err != nil {
		t.Fatal(err)
	}
	h := ui.Handler(looking, ui.Authorize(anyone))
	paths := []string{"/", "/runs", "/runs?status=live", "/queues", "/limits", "/schedules", "/workers", runPage(waiting[0]), runPage("bad"), runPage("plan"), runPage("large")}
	some := ui.Handler(looking, ui.Authorize(anyone), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{CreatedAfter: time.Unix(1, 0)} }))
	watched := int64(0) // statements of a page that is watched below
	for name, h := range map[string]http.Handler{"all": h, "some": some} {
		for _, path := range paths {
			send(h, path, nil) // what is read once
			before := count.sent.Load()
			if got := send(h, path, nil, "Durable-Round", ui.StartRound(h)); got.Code != http.StatusOK && got.Code != http.StatusForbidden {
				t.Fatalf("%s gives %d: %s", path, got.Code, got.Body)
			}
			n := count.sent.Load() - before
			if name == "all" && (path == "/" || path == runPage(waiting[0])) {
				watched = max(watched, n)
			}
			t.Logf("%s sends %d statements to somebody who may see %s runs", path, n, name)
			if n > mostOfAPage {
				t.Errorf("%s sends %d statements to somebody who may see %s runs", path, n, name)
			}
		}
	}

	server := httptest.NewServer(h)
	defer server.Close()
	ctx, stop := context.WithCancel(within(t))
	var loads atomic.Int64
	var all sync.WaitGroup
	watch := func(path string, told func()) {
		run := ""
		if address, err := url.Parse(path); err == nil {
			run = address.Query().Get("id")
		}
		_, next := stream(t, ctx, server.URL, "/live?"+url.Values{"run": {run}, "page": {path}}.Encode())
		all.Go(func() {
			for line := next(); line != ""; line = next() {
				round, found := strings.CutPrefix(line, "data: ")
				if !found {
					continue
				}
				request, err := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Durable-Round", round)
				if reply, err := http.DefaultClient.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, reply.Body) // it fails when the test ends
					reply.Body.Close()
					loads.Add(1)
				}
				told()
			}
		})
	}
	ticks := make(chan time.Time, 100)
	for i := range 20 { // of the overview, of a run, and of eight other runs
		switch {
		case i < 6:
			watch("/", func() {})
		case i == 6:
			watch(runPage(waiting[0]), func() { ticks <- time.Now() })
		case i < 12:
			watch(runPage(waiting[0]), func() {})
		default:
			watch(runPage(waiting[i-11]), func() {})
		}
	}
	all.Go(func() { // all of them change all the time; the calls fail when the test ends
		for ctx.Err() == nil {
			for _, id := range waiting {
				_, _ = working.Pause(ctx, id)
				_, _ = working.Resume(ctx, id)
			}
		}
	})
	first, before := <-ticks, count.sent.Load()
	last := first
	for range 2 { // with so many pages, each has a round every three seconds
		select {
		case last = <-ticks:
		case <-ctx.Done():
			t.Fatal("the page of a run that changes has no rounds")
		}
	}
	n, took := float64(count.sent.Load()-before), last.Sub(first).Seconds()
	stop()
	all.Wait()
	t.Logf("%g statements in %.1f s, for %d loads of pages", n, took, loads.Load())
	bound := min(mostOfASecond, 2+4*watched)
	if n > float64(bound)*(took+1) { // the first and the last round may be within the time
		t.Errorf("20 watchers cost %g statements in %.1f s, more than %d a second", n, took, bound)
	}
	if loads.Load() < 30 {
		t.Errorf("pages are loaded %d times", loads.Load())
	}
}
