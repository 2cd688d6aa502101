package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// holding is a workflow whose step waits for the file, and records when it begins and ends.
func holding(l ledger, file string) *durable.Workflow[int, int] {
	return durable.Define("holding", func(c *durable.Ctx, n int) (int, error) {
		return n, c.Do("hold", func(ctx context.Context) error {
			l.did(ctx, c.ID(), "in")
			err := gates{0: file}.pass(ctx, 0)
			l.did(ctx, c.ID(), "out")
			return err
		})
	})
}

func init() {
	scenarios["holding"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{holding(j.Ledger, j.File)}, Lease: j.Lease, Poll: 50 * time.Millisecond})
		if err != nil {
			return err
		}
		return e.Run(ctx)
	}
}

// Row 48: the process is killed that executes the run with the last place of a queue, or of a key. The run keeps its place until
// another worker takes it over, when the lease has ended or the process is known to be dead, and while that executes it. Its successor is admitted when it has ended, or is paused because its
// process has died too often. Two never execute at once.
func TestRow48_DeathWithTheLastPlace(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		for _, crashes := range []int{5, 1} {
			t.Run(fmt.Sprint(crashes, " crashes allowed"), func(t *testing.T) {
				t.Parallel()
				deathWithTheLastPlace(t, fresh(t, db.Kind), crashes)
			})
		}
	})
}

func deathWithTheLastPlace(t *testing.T, db database, crashes int) {
	l, file := newLedger(t), filepath.Join(t.TempDir(), "gate")
	w := holding(l, file)
	var claims sync.RWMutex
	claims.Lock() // this process claims nothing before the other one has died
	open := sync.OnceFunc(claims.Unlock)
	s := &faulty{Store: db.openIn(t), beforeClaim: func(int64) error {
		claims.RLock()
		defer claims.RUnlock()
		return nil
	}}
	e := engineOn(t, s, durable.Config{Lease: time.Minute, Poll: 50 * time.Millisecond, MaxCrashes: crashes}, w)
	counts := countsOf(t, db)
	queues := []string{"queue", "key"}
	must(t, "set", e.SetQueue(bounded(t), "queue", durable.QueueSettings{MaxExecuting: 1}))
	must(t, "set", e.SetQueue(bounded(t), "key", durable.QueueSettings{MaxInProgressPerKey: 1}))
	begin := func(queue, id string) {
		start(t, e, w, 1, durable.ID(queue+id), durable.InQueue(queue), durable.GroupKey("k"))
	}
	in := func(run string) int { return len(l.of(t, run, "in")) }

	holder := spawn(t, job{Scenario: "holding", DB: db, Ledger: l, File: file, Lease: time.Second})
	for _, q := range queues {
		begin(q, "1")
	}
	for _, q := range queues {
		await(t, "the first run to execute", func() bool { return in(q+"1") > 0 })
	}
	runEngine(t, e)
	t.Cleanup(open) // before the engine stops
	for _, q := range queues {
		begin(q, "2")
		await(t, "the second run to wait for its turn", func() bool { return queueInfo(t, e, q).Waiting == 1 })
	}
	killed := time.Now()
	holder.kill()
	before := make(map[string]int)
	for _, q := range queues {
		before[q] = in(q + "1")
		if in(q+"2") > 0 {
			t.Errorf("a second run of %s began while the first one executed", q)
		}
	}
	counts.check(t, "after the death")
	open()
	if crashes == 1 {
		await(t, "the first runs to be paused", func() bool {
			return info(t, e, "queue1").Status == durable.StatusPaused && info(t, e, "key1").Status == durable.StatusPaused
		})
		await(t, "the successor of a paused run to execute", func() bool { return in("queue2") > 0 })
		if at := l.of(t, "queue2", "in")[0].At; at.Before(killed) {
			t.Errorf("the successor began %v before the holder was killed", killed.Sub(at))
		}
		if at := info(t, e, "key2"); in("key2") > 0 || at.Place == nil || at.Place.State != durable.PlaceBehindKey {
			t.Errorf("a run whose key has an open run that is paused: %v", at.Place)
		}
		for _, q := range queues {
			_, err := e.Resume(bounded(t), q+"1")
			must(t, "resume", err)
		}
		await(t, "the paused run of the key to go on", func() bool { return in("key1") > before["key"] })
	} else {
		for _, q := range queues {
			await(t, "another worker to execute the first run of "+q, func() bool { return in(q+"1") > before[q] })
			if at := l.of(t, q+"1", "in")[before[q]].At; at.Before(killed) {
				t.Errorf("run %s1 was taken over %v before its holder was killed", q, killed.Sub(at))
			}
			if in(q+"2") > 0 {
				t.Errorf("a second run of %s began while the first one was taken over", q)
			}
		}
	}
	counts.check(t, "after the takeover")
	must(t, "open the gate", os.WriteFile(file, nil, 0o600))
	for _, q := range queues {
		for _, id := range []string{"1", "2"} {
			if _, err := result(t, e, w, q+id); err != nil {
				t.Error(err)
			}
		}
		mustBeUnused(t, e, q)
	}
	counts.check(t, "at the end")
	executing := make(map[string]string) // by queue
	for _, x := range l.read(t) {
		q := x.Run[:len(x.Run)-1]
		switch {
		case x.Pid == holder.cmd.Process.Pid:
		case x.Step == "out":
			delete(executing, q)
		case executing[q] != "":
			t.Errorf("%s began while %s executed", x.Run, executing[q])
		default:
			executing[q] = x.Run
		}
	}
	t.Logf("executed=%d", len(l.read(t)))
}
