package faults

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// passPoints is more than the points of a pass.
const passPoints = 30

// passContext is the context of an admission. SQLite checks it between the parts of a pass, which are its points.
type passContext struct {
	context.Context
	at func()
}

// Err implements context.Context.
func (c passContext) Err() error {
	c.at()
	return c.Context.Err()
}

func init() {
	// admit makes one pass over queue ID, and dies at its point N, or a number of microseconds after it. It says what it has done if
	// there is no such point, and dies then. A pass that found the queue locked is repeated: it has fewer points.
	scenarios["admit"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &fatalPoint{point: j.N, kind: s.Name(), last: passPoints}
		opened, done, err := traced(ctx, j, s, f)
		if err != nil {
			return err
		}
		defer done()
		if _, err := opened.QueueRows(ctx); err != nil { // opens a connection
			return err
		}
		if s.Name() == "sqlite" {
			ctx = passContext{ctx, func() {
				if j.Runs == 0 {
					f.trip()
				} else if f.inside.Load() && f.trips.Add(1) == f.point {
					go func() {
						realtime.Pass(time.Duration(j.Runs)*time.Microsecond, "statements of the transaction are executed before the process dies")
						die()
					}()
				}
			}}
		}
		for {
			pass := store.AdmissionRequest{Queue: j.ID, Now: time.Now(), CloseDurationAfterRewind: time.Second}
			leave := f.enter()
			err := opened.AdmitRuns(ctx, &pass)
			leave()
			if err != nil {
				return err
			}
			if !pass.QueueLocked {
				say("passed", f.trips.Load(), pass.AdmittedCount)
				break
			}
			realtime.Pass(10*time.Millisecond, "the server ends the transaction of a process that died before, which has locked the queue")
		}
		die()
		return nil
	}
}

// blockedSteps are the steps of runs in a queue, each of which waits until it is released. A run is open from when its step begins
// until its last step.
type blockedSteps struct {
	mu        sync.Mutex
	gates     map[string]chan struct{} // by run
	begun     map[string]bool
	open      map[string]int // by key
	executing int
	wrong     []string
	bound     int // no more steps execute at once; with one open run of each key; 0: none
}

func newBlockedSteps(bound int) *blockedSteps {
	return &blockedSteps{gates: make(map[string]chan struct{}), begun: make(map[string]bool), open: make(map[string]int), bound: bound}
}

func (b *blockedSteps) gate(run string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gates[run] == nil {
		b.gates[run] = make(chan struct{})
	}
	return b.gates[run]
}

func (b *blockedSteps) release(runs ...string) {
	for _, run := range runs {
		close(b.gate(run))
	}
}

func (b *blockedSteps) has(runs ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, run := range runs {
		if !b.begun[run] {
			return false
		}
	}
	return true
}

func (b *blockedSteps) count(run, key string, begin bool, executing, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun[run] = b.begun[run] || begin
	b.executing += executing
	b.open[key] += open
	if b.bound > 0 && (b.executing > b.bound || b.open[key] > 1) {
		b.wrong = append(b.wrong, fmt.Sprintf("run %s is one of %d that execute, and of %d open ones of key %s", run, b.executing, b.open[key], key))
	}
}

// unbound fails the test if the bound was exceeded, and ends it.
func (b *blockedSteps) unbound(t testing.TB) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.wrong {
		t.Error(text)
	}
	b.wrong, b.bound = nil, 0
}

// blocked is a workflow whose input is the key. A run of key "waits" waits for a signal after its step.
func (b *blockedSteps) blocked() *durable.Workflow[string, int] {
	return durable.Define("blocked", func(c *durable.Ctx, key string) (int, error) {
		err := c.Do("in", func(ctx context.Context) error {
			b.count(c.ID(), key, true, 1, 1)
			defer b.count(c.ID(), key, false, -1, 0)
			select {
			case <-b.gate(c.ID()):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		if err == nil && key == "waits" {
			_, err = c.Receive[int]("go")
		}
		if err == nil {
			err = c.Do("out", func(context.Context) error {
				b.count(c.ID(), key, false, 0, -1)
				return nil
			})
		}
		return 0, err
	})
}

// dieInPasses kills processes at each point of a pass over a queue. The last one passes all points, and dies then.
func dieInPasses(t *testing.T, db database, queue string, counts *queueCounts) (deaths, points int) {
	t.Helper()
	for points = 1; points < passPoints; points++ {
		p := spawn(t, job{Scenario: "admit", DB: db, ID: queue, N: int64(points)})
		_, passed := p.next("passed")
		p.mustBeKilled(syscall.SIGKILL)
		counts.check(t, fmt.Sprint("after a death at point ", points))
		if passed {
			return deaths, points
		}
		deaths++
		if db.Kind == "sqlite" && points > 5 { // the writes follow the last points
			p := spawn(t, job{Scenario: "admit", DB: db, ID: queue, N: int64(points), Runs: 100 + 300*(points%3)})
			p.next("passed")
			p.mustBeKilled(syscall.SIGKILL)
			counts.check(t, fmt.Sprint("after a death soon after point ", points))
			deaths++
		}
	}
	t.Errorf("a pass has more than %d points", points)
	return deaths, points
}

// Row 52: processes are killed at each round trip of an admission, and between its reads and writes on SQLite. Afterwards the counts
// are those of the places, no more runs execute than the queue allows, and another process admits all of them.
func TestRow52_DeathInAnAdmission(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		b := newBlockedSteps(3)
		w := b.blocked()
		s := &gatedAdmissions{Store: db.openIn(t)}
		e := engineOn(t, s, durable.Config{Lease: time.Minute, Poll: 50 * time.Millisecond, ParkAfter: time.Millisecond}, w)
		counts := countsOf(t, db)
		must(t, "set", e.SetQueue(bounded(t), "q", durable.QueueSettings{MaxExecuting: 3, MaxInProgressPerKey: 1}))
		runEngine(t, e)
		begin := func(id, key string, opts ...durable.StartOption) {
			start(t, e, w, key, append(opts, durable.ID(id), durable.InQueue("q"), durable.GroupKey(key))...)
		}
		waiting := func(n int) {
			await(t, fmt.Sprint(n, " runs to wait in line"), func() bool { return queueInfo(t, e, "q").Waiting == n })
		}
		ends := func(status durable.Status, ids ...string) {
			for _, id := range ids {
				await(t, "the end of "+id, func() bool { return !info(t, e, id).EndedAt.IsZero() })
				if at := info(t, e, id); at.Status != status {
					t.Errorf("run %s is %s: %v", id, at.Status, at.Err)
				}
			}
		}

		// Runs have ended, wait, have arrived, are too late, are in line, and wait behind others of their key.
		begin("a1", "a")
		begin("waits", "waits")
		begin("c", "c")
		await(t, "three runs to execute", func() bool { return b.has("a1", "waits", "c") })
		begin("d", "d")
		begin("a2", "a")
		begin("a3", "a")
		waiting(3)
		s.set(true)
		b.release("a1", "waits")
		ends(durable.StatusCompleted, "a1")
		await(t, "a run to wait", func() bool { return info(t, e, "waits").Status == durable.StatusWaiting })
		begin("e", "e")
		begin("late", "f", durable.StartBy(time.Microsecond))
		deaths, points := dieInPasses(t, db, "q", counts)
		await(t, "the runs that were admitted to execute", func() bool { return b.has("d") })
		s.set(false)
		b.release("c", "d", "a2", "a3", "e")
		must(t, "signal", e.Signal(bounded(t), "waits", "go", 1))
		ends(durable.StatusCompleted, "waits", "c", "d", "a2", "a3", "e")
		ends(durable.StatusExpired, "late")
		mustBeUnused(t, e, "q")
		counts.check(t, "at the end")

		// The queue is deleted.
		begin("g", "g")
		begin("h1", "h")
		begin("i", "i")
		await(t, "three runs to execute", func() bool { return b.has("g", "h1", "i") })
		begin("h2", "h")
		begin("j", "j")
		waiting(2)
		s.set(true)
		b.release("g")
		ends(durable.StatusCompleted, "g")
		begin("k", "k")
		b.unbound(t)
		must(t, "delete", e.DeleteQueue(bounded(t), "q"))
		more, deleting := dieInPasses(t, db, "q", counts)
		s.set(false)
		await(t, "all runs to execute without bounds", func() bool { return b.has("h2", "j", "k") })
		b.release("h1", "i", "h2", "j", "k")
		ends(durable.StatusCompleted, "h1", "i", "h2", "j", "k")
		await(t, "the row of the queue to be deleted", func() bool {
			rows, err := s.QueueRows(bounded(t))
			must(t, "read the queues", err)
			return len(rows) == 0
		})
		counts.check(t, "after the deletion")
		if deaths < 6 || more < 6 {
			t.Errorf("only %d and %d processes died in a pass", deaths, more)
		}
		t.Logf("deaths=%d points=%d,%d", deaths+more, points, deleting)
	})
}
