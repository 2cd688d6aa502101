package faults

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// folding is the workflow of starts that fold. What the ledger holds of a run begins with its input, and finishes with "end", however
// the run ends.
func folding(l ledger) *durable.Workflow[string, string] {
	return durable.Define("folding", func(c *durable.Ctx, in string) (string, error) {
		end := func(ctx context.Context) error { l.did(ctx, c.ID(), "end"); return nil }
		if err := c.Compensate("undo", end); err != nil {
			return "", err
		}
		if err := c.Do(in, func(ctx context.Context) error { l.did(ctx, c.ID(), in); return nil }); err != nil {
			return "", err
		}
		if err := c.Sleep("work", 20*time.Millisecond); err != nil {
			return "", err
		}
		return in, c.Do("end", end)
	})
}

// fatalFold is a store whose process dies while a start changes its key, or while a worker looks at one: before the change, at a
// statement of it, or after it. With a negative point, it lives.
type fatalFold struct {
	durable.Store
	fatalPoint
	looks bool // it dies in the look of a worker
}

func (f *fatalFold) UpdateStartKeyRow(ctx context.Context, c *store.StartKeyChangeRequest) error {
	if c.SkipLocked != f.looks || f.point < 0 {
		return f.Store.UpdateStartKeyRow(ctx, c)
	}
	defer f.enter()()
	plan := c.Plan
	c.Plan = func(s store.StartKeySnapshot) *store.StartKeyWrite {
		w := plan(s)
		if w != nil {
			f.decided()
		}
		return w
	}
	err := f.Store.UpdateStartKeyRow(ctx, c)
	if err == nil && c.AppliedWrite != nil {
		f.committed()
	}
	return err
}

func init() {
	// fold makes starts that fold, executes runs, and dies in a start or in a look, at point N.
	scenarios["fold"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &fatalFold{Store: s, fatalPoint: fatalPoint{point: j.N, kind: s.Name()}, looks: j.Point == "look"}
		opened, done, err := traced(ctx, j, s, &f.fatalPoint)
		if err != nil {
			return err
		}
		defer done()
		f.Store = opened
		w := folding(j.Ledger)
		e, err := durable.New(f, durable.Config{Workflows: []durable.Definition{w}, Lease: time.Second, Poll: 50 * time.Millisecond, MaxCrashes: 1000})
		if err != nil {
			return err
		}
		starts := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < 4 && err == nil; i++ {
				var run *durable.Run[string]
				if run, err = w.Start(ctx, e, fmt.Sprint("s", i), durable.Singleton("k", durable.SingletonReplace)); err == nil {
					within(300*time.Millisecond, func() bool { // so that most runs begin before they are replaced
						now, err := e.Get(ctx, run.ID())
						return err != nil || !now.StartedAt.IsZero() || !now.EndedAt.IsZero()
					})
					_, err = w.Start(ctx, e, fmt.Sprint("d", i), durable.Debounce("k", time.Millisecond, 20*time.Millisecond))
				}
			}
			if err == nil {
				say("started")
			}
			starts <- err
		}()
		err = e.Run(ctx)
		if failed := <-starts; failed != nil {
			return failed
		}
		return err
	}
}

// Row 51: processes that make starts with one key, and release what waits, are killed before, between and after the statements of the
// transactions. At most one run of a singleton is live at any time, nothing waits for ever, and the last input is executed.
func TestRow51_DeathBetweenStartsThatFold(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		w := folding(l)
		client := engineOn(t, db.openIn(t), durable.Config{})
		deaths := 0
		for point := int64(0); point <= lastPoint; point++ {
			if db.Kind == "sqlite" && point%3 == 1 && point > 1 { // these points are times, and 8 of them suffice
				continue
			}
			two := []*process{
				spawn(t, job{Scenario: "fold", DB: db, Ledger: l, N: point, Point: "start"}),
				spawn(t, job{Scenario: "fold", DB: db, Ledger: l, N: point, Point: "look"}),
			}
			for _, p := range two { // a point may be beyond the last statement: then the process lives
				if _, lives := p.next("started"); lives && p == two[1] {
					within(300*time.Millisecond, func() bool {
						select {
						case <-p.ended:
							return true
						default:
							return false
						}
					})
				}
				p.signal(syscall.SIGKILL)
				if st, ok := p.wait().Sys().(syscall.WaitStatus); !ok || !st.Signaled() {
					t.Fatalf("a process ended by itself: it said %q\n%s", p.seen, p.tail())
				}
				if !slices.Contains(p.seen, "started") {
					deaths++
				}
			}
		}
		if deaths < 8 {
			t.Errorf("only %d processes died in a start", deaths)
		}
		survivor := spawn(t, job{Scenario: "fold", DB: db, Ledger: l, N: -1})
		survivor.expect("started")
		for i := range 3 { // on a slow machine all processes died before one of their runs began
			next := start(t, client, w, fmt.Sprint("single ", i), durable.Singleton("k", durable.SingletonReplace))
			await(t, "the start of a run that replaces another", func() bool { return !info(t, client, next.ID()).StartedAt.IsZero() })
		}
		last := start(t, client, w, "last single", durable.Singleton("k", durable.SingletonReplace))
		debounced := start(t, client, w, "last", durable.Debounce("k", time.Millisecond, 20*time.Millisecond))
		for want, run := range map[string]*durable.Run[string]{"last single": last, "last": debounced} {
			if got, err := run.Result(bounded(t)); got != want || err != nil {
				t.Errorf("%q: got %q, %v", want, got, err)
			}
		}
		var runs []*durable.RunInfo
		await(t, "the end of all runs", func() bool {
			page, err := client.List(bounded(t), durable.Filter{}, durable.Page{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			runs = nil
			for _, r := range page.Runs {
				if r.EndedAt.IsZero() {
					return false
				}
				if r.StartedAt.IsZero() {
					continue // it was replaced while it waited
				}
				if r := info(t, client, r.ID); r.Input != nil && string(r.Input)[1] != 'd' && string(r.Input) != `"last"` {
					runs = append(runs, r)
				}
			}
			return true
		})
		// The ledger says what overlapped: the times in the rows come from processes that estimate the database's time.
		singleton, begun, ended := make(map[string]bool), make(map[string]bool), make(map[string]bool)
		for _, r := range runs {
			singleton[r.RunID] = true
		}
		for _, entry := range l.read(t) {
			switch {
			case !singleton[entry.Run]:
			case entry.Step == "end":
				ended[entry.Run] = true
			case !begun[entry.Run]:
				for other := range begun {
					if !ended[other] {
						t.Errorf("run %s began before run %s ended", entry.Run, other)
					}
				}
				begun[entry.Run] = true
			}
		}
		if len(runs) < 4 {
			t.Errorf("only %d singletons began", len(runs))
		}
		t.Logf("singletons=%d deaths=%d", len(runs), deaths)
	})
}
