package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/testsize"
)

const (
	dueSlots = 64       // of the worker that comes back
	dueBytes = 32 << 20 // of all inputs together; a smaller test has fewer runs of the same size
	// What the worker's heap and stacks may grow by: several times what its slots need, and
	// far less than what is due.
	dueHeap = 16 << 20
	// What the whole process may grow by, with SQLite's caches, which do not know of the
	// heap, and with the race detector's shadow of everything.
	dueResident = 160 << 20
	// What it may have open: the pools of a store, and what it listens and watches with. On SQLite a connection
	// has two descriptors, and there are seven: a writer, four readers, a watcher, and the one that stays.
	dueConnections = 16
	// Longer than a machine stands still: a lease that ends makes a run claimed once more.
	dueLease = time.Minute
)

// due is a workflow that, asked to, sleeps for an hour, and then does one step. The gauge is
// how many are executed at once; left is called when one no longer is.
func due(l ledger, g *gauge, left func()) *durable.Workflow[string, int] {
	return durable.Define("due", func(c *durable.Ctx, in string) (int, error) {
		g.add(1)
		defer func() {
			g.add(-1)
			left()
		}()
		if strings.HasPrefix(in, "sleep") {
			if err := c.Sleep("hour", time.Hour); err != nil {
				return 0, err
			}
		}
		return c.Step("work", func(ctx context.Context) (int, error) {
			l.did(ctx, c.ID(), "work")
			return len(in), nil
		})
	})
}

// gauge keeps its highest value.
type gauge struct{ now, highest atomic.Int64 }

func (g *gauge) add(n int64) { g.note(g.now.Add(n)) }

func (g *gauge) note(n int64) {
	for old := g.highest.Load(); n > old && !g.highest.CompareAndSwap(old, n); old = g.highest.Load() {
	}
}

func init() {
	// due works until it is ended, and reports what it took at the most. It makes a file
	// when it has executed as many runs as there are.
	scenarios["due"] = func(ctx context.Context, j *job, s durable.Store) error {
		var left atomic.Int64
		w := func(runs *gauge) *durable.Workflow[string, int] {
			return due(j.Ledger, runs, func() {
				if left.Add(1) == int64(j.Runs) {
					if err := os.WriteFile(j.File, nil, 0o600); err != nil {
						say("error", err)
					}
				}
			})
		}
		var runs, heap, goroutines, open gauge
		look := func() {
			heap.note(heapAndStacks())
			goroutines.note(int64(runtime.NumGoroutine()))
			open.note(int64(connections(j.DB)))
		}
		look()
		heapBefore, before := heap.highest.Load(), resident("VmRSS:")
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w(&runs)}, Concurrency: dueSlots, Lease: dueLease})
		if err != nil {
			return err
		}
		looking, stop := context.WithCancel(ctx)
		var looks sync.WaitGroup
		looks.Go(func() {
			for looking.Err() == nil {
				look()
				realtime.Pass(5*time.Millisecond, "between two readings of the gauges")
			}
		})
		err = e.Run(ctx)
		stop()
		looks.Wait()
		say("figures", runs.highest.Load(), goroutines.highest.Load(), open.highest.Load(),
			heap.highest.Load()-heapBefore, before, resident("VmHWM:"), e.Stats().ReleasedExecutions)
		return err
	}
}

// heapAndStacks is what Go's own allocator has in use, in bytes, garbage included.
func heapAndStacks() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return int64(sum)
}

// resident is one of the kernel's counts of this process's memory, in bytes; zero where it
// does not tell.
func resident(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// connections counts what this process has open to the database: sockets, or descriptors
// of the file, its log and its index. Locks of workers are no connections.
func connections(db database) (n int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err != nil {
			continue
		}
		ofFile := db.Kind == "sqlite" && slices.Contains([]string{db.Where, db.Where + "-wal", db.Where + "-shm"}, to)
		if ofFile || strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// pages calls one for every run there is.
func pages(t *testing.T, e *durable.Engine, f durable.Filter, one func(*durable.RunInfo)) (n int) {
	t.Helper()
	for page := (durable.Page{Limit: 1000}); ; {
		got, err := e.List(bounded(t), f, page)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Runs {
			one(&got.Runs[i])
		}
		n += len(got.Runs)
		if page.Cursor = got.Next; page.Cursor == "" {
			return n
		}
	}
}

// Row 35: after an outage everything is due at once: runs that nobody has begun, and runs
// whose sleep was over long ago. One worker comes back and does all of it, each run once,
// and takes no more memory and connections than its slots need. DURABLE_DUE_RUNS says how
// many runs.
func TestRow35_AllDueAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		all, runs := 5000, testsize.Of(5000, 1500)
		if db.Kind == "sqlite" {
			all, runs = 2000, testsize.Of(2000, 800) // the race detector makes SQLite, which was C, ten times slower
		}
		if n, err := strconv.Atoi(os.Getenv("DURABLE_DUE_RUNS")); err == nil {
			runs = n
		}
		limit := 3*patience + time.Duration(runs)*5*time.Millisecond
		l := newLedger(t)
		var awake gauge
		w := due(l, &awake, func() {})
		s := db.openIn(t)
		asleep := runs / 4
		padding := strings.Repeat("x", dueBytes/all)

		// Before the outage: a worker that puts a part of them to sleep, and leaves.
		e := engineOn(t, s, durable.Config{Concurrency: 1024, Lease: dueLease}, w)
		stop := runEngine(t, e)
		startAll(t, e, w, "sleeper", asleep, "sleep"+padding)
		if !within(limit, func() bool {
			return awake.now.Load() == 0 && nobody(t, e, durable.StatusPending, durable.StatusRunning)
		}) {
			t.Fatal("the runs that are to sleep do not")
		}
		stop()

		// Meanwhile: nobody works, clients go on starting, and the hour passes.
		client := engineOn(t, s, durable.Config{})
		startAll(t, client, w, "new", runs-asleep, padding)
		outside(t, db, "UPDATE durable_step SET next_at = 1 WHERE kind = 3", "UPDATE step SET next_at = 'epoch' WHERE kind = 3")
		wake(t, db)
		now := time.Now()
		late := 0
		if n := pages(t, client, durable.Filter{}, func(r *durable.RunInfo) {
			if (r.Status == durable.StatusPending || r.Status == durable.StatusWaiting) && r.WakeAt.Before(now) {
				late++
			}
		}); n != runs || late != runs {
			t.Fatalf("%d runs, of which %d are due: want %d", n, late, runs)
		}

		// After it.
		file := filepath.Join(t.TempDir(), "done")
		p := spawn(t, job{Scenario: "due", DB: db, Ledger: l, Runs: runs, File: file})
		began := time.Now()
		if !within(limit, func() bool {
			_, err := os.Stat(file) // asking the database all the time would be its main work
			return err == nil && nobody(t, client, durable.StatusPending, durable.StatusRunning, durable.StatusWaiting)
		}) {
			t.Fatalf("not all runs were done within %v", limit)
		}
		took := time.Since(began)
		p.signal(syscall.SIGTERM)
		figures := p.expect("figures")
		p.mustEndWell()

		var atOnce, goroutines, open, heap, before, peak, released, again int64
		if _, err := fmt.Sscan(figures, &atOnce, &goroutines, &open, &heap, &before, &peak, &released); err != nil {
			t.Fatal(figures, err)
		}
		completed := pages(t, client, durable.Filter{Status: []durable.Status{durable.StatusCompleted}}, func(r *durable.RunInfo) {
			claims := 1
			if strings.HasPrefix(r.ID, "sleeper") {
				claims = 2
			}
			if r.Epoch < claims || r.Crashes != 0 {
				t.Errorf("%s: claimed %d times, want %d; %d crashes", r.ID, r.Epoch, claims, r.Crashes)
			}
			again += int64(r.Epoch - claims)
		})
		worked := l.counts(t)
		for key, n := range worked {
			if n != 1 {
				t.Errorf("%s ran %d times", key, n)
			}
		}
		if completed != runs || len(worked) != runs || again != released { // what was claimed ahead may be given back
			t.Errorf("of %d runs %d completed and %d did their work; there were %d claims too many, and %d runs were given back", runs, completed, len(worked), again, released)
		}
		if atOnce > dueSlots || atOnce < dueSlots/2 {
			t.Errorf("%d runs were executed at once, by a worker with %d slots", atOnce, dueSlots)
		}
		if heap > dueHeap || goroutines > 4*dueSlots+50 || open > dueConnections {
			t.Errorf("heap and stacks grew by %d bytes (%d allowed); %d goroutines; %d connections (%d allowed)", heap, dueHeap, goroutines, open, dueConnections)
		}
		if peak-before > dueResident {
			t.Errorf("the process grew from %d to %d bytes, by more than %d", before, peak, dueResident)
		}
		t.Logf("runs=%d asleep=%d at_once=%d runs_per_s=%.0f heap_growth_mb=%.1f rss_mb=%.0f rss_peak_mb=%.0f goroutines=%d connections=%d given_back=%d",
			runs, asleep, atOnce, float64(runs)/took.Seconds(), float64(heap)/1e6, float64(before)/1e6, float64(peak)/1e6, goroutines, open, released)
	})
}

// startAll starts n runs in as few transactions as is sensible.
func startAll(t *testing.T, e *durable.Engine, w *durable.Workflow[string, int], prefix string, n int, in string) {
	t.Helper()
	for i := 0; i < n; {
		items := make([]durable.StartItem[string], 0, 500)
		for ; i < n && len(items) < cap(items); i++ {
			items = append(items, durable.StartItem[string]{ID: fmt.Sprint(prefix, i), Input: in})
		}
		if _, err := w.StartMany(bounded(t), e, items); err != nil {
			t.Fatal(err)
		}
	}
}

// nobody reports whether no run is in one of the states.
func nobody(t *testing.T, e *durable.Engine, states ...durable.Status) bool {
	t.Helper()
	page, err := e.List(bounded(t), durable.Filter{Status: states}, durable.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Runs) == 0
}
