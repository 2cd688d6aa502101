package durable_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// listening is how a listener waits for the signal "answer", and for how long.
type listening struct {
	How   string
	Bound time.Duration
}

// listener is a workflow that waits for the signal "answer" in one of several ways. If none arrived in time, it waits for the
// same signal again, without a bound.
func listener(tokens chan string) *durable.Workflow[listening, string] {
	return durable.Define("listener", func(c *durable.Ctx, in listening) (string, error) {
		bound := []durable.ReceiveOption{durable.Within(in.Bound), durable.Else("nobody")}
		wait := func(c *durable.Ctx) (string, error) { return c.Receive[string]("answer", bound...) }
		again := func() (string, error) { return c.Receive[string]("again", durable.OnSignal("answer")) }
		switch in.How {
		case "callback":
			wait = func(c *durable.Ctx) (string, error) {
				a := c.Callback[string]("answer")
				tokens <- a.Token()
				return a.Wait(bound...)
			}
			again = func() (string, error) { return "unseen", nil } // no other receive can receive the value of a token
		case "branch":
			inner := wait
			wait = func(c *durable.Ctx) (string, error) { return c.Go("branch", inner).Wait() }
		}
		got, err := wait(c)
		if err != nil || got != "nobody" {
			return got, err
		}
		late, err := again()
		return got + ", then " + late, err
	})
}

// leftWaiting starts a run and stops its process while the run waits with the bound. It terminates a run that waited no longer when it was
// seen, because the machine is slow, and starts another one with a longer bound.
func leftWaiting(t *testing.T, s durable.Store, client *durable.Engine, w *durable.Workflow[listening, string], in listening) *durable.Run[string] {
	t.Helper()
	for ; ; in.Bound *= 4 {
		stop := running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond}))
		run := read(w.Start(within(t), client, in, durable.ID(fmt.Sprint(in.How, " ", in.Bound))))(t)
		var info *durable.RunInfo
		waitFor(t, func() bool {
			info = read(client.Get(within(t), run.ID()))(t)
			return info.Status == durable.StatusWaiting || !info.EndedAt.IsZero()
		})
		stop()
		info = read(client.Get(within(t), run.ID()))(t)
		if info.Status == durable.StatusWaiting && len(info.OpenCalls) == 1 && !info.OpenCalls[0].Until.IsZero() {
			return run
		}
		giveUp(t, client, run)
	}
}

// giveUp terminates a run whose bound was too short.
func giveUp(t *testing.T, client *durable.Engine, run *durable.Run[string]) {
	t.Helper()
	if _, err := client.Terminate(within(t), run.ID()); err != nil && !errors.Is(err, durable.ErrState) {
		t.Fatal(err)
	}
}

// isInTime reports whether the time of the run's receive is not over, by the database's clock.
func isInTime(t *testing.T, s durable.Store, client *durable.Engine, run *durable.Run[string]) bool {
	t.Helper()
	info := read(client.Get(within(t), run.ID()))(t)
	return len(info.OpenCalls) == 1 && dbNow(t, s).Before(info.OpenCalls[0].Until)
}

// over waits until the time of the run's receive is over, by the database's clock.
func over(t *testing.T, s durable.Store, e *durable.Engine, id string) {
	t.Helper()
	info, err := e.Get(within(t), id)
	if err != nil || len(info.OpenCalls) != 1 || info.OpenCalls[0].Until.IsZero() {
		t.Fatalf("the run waits for %+v, %v", info, err)
	}
	waitUntil(t, s, info.OpenCalls[0].Until)
}

// A signal that arrives after the time of a wait is over does not end that wait, even if no process has executed the run
// meanwhile. The next receive gets the signal.
func TestALateSignalDoesNotBeatAWaitThatIsOver(t *testing.T) {
	for _, how := range []string{"receive", "callback", "branch"} {
		t.Run(how, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				tokens := make(chan string, 100)
				w := listener(tokens)
				client := engineOn(t, s)
				run := leftWaiting(t, s, client, w, listening{how, 2 * time.Second}) // it has to be seen waiting
				over(t, s, client, run.ID())
				want := "nobody, then late"
				if how == "callback" {
					want = "nobody, then unseen"
					token := ""
					for len(tokens) > 0 { // the last one is that of the run
						token = <-tokens
					}
					if err := client.Complete(within(t), token, "late"); err != nil {
						t.Fatal(err)
					}
				} else {
					signal(t, client, run.ID(), "answer", "late")
				}
				running(t, engineOn(t, s, w))
				if got, err := run.Result(within(t)); err != nil || got != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			})
		})
	}
}

// A signal that arrives in time is received, however late the run is executed, and no escalation is sent.
func TestASignalInTimeWinsHoweverLateItIsNoticed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var told atomic.Int32
		helper := durable.Define("helper", func(*durable.Ctx, int) (int, error) { told.Add(1); return 0, nil })
		w := durable.Define("w", func(c *durable.Ctx, in listening) (string, error) {
			instead := durable.Else("nobody")
			if in.How == "escalates" {
				instead = durable.ElseStart(helper, 0)
			}
			return c.Receive[string]("answer", durable.Within(in.Bound), instead)
		})
		client := engineOn(t, s)
		for _, how := range []string{"plain", "escalates"} {
			in, run := listening{how, 3 * time.Second}, (*durable.Run[string])(nil)
			for ; ; in.Bound *= 5 { // other bounds than those of leftWaiting
				run = leftWaiting(t, s, client, w, in)
				if isInTime(t, s, client, run) {
					signal(t, client, run.ID(), "answer", "in time")
					if isInTime(t, s, client, run) {
						break
					}
				}
				giveUp(t, client, run)
			}
			over(t, s, client, run.ID())
			stop := running(t, engineOn(t, s, w, helper))
			if got, err := run.Result(within(t)); err != nil || got != "in time" {
				t.Errorf("%s: got %q, %v", how, got, err)
			}
			stop()
		}
		if n := told.Load(); n != 0 {
			t.Errorf("the wait that a signal had ended was escalated %d times", n)
		}
	})
}

// A signal of a user's transaction arrives when the transaction writes it, under the run's lock, and not when it commits: the
// receive waits for the commit.
func TestASignalTxThatWroteInTimeWins(t *testing.T) {
	schema := pgtest.Schema(t)
	pool, err := pgxpool.New(within(t), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(pool, postgres.Schema(schema))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := listener(nil)
	e := engineOn(t, s, w)
	defer running(t, e)()
	var run *durable.Run[string]
	var tx pgx.Tx
	for in := (listening{"receive", time.Second}); ; in.Bound *= 4 { // on a slow machine the signal may be late, so another run gets a longer bound
		run = read(w.Start(within(t), e, in, durable.ID(fmt.Sprint("run ", in.Bound))))(t)
		waitFor(t, func() bool { return len(read(e.Get(within(t), run.ID()))(t).OpenCalls) == 1 })
		tx = read(pool.Begin(within(t)))(t)
		if err := postgres.SignalTx(within(t), tx, e, run.ID(), "answer", "written in time"); err != nil {
			t.Fatal(err)
		}
		if isInTime(t, s, e, run) {
			break
		}
		if err := tx.Rollback(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	over(t, s, e, run.ID())
	if err := tx.Commit(within(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(within(t)); err != nil || got != "written in time" {
		t.Errorf("got %q, %v", got, err)
	}
}
