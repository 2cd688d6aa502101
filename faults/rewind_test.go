package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/postgres"
)

// drawn is a workflow whose steps each return something new, and that returns what its steps did. Every third
// step is a transaction, if it works on PostgreSQL.
func drawn(name string, l ledger, steps int, pace time.Duration) *durable.Workflow[int, []string] {
	return drawnOf(name, l, steps, pace, 3, nil)
}

// gates are the files for which steps wait, by the number of the step.
type gates map[int]string

// behindAndPromoted are the gates of row 38: no run writes its step 21 before the standby is behind, and none ends
// before it is promoted. Neither step is a transaction.
func behindAndPromoted(file string, steps int) gates {
	return gates{21: file + ".behind", steps - 3: file + ".promoted"}
}

// open makes the file for which steps wait.
func (g gates) open(t testing.TB, step int) {
	must(t, "open a gate", os.WriteFile(g[step], nil, 0o600))
}

// pass returns when the gate of the step is open, or its context ends.
func (g gates) pass(ctx context.Context, step int) error {
	if g[step] == "" {
		return nil
	}
	for _, err := os.Stat(g[step]); err != nil; _, err = os.Stat(g[step]) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		realtime.Pass(2*time.Millisecond, "the file comes from another process")
	}
	return nil
}

// drawnOf is drawn with a transaction at every nth step, none with zero, and with gates.
func drawnOf(name string, l ledger, steps int, pace time.Duration, nth int, g gates) *durable.Workflow[int, []string] {
	return durable.Define(name, func(c *durable.Ctx, _ int) ([]string, error) {
		var all []string
		for i := range steps {
			name := fmt.Sprintf("s%03d", i)
			act := func(ctx context.Context) (string, error) { return draw(ctx, l, c.ID(), i, pace, g) }
			var v string
			var err error
			if nth > 0 && i%nth == nth-1 {
				v, err = postgres.Tx(c, name, func(ctx context.Context, _ pgx.Tx) (string, error) { return act(ctx) })
			} else {
				v, err = c.Step(name, act)
			}
			if err != nil {
				return nil, err
			}
			l.add(Entry{Run: c.ID(), Step: "ack " + name, Key: v})
			all = append(all, v)
		}
		return all, nil
	})
}

// draw is what the ith step of a run does.
func draw(ctx context.Context, l ledger, run string, i int, pace time.Duration, g gates) (string, error) {
	if err := g.pass(ctx, i); err != nil {
		return "", err
	}
	l.did(ctx, run, fmt.Sprintf("s%03d", i))
	realtime.Pass(pace, "the work of a step takes this long")
	return uuid.NewString(), nil
}

// acknowledgedByAll reports whether each of the runs has that many acknowledged steps.
func acknowledgedByAll(t testing.TB, l ledger, runs, acks int) bool {
	of := make(map[string]int)
	for _, x := range l.read(t) {
		if strings.HasPrefix(x.Step, "ack ") {
			of[x.Run]++
		}
	}
	slow := runs - len(of)
	for _, n := range of {
		if n < acks {
			slow++
		}
	}
	return slow == 0
}

// drawnAgain counts the acknowledged steps of runs that were acknowledged again with another value, because the database had lost them.
func drawnAgain(t testing.TB, l ledger) (again int) {
	seen := make(map[string]string)
	for _, x := range l.read(t) {
		if v, known := seen[x.Run+x.Step]; known && strings.HasPrefix(x.Step, "ack ") && v != x.Key {
			again++
		}
		seen[x.Run+x.Step] = x.Key
	}
	return again
}

// oneHistory asserts that a run has returned what its recorded steps hold: an execution that went on with
// what it had in memory, over a database that lacks it, returns something else.
func oneHistory(t testing.TB, e *durable.Engine, id string, steps int) {
	t.Helper()
	var out []string
	at := info(t, e, id)
	if err := json.Unmarshal(at.Output, &out); err != nil || len(out) != steps {
		t.Errorf("run %s is %s with %d values: %v", id, at.Status, len(out), err)
		return
	}
	recorded := history(t, e, id)
	for i, v := range out {
		name := fmt.Sprintf("s%03d", i)
		if got := string(recorded[name].Output); got != `"`+v+`"` {
			t.Errorf("run %s has returned %q for %s, whose checkpoint holds %s", id, v, name, got)
		}
	}
}

func init() {
	scenarios["drawn"] = func(ctx context.Context, j *job, s durable.Store) error {
		w := drawnOf(j.Workflow, j.Ledger, int(j.N), 5*time.Millisecond, 3, behindAndPromoted(j.File, int(j.N)))
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}, Lease: j.Lease, Logger: slog.New(slog.NewTextHandler(sayer{}, nil))})
		if err != nil {
			return err
		}
		for i := range j.Runs {
			if _, err := w.Start(ctx, e, i, durable.ID(fmt.Sprint(j.ID, i))); err != nil {
				return err
			}
		}
		say("started")
		return e.Run(ctx)
	}
}

// sayer tells the parent what is logged.
type sayer struct{}

// Write implements io.Writer.
func (sayer) Write(b []byte) (int, error) {
	say("log", string(b))
	return len(b), nil
}

// Row 38: an asynchronous standby that is behind is promoted. One worker was stopped (SIGSTOP) and goes on
// afterwards, with runs that another has taken over meanwhile; the other holds runs of its own all the
// while. Both notice, and say what is lost; no run mixes two histories; a cursor of what
// is gone is refused.
func TestRow38_PromotedFromBehind(t *testing.T) {
	t.Parallel()
	const runs, steps = 4, 60
	primary := ownServer(t)
	standby := standbyOf(t, primary, "behind")
	db := database{Kind: "postgres", Where: pgtest.Hosts(primary, standby), Schema: "s"}
	l, logged := newLedger(t), &journalled{}
	file := filepath.Join(t.TempDir(), "standby")
	g := behindAndPromoted(file, steps)
	mine, theirs := drawnOf("mine", l, steps, 5*time.Millisecond, 3, g), drawnOf("theirs", l, steps, 5*time.Millisecond, 3, g)
	// The lease is so long that the runs are held all the while, however slow the machine is.
	e := engineOn(t, db.openIn(t), durable.Config{Lease: 30 * time.Second, Logger: logged.logger()}, mine, theirs, instant)
	all := func(acks int) func() bool { return func() bool { return acknowledgedByAll(t, l, 2*runs, acks) } }

	old := spawn(t, job{Scenario: "drawn", DB: db, Ledger: l, ID: "old", Workflow: "theirs", Runs: runs, N: steps, Lease: 6 * time.Second, File: file})
	old.expect("started")
	await(t, "the other process to execute all its runs", func() bool { // before this one could claim them
		began := make(map[string]bool)
		for _, x := range l.read(t) {
			began[x.Run] = true
		}
		return len(began) == runs
	})
	stop := runEngine(t, e)
	for i := range runs {
		start(t, e, mine, i, durable.ID(fmt.Sprint("mine", i)))
	}
	await(t, "steps of all", all(8))
	kept := cursorOfEnd(t, e, "kept")
	must(t, "let the standby see them", primary.WaitUntilCaughtUp(bounded(t), "behind"))
	must(t, "keep the standby behind", standby.Stop(pgtest.Fast))
	g.open(t, 21)
	await(t, "steps of all that the standby lacks", all(25))
	lost := cursorOfEnd(t, e, "lost")
	old.signal(syscall.SIGSTOP)
	must(t, "kill the primary", primary.Kill9())
	must(t, "start the standby", standby.Restart(bounded(t)))
	must(t, "promote", standby.Promote(bounded(t)))
	g.open(t, steps-3)
	for i := range runs {
		if _, err := result(t, e, mine, fmt.Sprint("mine", i)); err != nil {
			t.Error(err)
		}
	}
	await(t, "what was lost to be told", func() bool { return len(logged.with("lacks checkpoints")) > 0 })
	cursorsAfterRewind(t, e, kept, lost)
	if told := len(logged.with("goes on from another point of its history")); told != 1 {
		t.Errorf("the promotion was told %d times", told)
	}
	old.signal(syscall.SIGCONT)
	for i := range runs {
		if _, err := result(t, e, theirs, fmt.Sprint("old", i)); err != nil {
			t.Error(err)
		}
	}
	old.expect("log")
	for !strings.Contains(strings.Join(old.seen, "\n"), "lacks checkpoints") {
		old.expect("log")
	}
	old.signal(syscall.SIGTERM)
	old.mustEndWell()
	if said := strings.Join(old.seen, "\n"); strings.Count(said, "goes on from another point of its history") != 1 {
		t.Errorf("the worker that was stopped said %q", old.seen)
	}
	for i := range runs {
		oneHistory(t, e, fmt.Sprint("mine", i), steps)
		oneHistory(t, e, fmt.Sprint("old", i), steps)
	}
	stop()
	again := drawnAgain(t, l)
	if again == 0 {
		t.Error("nothing that was acknowledged was lost: the standby was not behind")
	}
	t.Logf("runs=%d lost_steps=%d told=%d", 2*runs, again, len(logged.with("lacks checkpoints")))
}
