package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
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
	return drawnOf(name, l, steps, pace, 3)
}

// drawnOf is drawn with a transaction at every nth step; with zero it has none.
func drawnOf(name string, l ledger, steps int, pace time.Duration, nth int) *durable.Workflow[int, []string] {
	return durable.Define(name, func(c *durable.Ctx, _ int) ([]string, error) {
		var all []string
		for i := range steps {
			name := fmt.Sprintf("s%03d", i)
			act := func(ctx context.Context) (string, error) {
				l.did(ctx, c.ID(), name)
				realtime.Pass(pace, "the work of a step takes this long")
				return uuid.NewString(), nil
			}
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
		w := drawn(j.Workflow, j.Ledger, int(j.N), 5*time.Millisecond)
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
	mine, theirs := drawn("mine", l, steps, 5*time.Millisecond), drawn("theirs", l, steps, 5*time.Millisecond)
	e := engineOn(t, db.openIn(t), durable.Config{Lease: 4 * time.Second, Logger: logged.logger()}, mine, theirs)

	old := spawn(t, job{Scenario: "drawn", DB: db, Ledger: l, ID: "old", Workflow: "theirs", Runs: runs, N: steps, Lease: 6 * time.Second})
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
	await(t, "steps of all", func() bool { return acknowledged(t, l) > 4*2*runs })
	must(t, "let the standby see them", primary.CaughtUp(bounded(t), "behind"))
	must(t, "keep the standby behind", standby.Stop(pgtest.Fast))
	before := acknowledged(t, l)
	await(t, "more steps", func() bool { return acknowledged(t, l) > before+4*2*runs })
	old.signal(syscall.SIGSTOP)
	must(t, "kill the primary", primary.Kill9())
	must(t, "start the standby", standby.Restart(bounded(t)))
	must(t, "promote", standby.Promote(bounded(t)))
	for i := range runs {
		if _, err := result(t, e, mine, fmt.Sprint("mine", i)); err != nil {
			t.Error(err)
		}
	}
	await(t, "what was lost to be told", func() bool { return len(logged.with("lacks checkpoints")) > 0 })
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
	again := 0
	seen := make(map[string]string)
	for _, x := range l.read(t) {
		if v, known := seen[x.Run+x.Step]; known && strings.HasPrefix(x.Step, "ack ") && v != x.Key {
			again++
		}
		seen[x.Run+x.Step] = x.Key
	}
	if again == 0 {
		t.Error("nothing that was acknowledged was lost: the standby was not behind")
	}
	t.Logf("runs=%d lost_steps=%d told=%d", 2*runs, again, len(logged.with("lacks checkpoints")))
}
