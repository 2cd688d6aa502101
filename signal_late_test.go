package durable_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// listener is a workflow that waits for the signal "answer" in one of several ways. If none arrived in time, it waits for the
// same signal again, without a bound.
func listener(within time.Duration, tokens chan string) *durable.Workflow[string, string] {
	return durable.Define("listener", func(c *durable.Ctx, how string) (string, error) {
		bound := []durable.ReceiveOption{durable.Within(within), durable.Else("nobody")}
		wait := func(c *durable.Ctx) (string, error) { return c.Receive[string]("answer", bound...) }
		again := func() (string, error) { return c.Receive[string]("again", durable.OnSignal("answer")) }
		switch how {
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
				tokens := make(chan string, 10)
				w := listener(2*time.Second, tokens) // it has to be seen waiting
				client := engineOn(t, s)
				first := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
				stop := running(t, first)
				run, err := w.Start(within(t), first, how, durable.ID("run"))
				if err != nil {
					t.Fatal(err)
				}
				awaitStatus(t, client, "run", durable.StatusWaiting)
				stop()
				over(t, s, client, "run")
				want := "nobody, then late"
				if how == "callback" {
					want = "nobody, then unseen"
					if err := client.Complete(within(t), <-tokens, "late"); err != nil {
						t.Fatal(err)
					}
				} else {
					signal(t, client, "run", "answer", "late")
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
		w := durable.Define("w", func(c *durable.Ctx, escalates bool) (string, error) {
			if escalates {
				return c.Receive[string]("answer", durable.Within(5*time.Second), durable.ElseStart(helper, 0))
			}
			return c.Receive[string]("answer", durable.Within(5*time.Second), durable.Else("nobody"))
		})
		client := engineOn(t, s)
		first := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		stop := running(t, first)
		runs := make(map[string]*durable.Run[string])
		for id, escalates := range map[string]bool{"plain": false, "escalates": true} {
			run, err := w.Start(within(t), first, escalates, durable.ID(id))
			if err != nil {
				t.Fatal(err)
			}
			runs[id] = run
			awaitStatus(t, client, id, durable.StatusWaiting)
		}
		stop()
		for id := range runs {
			signal(t, client, id, "answer", "in time")
		}
		for id := range runs {
			info, err := client.Get(within(t), id)
			if err != nil || len(info.OpenCalls) != 1 {
				t.Fatal(info, err)
			}
			if now, err := s.Now(within(t)); err != nil || now.After(info.OpenCalls[0].Until) {
				t.Fatalf("the machine was too slow for the signals to be in time, %v", err)
			}
		}
		for id := range runs {
			over(t, s, client, id)
		}
		running(t, engineOn(t, s, w, helper))
		for id, run := range runs {
			if got, err := run.Result(within(t)); err != nil || got != "in time" {
				t.Errorf("%s: got %q, %v", id, got, err)
			}
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
	w := listener(time.Second, nil)
	e := engineOn(t, s, w)
	defer running(t, e)()
	run, err := w.Start(within(t), e, "receive", durable.ID("run"))
	if err != nil {
		t.Fatal(err)
	}
	for { // until the wait is recorded
		info, err := e.Get(within(t), "run")
		if err != nil {
			t.Fatal(err)
		}
		if len(info.OpenCalls) == 1 {
			break
		}
	}
	tx, err := pool.Begin(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.SignalTx(within(t), tx, e, "run", "answer", "written in time"); err != nil {
		t.Fatal(err)
	}
	over(t, s, e, "run")
	if err := tx.Commit(within(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(within(t)); err != nil || got != "written in time" {
		t.Errorf("got %q, %v", got, err)
	}
}
