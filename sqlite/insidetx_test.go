package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// other is started, signalled and waited for by the tests here.
var other = durable.Define("other", func(c *durable.Ctx, n int) (int, error) { return c.Receive[int]("go") })

// Calls of the engine inside a Tx would wait for the connection that its function holds until their
// context ends. They are refused at once, by whatever context they are made.
func TestEngineCallsInsideTxAreRefused(t *testing.T) {
	s := shop(t)
	e := make(chan *durable.Engine, 1)
	calls := map[string]func(ctx context.Context, e *durable.Engine) error{
		"start":  func(ctx context.Context, e *durable.Engine) error { _, err := other.Start(ctx, e, 1); return err },
		"call":   func(ctx context.Context, e *durable.Engine) error { _, err := other.Call(ctx, e, 1); return err },
		"signal": func(ctx context.Context, e *durable.Engine) error { return e.Signal(ctx, "x", "go", 1) },
		"pause":  func(ctx context.Context, e *durable.Engine) error { _, err := e.Pause(ctx, "x"); return err },
		"cancel all": func(ctx context.Context, e *durable.Engine) error {
			_, err := e.CancelAll(ctx, durable.Filter{Workflow: "other"})
			return err
		},
		"tags": func(ctx context.Context, e *durable.Engine) error {
			return e.SetTags(ctx, "x", map[string]string{"a.b": "c"})
		},
		"timeout": func(ctx context.Context, e *durable.Engine) error { return e.SetTimeout(ctx, "x", time.Hour) },
		"limit": func(ctx context.Context, e *durable.Engine) error {
			return e.SetLimit(ctx, "l", durable.LimitBounds{Concurrent: 1})
		},
		"delete a limit": func(ctx context.Context, e *durable.Engine) error { return e.DeleteLimit(ctx, "l") },
		"schedule": func(ctx context.Context, e *durable.Engine) error {
			return e.SetSchedule(ctx, other.Schedule(1, durable.Schedule{Name: "s", Every: time.Hour}))
		},
		"backfill": func(ctx context.Context, e *durable.Engine) error {
			_, err := e.Backfill(ctx, "s", time.Unix(0, 0), time.Unix(1, 0))
			return err
		},
		"result": func(ctx context.Context, e *durable.Engine) error {
			run, err := other.Handle(ctx, e, "x") // a look is no write
			if err != nil {
				return err
			}
			_, err = run.Result(ctx)
			return err
		},
	}
	for name, call := range calls {
		for how, with := range map[string]func(context.Context) context.Context{
			"its context":   func(ctx context.Context) context.Context { return ctx },
			"another one":   func(context.Context) context.Context { return context.Background() },
			"its goroutine": nil,
		} {
			w := durable.Define(name+" by "+how, func(c *durable.Ctx, _ int) (int, error) {
				return sqlite.Tx(c, "tx", func(ctx context.Context, tx *sql.Tx) (int, error) {
					e := <-e
					if with != nil {
						return 1, call(with(ctx), e)
					}
					failed := make(chan error)
					go func() { failed <- call(ctx, e) }()
					return 1, <-failed
				}, durable.Retry(durable.Fixed(0, 3)))
			})
			t.Run(w.Name(), func(t *testing.T) {
				made, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w, other}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := other.Start(t.Context(), made, 1, durable.ID("x")); err != nil {
					t.Fatal(err)
				}
				e <- made
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				_, err = w.Call(ctx, made, 1)
				var failed *durable.StepError
				if !errors.Is(err, durable.ErrInsideTx) || !strings.Contains(err.Error(), "StartTx") || !strings.Contains(err.Error(), `step "tx"`) {
					t.Errorf("got %v after %v", err, time.Since(began))
				} else if errors.As(err, &failed) && failed.Attempts != 1 {
					t.Errorf("it was tried %d times", failed.Attempts)
				}
			})
		}
	}
}

// What the error tells to do works; looks at runs do, since they write nothing; and so does another file's engine.
func TestWhatATxMayCall(t *testing.T) {
	s, far := shop(t), shop(t)
	client := func(s durable.Store) *durable.Engine {
		e, err := durable.New(s, durable.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	here, there := client(s), client(far)
	if _, err := other.Start(t.Context(), here, 1, durable.ID("x")); err != nil {
		t.Fatal(err)
	}
	after := make(chan error, 1)
	_, err := execute(t, s, func(c *durable.Ctx, _ int) (int, error) {
		_, err := sqlite.Tx(c, "tx", func(ctx context.Context, tx *sql.Tx) (int, error) {
			if _, err := sqlite.StartTx(ctx, tx, here, other, 1, durable.ID("y")); err != nil {
				return 0, err
			}
			if err := sqlite.SignalTx(ctx, tx, here, "x", "go", 1); err != nil {
				return 0, err
			}
			if _, err := here.Get(ctx, "x"); err != nil {
				return 0, err
			}
			if _, err := other.Start(ctx, there, 1, durable.ID("z")); err != nil {
				return 0, err
			}
			over, end := context.WithCancel(context.WithoutCancel(ctx))
			go func() { // with the function's context, when the step is over
				<-over.Done()
				_, err := other.Start(context.WithoutCancel(ctx), here, 1, durable.ID("later"))
				after <- err
			}()
			context.AfterFunc(c, end)
			return 1, nil
		})
		return 1, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-after; err != nil {
		t.Errorf("a call after the step, with its context: %v", err)
	}
	for id, e := range map[string]*durable.Engine{"y": here, "z": there, "later": here} {
		if _, err := e.Get(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}
