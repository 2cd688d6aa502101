package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// hold is a workflow whose first step, at its first attempt, says so and waits for a
// file; it does not listen to its context. Two steps follow.
func hold(l ledger, file string) *durable.Workflow[int, string] {
	return durable.Define("hold", func(c *durable.Ctx, in int) (string, error) {
		defer context.AfterFunc(c, func() { say("leaving", c.ID()) })()
		who, err := c.Step("hold", func(ctx context.Context) (string, error) {
			l.did(ctx, c.ID(), "hold")
			say("holding", c.ID())
			if durable.Attempt(ctx) == 1 {
				if err := awaitFile(file); err != nil {
					return "", err
				}
			}
			return fmt.Sprint("attempt ", durable.Attempt(ctx)), nil
		})
		if err != nil {
			return "", err
		}
		l.add(Entry{Run: c.ID(), Step: "ack hold"})
		for _, name := range []string{"next", "last"} {
			if err := c.Do(name, func(ctx context.Context) error {
				l.did(ctx, c.ID(), name)
				return nil
			}); err != nil {
				return "", err
			}
		}
		return who, nil
	})
}

func init() {
	// hold starts some runs itself, so that they begin in this process.
	scenarios["hold"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &faulty{Store: s, afterCommit: func(_ int64, b *store.Batch) error {
			if n := fenced(b); n > 0 {
				say("fenced", n)
			}
			return nil
		}}
		w := hold(j.Ledger, j.File)
		e, err := durable.New(f, durable.Config{Workflows: []durable.Definition{w}, Lease: j.Lease, Grace: j.Grace})
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		if !within(patience, func() bool { ws, err := e.Workers(ctx); return err == nil && len(ws) > 0 }) {
			return errors.New("the worker is not registered")
		}
		// The registry may name another worker: a client's start is claimed a moment later.
		for i := range j.Runs {
			if _, err := w.Start(ctx, e, 1, durable.ID(fmt.Sprint(j.ID, i))); err != nil {
				return err
			}
		}
		say("started")
		return <-ended
	}
}

// Row 7: a process is stopped for longer than its lease, another takes over, and the
// first goes on: its write is refused, and the result is the other's.
func TestRow07_StoppedPastTheLease(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l, file := newLedger(t), filepath.Join(t.TempDir(), "go")
		e := engineOn(t, db.openIn(t), durable.Config{}, hold(l, file))
		p := spawn(t, job{Scenario: "hold", DB: db, Ledger: l, ID: "r", Runs: 1, File: file, Lease: 3 * time.Second})
		p.expect("holding")
		await(t, "the started marker", func() bool { return history(t, e, "r0")["hold"].Status == "started" })
		stopOutsideOfWrite(t, p, e)
		began := time.Now()
		runEngine(t, e)
		out, err := result(t, e, hold(l, file), "r0")
		took := time.Since(began)
		if err != nil || out != "attempt 2" {
			t.Fatalf("%q, %v", out, err)
		}
		before := info(t, e, "r0")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.signal(syscall.SIGCONT)
		refused := p.expect("fenced")
		p.signal(syscall.SIGTERM)
		p.mustEndWell()
		after := info(t, e, "r0")
		if string(after.Output) != string(before.Output) || after.Epoch != before.Epoch || after.Status != durable.StatusCompleted {
			t.Errorf("the run changed: %+v, then %+v", before, after)
		}
		if n := len(l.of(t, "r0", "next")); n != 1 {
			t.Errorf("the step after ran %d times", n)
		}
		t.Logf("refused_writes=%s result=%q takeover=%v epochs=%d", refused, out, took.Round(time.Millisecond), after.Epoch)
	})
}

// stopOutsideOfWrite stops the process at a moment at which it does not hold the
// file's write lock: nobody could take over from it then.
func stopOutsideOfWrite(t *testing.T, p *process, e *durable.Engine) {
	t.Helper()
	probe := durable.Define("probe", func(*durable.Ctx, int) (int, error) { return 0, nil })
	for try := range 20 {
		p.signal(syscall.SIGSTOP)
		stat := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
		await(t, "the stop", func() bool {
			text, err := os.ReadFile(stat)
			return err == nil && (len(text) > 0 && containsState(string(text), 'T'))
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(try+1)*300*time.Millisecond)
		_, err := probe.Start(ctx, e, 1, durable.ID(fmt.Sprint("probe", try)))
		cancel()
		if err == nil {
			return
		}
		p.signal(syscall.SIGCONT)
	}
	t.Fatal("the process was in a write each time")
}

// containsState reads the state out of /proc/PID/stat: after the name in parentheses.
func containsState(stat string, state byte) bool {
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			return i+2 < len(stat) && stat[i+2] == state
		}
	}
	return false
}

// Row 9: SIGTERM lets the running step finish, and gives the leases back at once; a
// second SIGTERM kills.
func TestRow09_Sigterm(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l, dir := newLedger(t), t.TempDir()
		s := db.openIn(t)
		const runs = 3
		begin := func(id string, grace time.Duration) (*process, string) {
			file := filepath.Join(dir, id)
			p := spawn(t, job{Scenario: "hold", DB: db, Ledger: l, ID: id, Runs: runs, File: file, Lease: 30 * time.Second, Grace: grace})
			for range runs {
				p.expect("holding")
			}
			return p, file
		}

		p, file := begin("soft", 20*time.Second)
		e := engineOn(t, s, durable.Config{}, hold(l, file))
		p.signal(syscall.SIGTERM)
		for range runs {
			p.expect("leaving") // so the step ends in the grace period
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p.mustEndWell()
		exit, machine := time.Now(), measure(t, e)
		released := 0
		for i := range runs {
			id := fmt.Sprint("soft", i)
			if at := info(t, e, id); at.Status == durable.StatusPending && at.Owner == "" {
				released++
			}
			if c := history(t, e, id)["hold"]; c.Status != "completed" {
				t.Errorf("%s: the running step is %q", id, c.Status)
			}
		}
		stop := runEngine(t, e)
		for i := range runs {
			if out, err := result(t, e, hold(l, file), fmt.Sprint("soft", i)); err != nil || out != "attempt 1" {
				t.Errorf("%q, %v", out, err)
			}
			if n := len(l.of(t, fmt.Sprint("soft", i), "hold")); n != 1 {
				t.Errorf("the step ran %d times", n)
			}
		}
		soft, slack := time.Since(exit), machine.slack()
		stop()

		p, _ = begin("hard", time.Minute)
		p.signal(syscall.SIGTERM)
		p.expect("terminating")
		p.signal(syscall.SIGTERM)
		p.mustBeKilled(syscall.SIGTERM)
		if released != runs {
			t.Errorf("%d of %d leases were released", released, runs)
		}
		if soft > 3*time.Second+slack {
			t.Errorf("the runs were taken over after %v, with a lease of 30s", soft)
		}
		t.Logf("steps_finished=%d leases_released=%d lease=30s all_done_elsewhere_after=%v second_sigterm=killed", runs, released, soft.Round(time.Millisecond))
	})
}

// Default settings: how long after kill -9 another process executes the run.
func TestRow02_TakeoverUnderASecond(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const kills = 3
		l, file := newLedger(t), filepath.Join(t.TempDir(), "never")
		s := db.openIn(t)
		// It does not execute the workflow until the other process does.
		var worst, total time.Duration
		for i := range kills {
			id := fmt.Sprint("k", i, "-")
			p := spawn(t, job{Scenario: "hold", DB: db, Ledger: l, ID: id, Runs: 1, File: file})
			p.expect("holding")
			e := engineOn(t, s, durable.Config{Name: "heir"}, hold(l, file))
			await(t, "the started marker", func() bool { return history(t, e, id+"0")["hold"].Status == "started" })
			stop := runEngine(t, e)
			settled(t, e, "heir", 2100*time.Millisecond)
			killed, machine := time.Now(), measure(t, e)
			p.kill()
			if out, err := result(t, e, hold(l, file), id+"0"); err != nil || out != "attempt 2" {
				t.Fatalf("%q, %v", out, err)
			}
			did := l.of(t, id+"0", "hold")
			took := did[len(did)-1].At.Sub(killed)
			if slack := machine.slack(); took > time.Second+slack {
				t.Errorf("kill %d: taken over after %v, with %v for the machine's load", i, took, slack)
			}
			worst, total = max(worst, took), total+took
			stop()
		}
		t.Logf("kills=%d mean=%v worst=%v lease=10s", kills, (total / kills).Round(time.Millisecond), worst.Round(time.Millisecond))
	})
}

// settled waits until the named worker has been up for the time given, by its own
// heartbeats and this machine's clock.
func settled(t *testing.T, e *durable.Engine, name string, d time.Duration) {
	t.Helper()
	await(t, "the worker "+name+" to have settled", func() bool {
		workers, err := e.Workers(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range workers {
			if w.Name == name && time.Since(w.StartedAt) > d {
				return true
			}
		}
		return false
	})
}

// reading is how far the engine's idea of the database's clock may be off: half of the
// round trip that it was read in, which is long on a loaded machine.
const reading = 200 * time.Millisecond

// Two engines share the runs of a third party: each run is executed once.
func TestRow25_TwoEnginesShareWork(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const runs = 120
		l := newLedger(t)
		var names [2]string
		client := engineOn(t, db.openIn(t), durable.Config{})
		var items []durable.StartItem[int]
		for i := range runs {
			items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
		}
		handles, err := calm(l).StartMany(bounded(t), client, items)
		if err != nil {
			t.Fatal(err)
		}
		executed := make(map[string]int)
		for i := range names {
			names[i] = fmt.Sprint("engine", i)
			e := engineOn(t, db.openIn(t), durable.Config{Name: names[i], Concurrency: 8}, calm(l))
			runEngine(t, e)
		}
		for i, run := range handles {
			if v, err := run.Result(bounded(t)); err != nil || v != 4*i {
				t.Errorf("%d: %d, %v", i, v, err)
			}
			executed[strconv.Itoa(info(t, client, run.ID()).Epoch)]++
		}
		for key, n := range l.counts(t) {
			if n != 1 && !strings.Contains(key, "/ack ") { // a run that changed hands is replayed
				t.Errorf("%s ran %d times", key, n)
			}
		}
		t.Logf("runs=%d engines=2 executed_twice=0 by_epoch=%v", runs, executed)
	})
}
