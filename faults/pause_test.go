package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// mode is what an endless run is busy with, and in whose name.
type mode struct {
	How   string
	Root  string // the ID in the ledger
	Under int    // levels of children beneath
}

// slowly is the file for which a slow step waits, if the other one is what all wait for.
func slowly(file string) string { return file + " slowly" }

// endless is a workflow that goes on until the file exists, or nearly so: each mode is
// another place in which a pause can meet it. Every function notes when it begins.
func endless(l ledger, file string) *durable.Workflow[mode, int] {
	var w *durable.Workflow[mode, int]
	w = durable.Define("endless", func(c *durable.Ctx, m mode) (int, error) {
		over := func(ctx context.Context, name string) bool {
			l.add(Entry{Run: m.Root, Step: name, Attempt: durable.Attempt(ctx)})
			_, err := os.Stat(file)
			return err == nil
		}
		after := func() (int, error) {
			return c.Step("after", func(ctx context.Context) (int, error) { over(ctx, "after"); return 1, nil })
		}
		steps := func(rest time.Duration) (int, error) {
			for i := 0; ; i++ {
				end, err := c.Step(fmt.Sprint("step ", i), func(ctx context.Context) (bool, error) {
					end := over(ctx, "step")
					realtime.Pass(10*time.Millisecond, "the work of a step takes this long")
					return end, nil
				})
				if err != nil || end {
					return i, err
				}
				if rest > 0 {
					if err := c.Sleep(fmt.Sprint("rest ", i), rest); err != nil {
						return i, err
					}
				}
			}
		}
		switch m.How {
		case "steps":
			return steps(0)
		case "sleeps":
			return steps(20 * time.Millisecond)
		case "backoff":
			return c.Step("try", func(ctx context.Context) (int, error) {
				if !over(ctx, "try") {
					return 0, errors.New("not yet")
				}
				return durable.Attempt(ctx), nil
			}, durable.Retry(durable.Fixed(15*time.Millisecond, durable.Unlimited)))
		case "nap":
			if err := c.Sleep("nap", time.Hour); err != nil {
				return 0, err
			}
			return after()
		case "wait":
			if _, err := c.Receive[int]("go"); err != nil {
				return 0, err
			}
			return after()
		case "map":
			out, err := c.Map("items", make([]int, 400), func(ctx context.Context, in int) (int, error) {
				over(ctx, "item")
				realtime.Pass(10*time.Millisecond, "the work of a step takes this long")
				return in, nil
			}, durable.Parallel(4))
			return len(out), err
		case "births":
			var children []*durable.Child[int]
			for i := range 40 {
				child, err := c.StartChild(fmt.Sprint("child ", i), w, mode{"breaths", m.Root, 0})
				if err != nil {
					return i, err
				}
				children = append(children, child)
				if err := c.Do(fmt.Sprint("gap ", i), func(context.Context) error {
					realtime.Pass(5*time.Millisecond, "the work of a step takes this long")
					return nil
				}); err != nil {
					return i, err
				}
			}
			for i, child := range children {
				if _, err := child.Wait(); err != nil {
					return i, err
				}
			}
			return len(children), nil
		case "breaths":
			return steps(50 * time.Millisecond)
		case "slow", "stuck":
			if err := c.Do(m.How, func(ctx context.Context) error {
				over(ctx, m.How)
				if m.How == "stuck" && durable.Attempt(ctx) == 1 {
					select {} // until it is killed
				}
				if err := awaitFile(slowly(file)); err != nil {
					return err
				}
				return nil
			}); err != nil {
				return 0, err
			}
			return after()
		}
		if m.Under == 0 {
			return steps(0)
		}
		var children []*durable.Child[int]
		for _, name := range []string{"left", "right"} {
			child, err := c.StartChild(name, w, mode{m.How, m.Root, m.Under - 1})
			if err != nil {
				return 0, err
			}
			children = append(children, child)
		}
		if n, err := steps(0); err != nil {
			return n, err
		}
		for _, child := range children {
			if _, err := child.Wait(); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
	return w
}

// learnt is how soon after a pause was accepted the processes know of it.
const learnt = 100 * time.Millisecond

// Row 30: runs are paused in a backoff, between sleeps, in a sleep, in a wait, in a map,
// in a running step, as a tree, and as a tree that grows. Nothing of them begins until they are resumed, also
// when the processes are killed meanwhile, one of them in the middle of a step.
func TestRow30_NothingStartsWhilePaused(t *testing.T) {
	onBothAlone(t, func(t *testing.T, db database) {
		l, file := newLedger(t), filepath.Join(t.TempDir(), "end")
		client := engineOn(t, db.openIn(t), durable.Config{})
		j := job{Scenario: "control", DB: db, Ledger: l, File: file}
		ps := twoWorkers(t, client, j)
		modes := []string{"map", "births", "nap", "slow", "backoff", "sleeps", "wait", "stuck", "steps", "tree"}
		begins := map[string]string{"births": "step", "map": "item", "slow": "slow", "backoff": "try", "sleeps": "step", "stuck": "stuck", "steps": "step", "tree": "step"}
		runs := make(map[string]*durable.Run[int])
		for _, how := range slices.Backward(modes) { // what is over soon comes last
			run := start(t, client, endless(l, file), mode{how, how, 2}, durable.ID(how))
			runs[how] = run
			await(t, how+" to be under way", func() bool {
				switch how {
				case "wait", "nap":
					return info(t, client, how).Status == durable.StatusWaiting || history(t, client, how)["nap"].Status != ""
				case "tree":
					return live(t, client, how) == 7 && l.has(t, how, "step")
				default:
					return l.has(t, how, begins[how])
				}
			})
		}
		paused, left, resumed := make(map[string]time.Time), make(map[string]time.Time), make(map[string]time.Time)
		machine := measure(t, client)
		for _, how := range modes {
			if _, err := client.Pause(bounded(t), how, durable.Reason("a test"), durable.Actor("row 30")); err != nil {
				t.Fatal(err)
			}
			paused[how] = time.Now()
		}
		if err := os.WriteFile(slowly(file), nil, 0o600); err != nil { // the running step is let finish
			t.Fatal(err)
		}
		allPaused := func(how string) bool {
			counts, err := client.TreeCounts(bounded(t), how)
			return err == nil && len(counts.Statuses) == 1 && counts.Statuses[durable.StatusPaused] > 0
		}
		for _, how := range modes {
			if how != "stuck" {
				await(t, how+" to be paused", func() bool { return allPaused(how) })
				left[how] = time.Now()
			}
		}
		slack := machine.slack()
		if i := info(t, client, "stuck"); i.Status != durable.StatusRunning || i.Requested != "pause" {
			t.Errorf("while its step runs it is %+v", i)
		}
		// The process in whose memory a step still runs dies, the other one takes over; then
		// that dies too, and new ones come.
		if ps[0].cmd.Process.Pid != l.of(t, "stuck", "stuck")[0].Pid {
			slices.Reverse(ps)
		}
		ps[0].kill()
		await(t, "the run in the killed step to be paused", func() bool { return allPaused("stuck") })
		left["stuck"] = time.Now()
		ps[1].kill()
		twoWorkers(t, client, j)
		if err := client.Signal(bounded(t), "wait", "go", 1); err != nil {
			t.Fatal(err)
		}
		outside(t, db, "UPDATE durable_step SET next_at = 1 WHERE kind = 3", "UPDATE step SET next_at = 'epoch' WHERE kind = 3") // the sleep of the paused run is over
		realtime.Pass(time.Second, "whatever does not stay paused begins in this time")
		for _, how := range modes {
			if !allPaused(how) {
				t.Errorf("%s did not stay paused: %+v", how, info(t, client, how))
			}
		}
		for _, how := range modes {
			resumed[how] = time.Now()
			if _, err := client.Resume(bounded(t), how); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for how, run := range runs {
			if _, err := run.Result(bounded(t)); err != nil {
				t.Errorf("%s: %v", how, err)
			}
		}
		counts := l.counts(t)
		if counts["slow/slow"] != 1 || counts["stuck/stuck"] != 2 {
			t.Errorf("the running step ran %d times, the killed one %d times", counts["slow/slow"], counts["stuck/stuck"])
		}
		var latest time.Duration
		before, beginnings := 0, 0
		for _, e := range l.read(t) {
			switch since := e.At.Sub(paused[e.Run]); {
			case since < 0:
				before++
			case e.At.Before(resumed[e.Run]):
				latest = max(latest, since)
				if since > learnt+slack || e.At.After(left[e.Run]) {
					t.Errorf("%s of %s began %v after the pause, %v before the resume", e.Step, e.Run, since, resumed[e.Run].Sub(e.At))
				}
			default:
				beginnings++
			}
		}
		t.Logf("paused=%d kills=2 paused_for=%v functions_before=%d latest_beginning_after_the_pause=%v began_while_paused=0 after=%d",
			len(modes), resumed["nap"].Sub(paused["nap"]).Round(time.Millisecond), before, latest.Round(100*time.Microsecond), beginnings)
	})
}

// brief is a workflow that waits for a signal, and then is soon over.
func brief(l ledger) *durable.Workflow[int, int] {
	return durable.Define("brief", func(c *durable.Ctx, in int) (int, error) {
		if err := c.Compensate("undo", func(ctx context.Context) error { l.did(ctx, c.ID(), "undo"); return nil }); err != nil {
			return 0, err
		}
		if err := c.Do("first", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		if _, err := c.Receive[int]("go"); err != nil {
			return 0, err
		}
		return c.Step("after", func(context.Context) (int, error) { return in, nil })
	})
}

// beginning waits for the file, and returns the time that is in it.
func beginning(ctx context.Context, e *durable.Engine, file string) (time.Time, error) {
	if _, err := e.Workers(ctx); err != nil { // the connections are there
		return time.Time{}, err
	}
	say("ready")
	var text []byte
	if !within(filePatience, func() bool { text, _ = os.ReadFile(file); return len(text) > 0 }) {
		return time.Time{}, fmt.Errorf("nobody has written to %s", file)
	}
	at, err := strconv.ParseInt(string(text), 10, 64)
	return time.Unix(0, at), err
}

// begin tells processes that wait in beginning when to begin: all at the same time.
func begin(t *testing.T, file string) {
	t.Helper()
	at := time.Now().Add(50 * time.Millisecond)
	if err := os.WriteFile(file+".new", strconv.AppendInt(nil, at.UnixNano(), 10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}
