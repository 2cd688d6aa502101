package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
	"github.com/seed8ec063be/durable/ui"
)

const (
	uiWatchers  = 20
	uiCallers   = 100
	uiListLoads = 20 // of each list
	uiProbe     = 50 * time.Millisecond
)

// uiLists are the lists that mode ui loads: one for each condition that an index serves, and two searches, which are bounded in time.
var uiLists = []struct{ name, query string }{
	{"all", ""},
	{"failed", "status=failed"},
	{"expired", "status=expired"},
	{"held", "held=yes"},
	{"paused", "status=paused"},
	{"tag", "tag=bench.tag%3D17"},
	{"prefix", "id_prefix=listed-1234"},
	{"id", "id_prefix=listed-123456"},
	{"workflow", "workflow=listed-3"},
	{"version", "run_version=v42"},
	{"worker", "worker=00000000-0000-7000-8000-000000000001"},
	{"ended", "ended_after=10m"},
	{"ended_most", "ended_after=25d&workflow=listed-3"},
	{"search", "workflow=listed-none"},
	{"failure", "workflow=listed-3&failed_step=charge&failed_type=declined"},
}

// dashboard is a dashboard on an engine of its own, with a server.
type dashboard struct {
	store  durable.Store
	engine *durable.Engine
	server *http.Server
	base   string
	client *http.Client
}

func (b *bench) openDashboard(at *site) (*dashboard, error) {
	s, err := at.open(b.ctx)
	if err != nil {
		return nil, err
	}
	e, err := durable.New(s, durable.Config{})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	d := &dashboard{
		store: s, engine: e, server: &http.Server{Handler: ui.Handler(e)}, base: "http://" + listener.Addr().String(),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: uiWatchers + 1}},
	}
	go d.server.Serve(listener) // until close
	return d, nil
}

func (d *dashboard) close() error {
	d.client.CloseIdleConnections()
	return errors.Join(d.server.Close(), d.store.Close())
}

// load loads a page, and returns how long that took.
func (d *dashboard) load(ctx context.Context, path, round string) (time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", d.base+path, nil)
	if err != nil {
		return 0, err
	}
	if round != "" {
		r.Header.Set("Durable-Round", round)
	}
	began := time.Now()
	reply, err := d.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
	}
	if reply.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the page %s has the status %s", path, reply.Status)
	}
	return time.Since(began), nil
}

// watch follows a page as a browser does, until ctx ends: it loads the page when the stream says so.
func (d *dashboard) watch(ctx context.Context, path, run string) error {
	r, err := http.NewRequestWithContext(ctx, "GET", d.base+"/live?run="+run+"&page="+path, nil)
	if err != nil {
		return err
	}
	reply, err := d.client.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		round, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if _, err := d.load(ctx, path, round); err != nil {
			return err
		}
	}
	return nil
}

// crowdAt opens a page in the browsers of the watchers, and returns a function that closes them.
func (d *dashboard) crowdAt(ctx context.Context, path, run string) (leave func() error) {
	ctx, stop := context.WithCancel(ctx)
	failed, all := newFailure(), new(sync.WaitGroup)
	for range uiWatchers {
		all.Go(func() {
			if err := d.watch(ctx, path, run); ctx.Err() == nil {
				failed.set(err)
			}
		})
	}
	return func() error {
		stop()
		all.Wait()
		return failed.get()
	}
}

// ui measures the dashboard: lists of very many runs, the overview under load, what watchers cost the throughput, and the database when
// nothing else happens.
func (b *bench) ui(at *site) (err error) {
	if err := b.makeTables(at); err != nil {
		return err
	}
	if err := b.fillLists(at); err != nil {
		return err
	}
	d, err := b.openDashboard(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	for _, measure := range []func(*site, *dashboard) error{b.uiLists, b.uiOverview, b.uiLive} {
		if err := measure(at, d); err != nil {
			return err
		}
	}
	return nil
}

// fillLists inserts the runs that are listed. On SQLite these are the finished runs of mode aged.
func (b *bench) fillLists(at *site) error {
	if at.pg == nil {
		return b.age(at, b.listed)
	}
	conn, err := pgx.Connect(b.ctx, at.address)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	began := time.Now()
	for from := 0; from < b.listed; from += agedBatch {
		if _, err := conn.Exec(b.ctx, statement("list.postgres.sql"), from, min(from+agedBatch, b.listed), b.listed); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(b.ctx, statement("vacuum.postgres.sql"), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	b.say("%s: %d runs to list, in %.0f s", at.store, b.listed, time.Since(began).Seconds())
	return nil
}

func (b *bench) uiLists(at *site, d *dashboard) error {
	for _, list := range uiLists {
		var took []time.Duration
		for range uiListLoads {
			one, err := d.load(b.ctx, "/runs?"+list.query, "")
			if err != nil {
				return fmt.Errorf("list %s: %w", list.name, err)
			}
			took = append(took, one)
		}
		b.add(&result.Row{Mode: "ui", Store: at.store, Path: "list " + list.name, Figures: []result.Figure{
			{Name: "runs", Value: result.Number(b.listed)},
			{Name: "first_ms", Value: result.Number(inMS(took[0]))},
			{Name: "p50_ms", Value: quantile(milliseconds(took[1:]), 0.5)},
			{Name: "max_ms", Value: result.Number(inMS(slices.Max(took[1:])))},
		}})
	}
	return nil
}

// uiOverview measures the throughput with and without watchers, in turns, and then the overview while runs are started at the rate
// of -rate.
func (b *bench) uiOverview(at *site, d *dashboard) (err error) {
	w := define(b.steps, b.payload)
	callers := b.callerCount(uiCallers)
	process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w.Workflow}, Concurrency: max(256, 2*callers)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.dismiss()) }()
	execute := func(pace func() error) (*outcome, error) {
		return b.load(callers).run(b.ctx, func() (caller, error) {
			return func(func() bool) error {
				if err := pace(); err != nil {
					return err
				}
				run, err := w.Start(b.ctx, process.engine, 1)
				if err == nil {
					_, err = run.Result(b.ctx)
				}
				return err
			}, nil
		})
	}
	var alone, watched []result.Number
	for range b.options.rounds {
		for _, rates := range []*[]result.Number{&alone, &watched} {
			leave := func() error { return nil }
			if rates == &watched {
				leave = d.crowdAt(b.ctx, "/", "")
			}
			o, err := execute(func() error { return nil })
			if err = errors.Join(err, leave()); err != nil {
				return err
			}
			*rates = append(*rates, result.Number(float64(o.workflows)/o.window.Seconds()))
		}
	}
	ctx, stop := context.WithCancel(b.ctx)
	leave, loads := d.crowdAt(ctx, "/", ""), make(chan []time.Duration, 1)
	failed := newFailure()
	go func() {
		var took []time.Duration
		for more := true; more; more = sleep(ctx, uiProbe) {
			one, err := d.load(b.ctx, "/", "") // to its end, so that a short window on a slow machine has at least one
			failed.set(err)
			took = append(took, one)
		}
		loads <- took
	}()
	began, started := time.Now(), new(atomic.Int64)
	o, err := execute(func() error {
		due := began.Add(time.Duration(float64(started.Add(1)) / float64(b.rate) * float64(time.Second)))
		return b.pause(max(0, time.Until(due)))
	})
	stop()
	took := <-loads
	if err = errors.Join(err, leave(), failed.get()); err != nil {
		return err
	}
	b.add(&result.Row{Mode: "ui", Store: at.store, Path: "overview", C: callers, Figures: []result.Figure{
		{Name: "watchers", Value: uiWatchers},
		{Name: "wf_per_s", Value: result.Number(float64(o.workflows) / o.window.Seconds())},
		{Name: "loads", Value: result.Number(len(took))},
		{Name: "p50_ms", Value: quantile(milliseconds(took), 0.5)},
		{Name: "p99_ms", Value: quantile(milliseconds(took), 0.99)},
		{Name: "full_wf_per_s", Value: median(alone)},
		{Name: "watched_wf_per_s", Value: median(watched)},
		{Name: "watched_ratio", Value: median(watched) / median(alone)},
	}})
	return nil
}

// uiLive measures the transactions of the dashboard while all watchers look at one page and no worker runs: at the page of a run that
// waits, and at that of a run to which a signal is sent ten times a second.
func (b *bench) uiLive(at *site, d *dashboard) error {
	if at.pg == nil {
		return nil
	}
	run, err := define(b.steps, b.payload).Start(b.ctx, d.engine, 1, durable.Delay(night))
	if err != nil {
		return err
	}
	for _, changes := range []int{0, 10} {
		info, err := d.engine.Get(b.ctx, run.ID())
		if err != nil {
			return err
		}
		leave := d.crowdAt(b.ctx, "/run?id="+info.RunID, info.RunID)
		if err := b.pause(b.settling() / 2); err != nil {
			return err
		}
		before, _, err := at.activity(b.ctx)
		if err != nil {
			return err
		}
		began, acts := time.Now(), 0
		for period := b.watched; time.Since(began) < period; {
			if changes == 0 {
				if err := b.pause(period); err != nil {
					return err
				}
				continue
			}
			if err := d.engine.Signal(b.ctx, run.ID(), "go", acts); err != nil {
				return err
			}
			acts++
			if err := b.pause(time.Second / time.Duration(changes)); err != nil {
				return err
			}
		}
		seconds := time.Since(began).Seconds()
		if err := b.pause(b.settling() / 2); err != nil { // an idle connection reports its counts up to 10 s late
			return err
		}
		after, _, err := at.activity(b.ctx)
		if err = errors.Join(err, leave()); err != nil {
			return err
		}
		b.add(&result.Row{Mode: "ui", Store: at.store, Path: "run", Figures: []result.Figure{
			{Name: "watchers", Value: uiWatchers},
			{Name: "changes_per_s", Value: result.Number(float64(acts) / seconds)},
			{Name: "xacts_per_s", Value: result.Number((after - before - float64(acts)) / seconds)},
		}})
	}
	return nil
}
