package faults

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/postgres"
)

// steady is a workflow of many short steps that records what was acknowledged.
func steady(l ledger, steps int, pace time.Duration) *durable.Workflow[int, int] {
	return durable.Define("steady", func(c *durable.Ctx, in int) (int, error) { return steadily(c, l, in, steps, pace) })
}

// steadily does the steps of a steady workflow.
func steadily(c *durable.Ctx, l ledger, in, steps int, pace time.Duration) (sum int, err error) {
	for i := range steps {
		name := fmt.Sprintf("s%02d", i)
		v, err := c.Step(name, func(ctx context.Context) (int, error) {
			l.did(ctx, c.ID(), name)
			realtime.Pass(pace, "the work of a step takes this long")
			return in + i, nil
		})
		if err != nil {
			return 0, err
		}
		l.add(Entry{Run: c.ID(), Step: "ack " + name})
		sum += v
	}
	return sum, nil
}

// judgeSteady asserts that no step ran again once it was acknowledged, and returns how
// many ran more than once at all.
func judgeSteady(t *testing.T, l ledger) (executed, repeated int) {
	t.Helper()
	acked := make(map[string]bool)
	ran := make(map[string]int)
	for _, e := range l.read(t) {
		if name, ok := bytes.CutPrefix([]byte(e.Step), []byte("ack ")); ok {
			acked[e.Run+"/"+string(name)] = true
			continue
		}
		key := e.Run + "/" + e.Step
		if acked[key] {
			t.Errorf("%s ran again after it was acknowledged", key)
		}
		executed++
		if ran[key]++; ran[key] == 2 {
			repeated++
		}
	}
	return executed, repeated
}

// Row 11: PostgreSQL is stopped at once, or its postmaster killed, in the middle of
// batches, with fsync on. What was acknowledged is there, and all runs finish.
func TestRow11_ServerDiesInMidBatch(t *testing.T) {
	t.Parallel()
	const runs, steps = 50, 12
	server := ownServer(t)
	for i, how := range []string{"immediate stop", "kill -9 of the postmaster"} {
		t.Run(how, func(t *testing.T) {
			db := database{Kind: "postgres", Where: server.URL(), Schema: fmt.Sprint("s", i)}
			l := newLedger(t)
			inner := db.openIn(t)
			var written, broken atomic.Int64
			var fault sync.Once
			dead := make(chan error, 1)
			f := &faulty{Store: inner}
			f.beforeCommit = func(_ int64, b *store.Batch) error {
				if written.Add(int64(len(b.Steps))) > runs*steps/3 { // another flush may be in its middle
					fault.Do(func() {
						if i == 0 {
							dead <- server.Stop(pgtest.Immediate)
						} else {
							dead <- server.Kill9()
						}
					})
				}
				return nil
			}
			f.failedCommit = func(error) { broken.Add(1) }
			w := steady(l, steps, 2*time.Millisecond)
			e := engineOn(t, f, durable.Config{Lease: 2 * time.Second}, w)
			runEngine(t, e)
			var items []durable.StartItem[int]
			for i := range runs {
				items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
			}
			handles, err := w.StartMany(bounded(t), e, items)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-dead:
				if err != nil {
					t.Fatal(err)
				}
			case <-bounded(t).Done():
				t.Fatal("a third of the work is never done")
			}
			before := len(l.read(t))
			await(t, "a flush that meets the dead server", func() bool { return broken.Load() > 0 })
			began := time.Now()
			if err := server.Restart(bounded(t)); err != nil {
				t.Fatal(err)
			}
			for i, run := range handles {
				want := steps*i + steps*(steps-1)/2
				if v, err := run.Result(bounded(t)); err != nil || v != want {
					t.Errorf("run %d: %d, %v; want %d", i, v, err, want)
				}
			}
			executed, repeated := judgeSteady(t, l)
			if executed < runs*steps || before >= 2*runs*steps {
				t.Errorf("%d of %d executions, %d entries before the fault", executed, runs*steps, before)
			}
			t.Logf("%s: runs=%d steps=%d failed_flushes=%d lost=0 repeated_before_checkpoint=%d all_done_after=%v",
				how, runs, runs*steps, broken.Load(), repeated, time.Since(began).Round(time.Millisecond))
		})
	}
}

// Row 12: the server ends the journal's, the renewal's and the listening connection, one
// by one and again and again, while runs go on.
func TestRow12_TerminatedConnections(t *testing.T) {
	t.Parallel()
	const runs, steps = 40, 40
	name := "row12"
	db := fresh(t, "postgres")
	admin := session(t, db.Where)
	db.Where = with(db.Where, "application_name="+name)
	l := newLedger(t)
	w := steady(l, steps, 40*time.Millisecond)
	// Its steps go on until each connection was ended as often as it should be, however slow the machine is.
	var over atomic.Bool
	defer over.Store(true)
	on := durable.Define("on", func(c *durable.Ctx, _ int) (n int, err error) {
		for ; err == nil && !over.Load(); n++ {
			err = c.Do(fmt.Sprint(n), func(context.Context) error {
				realtime.Pass(20*time.Millisecond, "the work of a step takes this long")
				return nil
			})
		}
		return 0, err
	})
	e := engineOn(t, db.openIn(t), durable.Config{Lease: 4 * time.Second, Concurrency: 20}, w, on)
	runEngine(t, e)
	last := start(t, e, on, 0)
	var items []durable.StartItem[int]
	for i := range runs {
		items = append(items, durable.StartItem[int]{ID: fmt.Sprint("r", i), Input: i})
	}
	handles, err := w.StartMany(bounded(t), e, items)
	if err != nil {
		t.Fatal(err)
	}
	// What each connection did last tells them apart.
	kinds := map[string]string{
		"listen":  "query LIKE '%pg_advisory_lock(%'",
		"renewal": "query LIKE '%clock_timestamp()%' AND query NOT LIKE '%pg_advisory_lock(%'",
		"journal": "query LIKE '%INSERT INTO%step%'",
	}
	ended := make(map[string]int)
	for round := 0; round < 4; round++ {
		for _, kind := range []string{"journal", "renewal", "listen"} {
			await(t, "a "+kind+" connection", func() bool {
				for _, row := range sql(t, admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE application_name = $1 AND pid <> pg_backend_pid() AND `+kinds[kind], name) {
					if row[0] == true {
						ended[kind]++
					}
				}
				return ended[kind] > round
			})
		}
	}
	over.Store(true)
	if _, err := last.Result(bounded(t)); err != nil {
		t.Error(err)
	}
	epochs := 0
	for i, run := range handles {
		want := steps*i + steps*(steps-1)/2
		if v, err := run.Result(bounded(t)); err != nil || v != want {
			t.Errorf("run %d: %d, %v; want %d", i, v, err, want)
		}
		epochs = max(epochs, info(t, e, run.ID()).Epoch)
	}
	_, repeated := judgeSteady(t, l)
	t.Logf("ended=%v runs=%d steps=%d repeated=%d most_epochs=%d", ended, runs, runs*steps, repeated, epochs)
}

// Row 13: the reply to a commit is cut off after the server has committed: of a start,
// of each step, of a user's transaction, and of the end. Everything happens once.
func TestRow13_LostReplyToCommit(t *testing.T) {
	t.Parallel()
	server := ownServer(t)
	p := newProxy(t, server.TCP())
	ctx := bounded(t)
	s, err := postgres.Open(ctx, p.url(t, server.TCP()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	direct := session(t, server.URL())
	sql(t, direct, "CREATE TABLE charges (run text, step text)")
	l := newLedger(t)
	cuts := make(map[string]int)
	w := durable.Define("cut", func(c *durable.Ctx, in string) (string, error) {
		out := ""
		for i := range 3 {
			name := fmt.Sprintf("needle-step-%d", i)
			v, err := c.Step(name, func(ctx context.Context) (string, error) {
				l.did(ctx, c.ID(), name)
				p.arm(name)
				return name, nil
			})
			if err != nil {
				return "", err
			}
			cuts[name] = p.arm("")
			out += v + " "
		}
		for i := range 3 {
			name := fmt.Sprintf("needle-tx-%d", i)
			v, err := postgres.Tx(c, name, func(ctx context.Context, tx pgx.Tx) (string, error) {
				l.did(ctx, c.ID(), name)
				if _, err := tx.Exec(ctx, "INSERT INTO charges VALUES ($1, $2)", c.ID(), name); err != nil {
					return "", err
				}
				if durable.Attempt(ctx) == 1 && cuts[name] == 0 {
					cuts[name] = 1
					p.arm("tx " + name)
				}
				return name, nil
			})
			if err != nil {
				return "", err
			}
			cuts[name] = p.arm("")
			out += v + " "
		}
		p.arm("needle-end") // the output's
		return out + "needle-end", nil
	})
	e := engineOn(t, s, durable.Config{}, w)
	runEngine(t, e)
	await(t, "the worker", func() bool { ws, err := e.Workers(ctx); return err == nil && len(ws) == 1 })
	const want = "needle-step-0 needle-step-1 needle-step-2 needle-tx-0 needle-tx-1 needle-tx-2 needle-end"
	p.arm("needle-run")
	run := start(t, e, w, "x", durable.ID("needle-run"))
	out, err := run.Result(ctx)
	if err != nil || out != want {
		t.Fatalf("%q, %v", out, err)
	}
	total := p.arm("")
	rows := sql(t, direct, "SELECT step, count(*) FROM charges GROUP BY step ORDER BY step")
	if len(rows) != 3 {
		t.Errorf("user rows: %v", rows)
	}
	for _, row := range rows {
		if row[1] != int64(1) {
			t.Errorf("the user's row of %v is there %v times", row[0], row[1])
		}
	}
	steps := sql(t, direct, "SELECT count(*), count(DISTINCT name), max(attempt) FROM durable.step")[0]
	runs := sql(t, direct, "SELECT count(*), max(epoch >> 32)::integer FROM durable.run")[0]
	if steps[0] != int64(6) || steps[1] != int64(6) || runs[0] != int64(1) || runs[1] != int32(1) {
		t.Errorf("step rows %v, run rows %v", steps, runs)
	}
	for key, n := range l.counts(t) {
		if n != 1 && !bytes.Contains([]byte(key), []byte("needle-tx")) {
			t.Errorf("%s ran %d times", key, n)
		}
	}
	if total != 8 {
		t.Errorf("%d replies were cut, want 8: %v", total, cuts)
	}
	t.Logf("answers_cut=%d (start 1, steps 3, tx 3, end 1) step_rows=%v run_rows=%v user_rows=%d executions=%v", total, steps[0], runs[0], len(rows), len(l.read(t)))
}
