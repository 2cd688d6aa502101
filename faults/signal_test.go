package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// lines is how many entries the ledger has; it is cheaper than to read them.
func (l ledger) lines(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

// has reports whether the ledger has the entry; it is cheaper than to read it.
func (l ledger) has(t testing.TB, run, step string) bool {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Contains(text, fmt.Appendf(nil, "{\"Run\":%q,\"Step\":%q,", run, step))
}

// duel is a workflow that waits for an answer within the given time, and then takes all
// the answers that there are to be: one of each of two senders. It returns what it got,
// -1 for a timeout, in order; the last is a look whether there was one too many.
var duel = durable.Define("duel", func(c *durable.Ctx, wait time.Duration) ([]int, error) {
	var got []int
	v, err := c.Receive[int]("answer", durable.Within(wait), durable.Else(-1))
	if err != nil {
		return nil, err
	}
	got = append(got, v)
	answers := 0
	if v >= 0 {
		answers++
	}
	for ; answers < 2; answers++ {
		v, err := c.Receive[int](fmt.Sprint("answer ", answers), durable.OnSignal("answer"))
		if err != nil {
			return nil, err
		}
		got = append(got, v)
	}
	v, err = c.Receive[int]("none", durable.OnSignal("answer"), durable.Within(30*time.Millisecond), durable.Else(-1))
	return append(got, v), err
})

const duelApart = 20 * time.Millisecond

func init() {
	// duel executes the workflow, and sends one answer to each of the runs at about the
	// end of its time.
	scenarios["duel"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{duel}, ParkAfter: j.Grace})
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		var all sync.WaitGroup
		var latency atomic.Int64 // of the last signal: the machine may be slow
		for i := range j.Runs {
			all.Go(func() {
				id := fmt.Sprint("duel", i)
				var due time.Time
				for realtime.Pass(time.Duration(i)*duelApart, "the duels begin one after the other"); due.IsZero() && ctx.Err() == nil; realtime.Pass(50*time.Millisecond, "between two readings of the history") {
					steps, err := e.History(ctx, id)
					if err != nil && !errors.Is(err, durable.ErrNotFound) {
						say("error", err)
						return
					}
					for _, c := range steps {
						// One that waits for the end has its timeout; see below.
						if c.Name == "answer" && (i%8 != 4 || c.Status == "completed") {
							due = c.NextAt
						}
					}
				}
				if i%8 != 0 { // else at once: that one has its signal
					aim := time.Duration(latency.Load())
					realtime.Pass(time.Until(due.Add(rand.N(50*time.Millisecond)-25*time.Millisecond-aim)), "the signal is aimed at the end of the wait")
				}
				began := time.Now()
				if err := e.Signal(ctx, id, "answer", 10*i+int(j.N)); err != nil {
					say("error", err)
				}
				latency.Store(int64(time.Since(began)))
				j.Ledger.add(Entry{Run: id, Step: "sent"})
			})
		}
		all.Wait()
		say("sent")
		return <-ended
	}
}

// Row 28: signals arrive at about the end of a wait, from two processes that also execute
// the runs: either the signal or the timeout is what the wait returns, a signal that was
// there before the end is never passed over, and one that was too late is still there.
func TestRow28_SignalAgainstTimeout(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const runs = 40
		l := newLedger(t)
		client := engineOn(t, db.openIn(t), durable.Config{})
		var ps []*process
		for i, park := range []time.Duration{2 * time.Second, 50 * time.Millisecond} { // waits in memory, and out of it
			ps = append(ps, spawn(t, job{Scenario: "duel", DB: db, Ledger: l, Runs: runs, N: int64(i), Grace: park}))
		}
		await(t, "the workers", func() bool { ws, err := client.Workers(bounded(t)); return err == nil && len(ws) == 2 })
		var handles []*durable.Run[[]int]
		for i := range runs {
			wait := 400*time.Millisecond + time.Duration(i)*duelApart
			if i%8 == 0 {
				wait = patience / 2
			}
			handles = append(handles, start(t, client, duel, wait, durable.ID(fmt.Sprint("duel", i))))
		}
		for _, p := range ps {
			p.expect("sent")
		}
		timeouts, close := 0, 0
		for i, run := range handles {
			got, err := run.Result(bounded(t))
			if err != nil || len(got) < 3 || got[len(got)-1] != -1 {
				t.Errorf("run %d: %v, %v", i, got, err)
				continue
			}
			first, answers := got[0], slices.Sorted(slices.Values(got[:len(got)-1]))
			if first == -1 {
				timeouts++
				answers = answers[1:]
			}
			if !slices.Equal(answers, []int{10 * i, 10*i + 1}) {
				t.Errorf("run %d received %v", i, got)
			}
			due := history(t, client, run.ID())["answer"].NextAt
			for _, sent := range l.of(t, run.ID(), "sent") {
				early := due.Sub(sent.At)
				if early > 100*time.Millisecond && first == -1 {
					t.Errorf("run %d: a signal that was there %v before the end was passed over: %v", i, early, got)
				}
				if early.Abs() < 30*time.Millisecond {
					close++
				}
			}
		}
		if timeouts == 0 || timeouts == runs {
			t.Errorf("no duel: %d timeouts in %d runs", timeouts, runs)
		}
		t.Logf("runs=%d signal_won=%d timeout_won=%d sent_within_30ms_of_the_end=%d lost=0 twice=0", runs, runs-timeouts, timeouts, close)
	})
}

// Row 28: a signal comes in time, and only after the wait's end does anybody look: the
// process that executed the run was killed before, while it waited in memory, or out of
// it. The signal wins.
func TestRow28_SignalNoticedLate(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		// Which of the two it is, is the time after which a wait leaves memory.
		for where, park := range map[string]time.Duration{"memory": time.Minute, "row": 50 * time.Millisecond} {
			t.Run(where, func(t *testing.T) {
				t.Parallel()
				db := fresh(t, db.Kind)
				client := engineOn(t, db.openIn(t), durable.Config{})
				j := job{Scenario: "duel", DB: db, Grace: park}
				var run *durable.Run[[]int]
				var sent, due time.Time
				for wait := 1500 * time.Millisecond; ; wait *= 2 { // on a slow machine the wait has to be longer
					p := spawn(t, j)
					awaitWorkers(t, client, 1)
					run = start(t, client, duel, wait, durable.ID(fmt.Sprint("late ", wait)))
					await(t, "the wait, or its end", func() bool {
						s, h := info(t, client, run.ID()).Status, history(t, client, run.ID())
						return len(h) == 1 && (s == durable.StatusWaiting || where == "memory" && s == durable.StatusRunning) || len(h) > 1
					})
					p.kill()
					for n := range 2 {
						if err := client.Signal(bounded(t), run.ID(), "answer", n); err != nil {
							t.Fatal(err)
						}
					}
					sent, due = time.Now(), history(t, client, run.ID())["answer"].NextAt
					if due.Sub(sent) >= reading {
						break
					}
					if wait > patience/4 {
						t.Fatalf("too slow: sent at %v, the wait of %v ends at %v", sent, wait, due)
					}
				}
				await(t, "the end of the wait", func() bool { return time.Now().After(due.Add(reading)) })
				if c := history(t, client, run.ID())["answer"]; c.Status != "started" {
					t.Errorf("somebody looked in time: %+v", c)
				}
				spawn(t, j)
				got, err := run.Result(bounded(t))
				if err != nil || !slices.Equal(got, []int{0, 1, -1}) {
					t.Errorf("the signals were there in time, and it received %v, %v", got, err)
				}
				t.Logf("kills=1 sent_before_the_end=%v noticed_after_it received=%v", due.Sub(sent).Round(time.Millisecond), got)
			})
		}
	})
}

// lateNow is a store whose clock is first read over a connection that is still being made:
// the question takes long, the answer does not.
type lateNow struct {
	durable.Store
	wait time.Duration
}

func (s *lateNow) Now(ctx context.Context) (time.Time, error) {
	realtime.Pass(s.wait, "the connection is still being made")
	return s.Store.Now(ctx)
}

// Row 28: one sender's signals are received in its order also when its reading of the
// database's clock gets better between them, and so goes back.
func TestRow28_OrderWhenTheClockIsReadBetter(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.openIn(t)
		inOrder := durable.Define("in order", func(c *durable.Ctx, n int) (all []int, err error) {
			for i := range n {
				v, err := c.Receive[int](fmt.Sprint(i), durable.OnSignal("m"))
				if err != nil {
					return nil, err
				}
				all = append(all, v)
			}
			return all, nil
		})
		const n = 6
		other := engineOn(t, s, durable.Config{}, inOrder)
		run := start(t, other, inOrder, n)
		late := &lateNow{Store: s, wait: 800 * time.Millisecond}
		sender := engineOn(t, late, durable.Config{Name: "sender"}, kid)
		send := func(i int) {
			if err := sender.Signal(bounded(t), run.ID(), "m", i); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n / 2 {
			send(i)
		}
		runEngine(t, sender) // its first heartbeat reads the clock again
		await(t, "the first heartbeat", func() bool {
			ws, err := other.Workers(bounded(t))
			return err == nil && slices.ContainsFunc(ws, func(w durable.WorkerInfo) bool { return w.Name == "sender" })
		})
		for i := n / 2; i < n; i++ {
			send(i)
		}
		runEngine(t, other)
		got, err := run.Result(bounded(t))
		if err != nil || !slices.IsSorted(got) {
			t.Errorf("sent 0 to %d one after the other, received %v, %v", n-1, got, err)
		}
		t.Logf("sent=%d late_reading=%v received=%v", n, late.wait/2, got)
	})
}
