package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// calling is a workflow whose three steps call a provider under limits: one of places, one of places for each key, and one of
// places and a rate.
func calling(url string) *durable.Workflow[int, int] {
	limits := map[string]*durable.Limit{
		"all":   durable.NewLimit("all", durable.Concurrent(1)),
		"keyed": durable.NewLimit("keyed", durable.Concurrent(1)),
		"rated": durable.NewLimit("rated", durable.Concurrent(2), durable.Rate(50, time.Second), durable.Burst(2)),
	}
	return durable.Define("calling", func(c *durable.Ctx, n int) (int, error) {
		for _, name := range []string{"all", "keyed", "rated"} {
			line, opts := name, []durable.PermitOption(nil)
			if name == "keyed" {
				key := fmt.Sprint("k", n%2)
				line, opts = name+key, append(opts, durable.LimitKey(key))
			}
			err := c.Do(name, func(ctx context.Context) error {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/"+line, nil)
				if err != nil {
					return err
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				return res.Body.Close()
			}, limits[name].Permit(opts...), durable.Retry(durable.RetryPolicy{Attempts: 10, Initial: 10 * time.Millisecond}))
			if err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// fatalGrants is a store whose process dies at a call of Permits: before it, or after it.
type fatalGrants struct {
	durable.Store
	calls atomic.Int64
	at    int64
	point string
}

func (f *fatalGrants) GrantAndReturnPermits(ctx context.Context, b *store.PermitBatch) error {
	n := f.calls.Add(1)
	if n >= f.at && f.point == "before" {
		die()
	}
	err := f.Store.GrantAndReturnPermits(ctx, b)
	switch {
	case n < f.at:
	case f.point == "granted":
		for _, a := range b.Requests {
			if err == nil && a.Outcome == store.Written {
				die() // the holder, before its call
			}
		}
	case f.point == "returned" && len(b.Returns) > 0:
		die() // others have got an offer; or the steps of this process have
	case f.point == "lost" && n%3 == 0 && err == nil:
		return store.ErrUnavailable // although it is committed
	}
	return err
}

func init() {
	scenarios["calling"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &fatalGrants{Store: s, at: j.N, point: j.Point}
		e, err := durable.New(f, durable.Config{
			Workflows: []durable.Definition{calling(j.File)}, Lease: j.Lease, Poll: 50 * time.Millisecond, ParkAfter: 20 * time.Millisecond,
		})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// provider counts the calls that are open at once, by path.
type provider struct {
	open, most, calls map[string]*atomic.Int64
}

func newProvider() *provider {
	p := &provider{map[string]*atomic.Int64{}, map[string]*atomic.Int64{}, map[string]*atomic.Int64{}}
	for _, line := range []string{"/all", "/keyedk0", "/keyedk1", "/rated"} {
		p.open[line], p.most[line], p.calls[line] = new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)
	}
	return p
}

func (p *provider) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	line := r.URL.Path
	n := p.open[line].Add(1)
	defer p.open[line].Add(-1)
	p.calls[line].Add(1)
	for most := p.most[line].Load(); n > most && !p.most[line].CompareAndSwap(most, n); most = p.most[line].Load() {
	}
	realtime.Pass(10*time.Millisecond, "a call takes its time")
}

// Row 47: workers are killed before and after they exchange permits, and lose replies. No
// more calls are open at the provider than the limits allow, and all runs complete soon.
func TestRow47_DeathWithPermits(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		p := newProvider()
		server := httptest.NewServer(p)
		t.Cleanup(server.Close)
		client := engineOn(t, db.openIn(t), durable.Config{})
		w := calling(server.URL)
		const runs = 60
		for i := range runs {
			if _, err := w.Start(bounded(t), client, i, durable.ID(fmt.Sprint("c", i))); err != nil {
				t.Fatal(err)
			}
		}
		j := job{Scenario: "calling", DB: db, File: server.URL, Lease: time.Second, N: 8}
		for _, point := range []string{"before", "granted", "returned"} {
			j.Point = point
			one, two := spawn(t, j), spawn(t, j)
			<-one.ended
			<-two.ended
		}
		j.Point = "lost"
		one, two := spawn(t, j), spawn(t, j)
		one.expect("working")
		two.expect("working")
		for ended := 0; ended < runs; { // they call one after the other
			await(t, fmt.Sprint("another run to end than the first ", ended), func() bool {
				page, err := client.List(bounded(t), durable.Filter{Status: []durable.Status{durable.StatusCompleted, durable.StatusFailed}}, durable.Page{Limit: runs})
				if err != nil {
					t.Fatal(err)
				}
				before := ended
				ended = len(page.Runs)
				return ended > before
			})
		}
		for line, most := range map[string]int64{"/all": 1, "/keyedk0": 1, "/keyedk1": 1, "/rated": 2} {
			if n := p.most[line].Load(); n > most || p.calls[line].Load() == 0 {
				t.Errorf("%s: %d of %d calls were open at once, want at most %d", line, n, p.calls[line].Load(), most)
			}
		}
		for i := range runs {
			if s := info(t, client, fmt.Sprint("c", i)).Status; s != durable.StatusCompleted {
				t.Errorf("run c%d is %s", i, s)
			}
		}
	})
}
