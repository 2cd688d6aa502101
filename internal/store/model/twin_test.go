package model_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// twinCheck makes the same random calls to a database of each kind, with one clock. The results must be the same, and after each call
// all rows of runs, places, queues, keys, checkpoints and events.
type twinCheck struct {
	*check
	beds    [2]*bed
	now     time.Time
	rows    twinDump // after the last call
	started int

	generations map[string]int32 // of the runs that were repaired
}

var twinQueues = []string{"p", "q"}

// Runs in two queues that have settings or have none, whatever is done to them and to the queues: the two stores stay equal, the counts
// are those of the places, and in the end all runs end.
func TestStoresStayEqual(t *testing.T) {
	var both [2]*bed
	for i, kind := range []string{"sqlite", "postgres"} {
		both[i] = beds[kind](t)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := &twinCheck{check: newCheck(t, both[0]), beds: both, now: base, generations: make(map[string]int32)}
		if err := both[1].empty(c.ctx); err != nil {
			t.Fatalf("empty the database: %v", err)
		}
		c.read("at first")
		for _, queue := range twinQueues {
			if c.dice("has settings", 4) > 0 {
				c.makeCall(c.setQueue(queue))
			}
		}
		for range 4 {
			c.makeCall(c.start())
		}
		t.Repeat(map[string]func(*rapid.T){
			"start":    c.action(func() { c.makeCall(c.start()) }), // or a move, if there are enough runs
			"child":    c.action(func() { c.makeCall(c.startChild()) }),
			"move":     c.action(func() { c.makeCall(c.move()) }),
			"move 2":   c.action(func() { c.makeCall(c.move()) }),
			"deadline": c.action(func() { c.makeCall(c.deadline()) }),
			"begin":    c.action(func() { c.makeCall(c.clearStartBy()) }),
			"release":  c.action(func() { c.makeCall(c.releaseFold()) }),
			"leave":    c.action(func() { c.makeCall(c.leave()) }),
			"control":  c.action(func() { c.makeCall(c.control()) }),
			"claim":    c.action(func() { c.makeCall(c.claim()) }),
			"delete":   c.action(func() { c.makeCall(c.deleteTree()) }),
			"repair":   c.action(func() { c.makeCall(c.repairRun()) }),
			"queue":    c.action(func() { c.makeCall(c.changeQueue()) }),
			"admit":    c.action(func() { c.admit(pick(c.check, "queue", twinQueues)) }),
			"admit 2":  c.action(func() { c.admit(pick(c.check, "queue", twinQueues)) }),
			"time":     c.action(c.passTime),
		})
		c.drain()
	})
}

// twinCall is one call. It returns what must be the same in both databases.
type twinCall struct {
	text string
	do   func(ctx context.Context, s store.Store) (any, error)
	// check checks the result and the rows before and after the call; nil: nothing else than that both databases are equal.
	check func(got any, before, after twinDump) error
}

// makeCall makes the call to both databases, through the same handle of each, and compares.
func (c *twinCheck) makeCall(o *twinCall) any {
	if o == nil {
		return nil
	}
	h := c.handle()
	c.Logf("at %s, handle %d: %s", offset(c.now), h, o.text)
	var got [2]any
	for i, b := range c.beds {
		for {
			var err error
			if got[i], err = o.do(c.ctx, b.handles[h]); err == nil {
				break
			}
			if !again(err) && !errors.Is(err, store.ErrLocked) || c.ctx.Err() != nil {
				c.Fatalf("%s: %s: %v", b.kind, o.text, err)
			}
		}
	}
	if text := differ(got[0], got[1]); text != "" {
		c.Fatalf("%s: SQLite and PostgreSQL returned different results (got: SQLite): %s", o.text, text)
	}
	before := c.rows
	c.read(o.text)
	if o.check != nil {
		if err := o.check(got[0], before, c.rows); err != nil {
			c.Fatalf("%s: %v", o.text, err)
		}
	}
	return got[0]
}

// read reads both databases, and compares them.
func (c *twinCheck) read(after string) {
	var got [2]twinDump
	for i, b := range c.beds {
		var err error
		if got[i], err = b.dump(c.ctx); err != nil {
			c.Fatalf("%s: %v", b.kind, err)
		}
	}
	if text := got[0].diff(got[1]); text != "" {
		c.Fatalf("after %s, SQLite has, and PostgreSQL (other) has:%s", after, text)
	}
	if err := got[0].checkCounts(); err != nil {
		c.Fatalf("after %s: %v", after, err)
	}
	c.rows = got[0]
}

// passTime lets time pass.
func (c *twinCheck) passTime() {
	c.now = c.now.Add(time.Duration(c.dice("pass", 2500)) * time.Millisecond)
	c.Logf("it is %s", offset(c.now))
}

// runs returns the runs for which ok holds, in the order of their UUIDs.
func (c *twinCheck) runs(ok func(r twinRow) bool) (runs []twinRow) {
	for _, r := range c.rows["run"] {
		if ok(r) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b twinRow) int { return store.CompareUUIDsByShard(a.uuid("id"), b.uuid("id")) })
	return runs
}

// withStatus returns a run with one of the statuses, mostly, or nil.
func (c *twinCheck) withStatus(what string, some ...store.Status) twinRow {
	any := c.dice("any status", 10) == 0
	runs := c.runs(func(r twinRow) bool { return any || slices.Contains(some, r.status()) })
	if len(runs) == 0 {
		return nil
	}
	return pick(c.check, what, runs)
}

// hasRow reports whether the queue has a row that is not marked as deleted.
func (c *twinCheck) hasRow(queue string) bool {
	q := c.rows["queue"][queue+" "]
	return q != nil && !q.is("deleted")
}

// needsPlace reports whether a process thinks that runs of the queue need a place. Now and then it does not know the row of the queue.
func (c *twinCheck) needsPlace(queue string) bool {
	return c.hasRow(queue) != (c.dice("mistaken", 8) == 0)
}

// admit makes passes over the queue until there is nothing more to do.
func (c *twinCheck) admit(queue string) {
	strays := c.runs(func(r twinRow) bool {
		return r["queue"] == queue && r.lane().Admission() == store.AdmissionNotNeeded && r["wake_at"] != ""
	})
	if len(strays) > 0 && c.hasRow(queue) {
		realtime.Pass(store.StrayCheckInterval+10*time.Millisecond, "stores look for strays at most once in this time")
	}
	pass := func(ctx context.Context, s store.Store) (*store.AdmissionRequest, error) {
		for range 50 {
			a := &store.AdmissionRequest{Queue: queue, Now: c.now, CloseDurationAfterRewind: time.Minute}
			if err := s.AdmitRuns(ctx, a); err != nil {
				return nil, err
			}
			if !a.HasMoreWork && !a.QueueLocked {
				return a, nil
			}
		}
		return nil, errors.New("the passes never end")
	}
	c.makeCall(&twinCall{text: "admit " + queue, do: func(ctx context.Context, s store.Store) (any, error) {
		a, err := pass(ctx, s)
		if err != nil {
			return nil, err
		}
		depth, err := s.QueueDepth(ctx, queue, 100)
		return [2]any{a.NextPassAt, depth}, err
	}})
}

// drain resumes, releases, claims and ends all runs.
func (c *twinCheck) drain() {
	for range 100 {
		for _, queue := range twinQueues {
			c.makeCall(&twinCall{text: "resume queue " + queue, do: func(ctx context.Context, s store.Store) (any, error) {
				return s.PauseQueue(ctx, store.QueuePauseRequest{Name: queue, Resume: true})
			}})
			c.admit(queue)
		}
		live := c.runs(func(r twinRow) bool { return !r.status().IsTerminal() })
		if len(live) == 0 {
			for name, q := range c.rows["queue"] {
				if q.int("waiting")+q.int("executing")+q.int("open") != 0 {
					c.Fatalf("all runs have ended, and queue %s is %s", name, q)
				}
			}
			return
		}
		for _, r := range live {
			switch r.status() {
			case store.Paused:
				c.makeCall(c.controlCall(store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{r.uuid("id")}, Now: c.now}))
			case store.Running:
				status := store.Failed
				if r.control()&store.CancelRequested != 0 {
					status = store.Cancelled
				}
				c.makeCall(c.endCall(store.OwnershipEnd{UUID: r.uuid("id"), Now: c.now, Epoch: r.epoch(), Status: status, EndedAt: c.now, Error: []byte("over")}, r))
			case store.Waiting:
				c.makeCall(c.controlCall(store.ControlRequest{Verb: store.VerbTerminate, Runs: []uuid.UUID{r.uuid("id")}, Now: c.now}))
			}
			if r.lane() == store.UnreleasedLane && r.status() == store.Pending {
				c.makeCall(c.releaseCall(r, r["queue"], c.hasRow(r["queue"]), time.Time{}, time.Time{}))
			}
		}
		c.now = c.now.Add(time.Second)
		c.makeCall(c.claimCall(served[0], time.Hour))
	}
	c.Fatalf("runs never end: %v", c.runs(func(r twinRow) bool { return !r.status().IsTerminal() }))
}

// text describes a run.
func (r twinRow) text() string {
	return fmt.Sprintf("%s (%s in %s, priority %s, admission %d)", shorten(r.uuid("id")), r.status(), r["queue"], r["priority"], r.lane().Admission())
}
