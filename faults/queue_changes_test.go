package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// keyedWork is a workflow whose step records when it begins and ends. Its input is its key.
func keyedWork(l ledger) *durable.Workflow[string, string] {
	return durable.Define("keyed work", func(c *durable.Ctx, key string) (string, error) {
		return key, c.Do("work", func(ctx context.Context) error {
			l.did(ctx, c.ID(), "in "+key)
			l.did(ctx, c.ID(), "out "+key)
			return nil
		})
	})
}

// mostChanged is the largest Executing that processes set.
const mostChanged = 3

// changeQueue makes change number n of a queue.
func changeQueue(ctx context.Context, e *durable.Engine, n int, deletes bool) error {
	set := func() error {
		return e.SetQueue(ctx, "q", durable.QueueSettings{MaxExecuting: 1 + n%mostChanged, MaxInProgressPerKey: 1, MaxInProgress: (n % 2) * 4})
	}
	var err error
	switch {
	case deletes && n%4 == 3:
		err = e.DeleteQueue(ctx, "q")
	case n%4 == 1:
		err = e.PauseQueue(ctx, "q")
	case n%4 == 2:
		err = e.ResumeQueue(ctx, "q")
	default:
		err = set()
	}
	if deletes && errors.Is(err, durable.ErrNotFound) {
		return nil // another process has deleted it
	}
	return err
}

func init() {
	// keyed work starts N runs of a queue, changes it after each start, and executes runs.
	scenarios["keyed work"] = func(ctx context.Context, j *job, s durable.Store) error {
		w := keyedWork(j.Ledger)
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}, Lease: time.Minute, Poll: 50 * time.Millisecond, MaxCrashes: 1})
		if err != nil {
			return err
		}
		changed := make(chan error, 1)
		go func() {
			changed <- func() error {
				for n := range int(j.N) {
					key := fmt.Sprint("k", n%4)
					opts := []durable.StartOption{durable.ID(fmt.Sprint(j.ID, n)), durable.InQueue("q")}
					_, err := w.Start(ctx, e, key, append(opts, durable.GroupKey(key))...)
					if j.Point == "delete" && errors.Is(err, durable.ErrInvalidConfig) { // the queue is deleted
						_, err = w.Start(ctx, e, key, opts...)
					}
					if err == nil {
						err = changeQueue(ctx, e, n, j.Point == "delete")
					}
					if err != nil {
						return err
					}
				}
				for {
					if err := e.SetQueue(ctx, "q", durable.QueueSettings{MaxExecuting: mostChanged, MaxInProgressPerKey: 1}); err != nil {
						return err
					}
					if err := e.ResumeQueue(ctx, "q"); j.Point != "delete" || !errors.Is(err, durable.ErrNotFound) {
						return err
					} // the other process has deleted it in between
				}
			}()
		}()
		ran := make(chan error, 1)
		go func() { ran <- e.Run(ctx) }()
		if err := <-changed; err != nil {
			return err
		}
		say("changed")
		return <-ran
	}
}

// Row 49: two processes change one queue at once, while both start and execute its runs: they set it, pause it, resume it, and delete
// it. The counts are those of the places at any moment, all runs end, and no bound is exceeded while the queue has one.
func TestRow49_TwoProcessesChangeOneQueue(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		for _, point := range []string{"set", "delete"} {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				changeAtOnce(t, fresh(t, db.Kind), point)
			})
		}
	})
}

func changeAtOnce(t *testing.T, db database, point string) {
	const changes = 16
	l := newLedger(t)
	client := engineOn(t, db.openIn(t), durable.Config{})
	must(t, "set", client.SetQueue(bounded(t), "q", durable.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1}))
	counts := countsOf(t, db)
	two := []*process{
		spawn(t, job{Scenario: "keyed work", DB: db, Ledger: l, N: changes, ID: "a", Point: point}),
		spawn(t, job{Scenario: "keyed work", DB: db, Ledger: l, N: changes, ID: "b", Point: point}),
	}
	compared := 0
	var last time.Time
	await(t, "both processes to make their changes", func() bool {
		if time.Since(last) > 30*time.Millisecond {
			counts.check(t, "while the queue is changed")
			last = time.Now()
			compared++
		}
		for _, p := range two {
			if closed(p.ended) {
				t.Fatalf("a process has ended; it said %q\n%s", p.said(), p.tail())
			}
		}
		return slices.Contains(two[0].said(), "changed") && slices.Contains(two[1].said(), "changed")
	})
	for _, p := range []string{"a", "b"} {
		for n := range changes {
			id := fmt.Sprint(p, n)
			await(t, "the end of "+id, func() bool { return !info(t, client, id).EndedAt.IsZero() })
			if at := info(t, client, id); at.Status != durable.StatusCompleted {
				t.Errorf("run %s is %s: %v", id, at.Status, at.Err)
			}
		}
	}
	mustBeUnused(t, client, "q")
	counts.check(t, "at the end")
	if q := queueInfo(t, client, "q"); q == nil || q.Settings.MaxExecuting != mostChanged || !q.PausedAt.IsZero() {
		t.Errorf("the queue is %+v", q)
	}
	executing, byKey, both := 0, make(map[string]int), make(map[int]bool)
	most := 0
	for _, x := range l.read(t) {
		both[x.Pid] = true
		by, key := 1, x.Step[len("in "):]
		if x.Step[:2] != "in" {
			by, key = -1, x.Step[len("out "):]
		}
		executing += by
		byKey[key] += by
		most = max(most, executing)
		if point == "set" && (executing > mostChanged || byKey[key] > 1) {
			t.Errorf("%d runs execute, %d of them of key %s", executing, byKey[key], key)
		}
	}
	t.Logf("compared=%d most=%d processes=%d", compared, most, len(both))
}
