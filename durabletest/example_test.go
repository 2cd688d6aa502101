package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/exampletest"
	"github.com/seed8ec063be/durable/postgres"
)

// In a test, t is the *testing.T. In these examples it prints the failures.

type trial struct{ User string }

// Signup waits for a confirmation, then for the end of a month of trial.
var Signup = durable.Define("signup", func(c *durable.Ctx, in trial) (string, error) {
	if err := c.Do("mail", func(context.Context) error { return errors.New("there is no mail server in a test") },
		durable.Retry(durable.Exponential(time.Minute, time.Hour, 5))); err != nil {
		return "", err
	}
	if _, err := c.Receive[bool]("confirmed", durable.Within(72*time.Hour)); err != nil {
		return "", err
	}
	if err := c.Sleep("trial", 30*24*time.Hour); err != nil {
		return "", err
	}
	return "over", c.Do("invoice", func(context.Context) error { return nil })
})

func mail(context.Context) (struct{}, error) { return struct{}{}, nil }

// signUp starts Signup for Ada.
func signUp(t testing.TB, e *durabletest.Engine) *durable.Run[string] {
	t.Helper()
	run, err := Signup.Start(t.Context(), e.Engine, trial{"ada"}, durable.ID("ada"))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// A month passes in milliseconds.
func ExampleNew() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("mail", mail))

	run := signUp(t, e)
	e.Advance(48 * time.Hour) // two days later she confirms
	if err := e.Signal(t.Context(), "ada", "confirmed", true); err != nil {
		t.Fatal(err)
	}
	fmt.Println(run.Result(t.Context()))
	e.AssertStepsCompleted("ada", "mail", "confirmed", "trial", "invoice")
	// Output: over <nil>
}

func ExampleNewWithOptions() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.NewWithOptions(t, []durable.Definition{Signup},
		durabletest.OnStore(durabletest.PostgresStore(t)),
		durabletest.StartClockAt(time.Date(2030, 12, 31, 23, 59, 0, 0, time.UTC)),
		durabletest.Configure(func(c *durable.Config) { c.Concurrency = 1 }))
	e.Advance(time.Minute) // happy new year
	fmt.Println(e.Store().Name(), e.Now().Year())
	// Output: postgres 2031
}

// A store that needs options is opened with PostgresURL.
func ExamplePostgresURL() {
	t := exampletest.New()
	defer t.End()
	store, err := postgres.Open(t.Context(), durabletest.PostgresURL(t), postgres.Schema("shop"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	e := durabletest.NewWithOptions(t, nil, durabletest.OnStore(store), durabletest.Workflows(Signup))
	e.Use(durabletest.Stub("mail", mail))
	fmt.Println(signUp(t, e).ID())
	e.Advance(time.Minute)
	// Output: ada
}

// The database's own clock passes, so that this sleep takes 10 ms.
func ExampleRealTime() {
	t := exampletest.New()
	defer t.End()
	nap := durable.Define("nap", func(c *durable.Ctx, d time.Duration) (string, error) { return "awake", c.Sleep("nap", d) })
	e := durabletest.NewWithOptions(t, []durable.Definition{nap}, durabletest.RealTime())
	fmt.Println(nap.Call(t.Context(), e.Engine, 10*time.Millisecond))
	// Output: awake <nil>
}

// A package that tests on PostgreSQL has this TestMain.
func ExampleMain() {
	_ = func(m *testing.M) int { // func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) }
		return durabletest.Main(m)
	}
}

// Time passes until something has happened.
func ExampleEngine_AdvanceUntil() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	invoiced := false
	e.Use(durabletest.Stub("mail", mail))
	e.Use(durabletest.Stub("invoice", func(context.Context) (struct{}, error) { invoiced = true; return struct{}{}, nil }))
	signUp(t, e)
	if err := e.Signal(t.Context(), "ada", "confirmed", true); err != nil {
		t.Fatal(err)
	}
	begun := e.Now()
	e.AdvanceUntil(func() bool { return invoiced })
	fmt.Println(e.Now().Sub(begun).Round(time.Hour))
	// Output: 720h0m0s
}

// The process dies before and after each write of a run, and before it learns that a write has succeeded.
func ExampleCrashEverywhere() {
	t := exampletest.New()
	defer t.End()
	t.Quiet(func() { // CrashEverywhere prints how many writes it has tried
		durabletest.CrashEverywhere(t, Signup, trial{"ada"},
			durabletest.Stub("mail", mail),
			durabletest.SignalAfter(48*time.Hour, "confirmed", true))
	})
	fmt.Println("failed:", t.Failed())
	// Output: failed: false
}

// Runs that production exported are replayed against the code of today.
func ExampleReplayDir() {
	_ = func(t *testing.T) { // func TestRunsOfProduction(t *testing.T) { ... }
		durabletest.ReplayDir(t, "testdata/runs", Signup)
	}
}

func ExampleReplay() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("mail", mail))
	signUp(t, e)
	e.Advance(time.Hour)
	exported, err := e.Export(t.Context(), "ada") // or what was kept of a run in production
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(durabletest.Replay(t, Signup, exported))

	changed := durable.Define("signup", func(c *durable.Ctx, in trial) (string, error) {
		return "", c.Sleep("mail", time.Hour) // "mail" was a step
	})
	v := durabletest.Replay(t, changed, exported)
	fmt.Println(v.Diverged, v.Step)
	// Output:
	// run "ada" replays
	// true mail
}

// The mail server is busy twice, in whatever process.
func ExampleFailFirst() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("mail", mail), durabletest.FailFirst("mail", 2, errors.New("busy")))
	signUp(t, e)
	e.Advance(time.Hour)
	fmt.Println(e.StepAttempts("ada", "mail"))
	// Output: 3
}

// The pattern "orders/*" matches every item of the Map "orders".
func ExampleStub() {
	t := exampletest.New()
	defer t.End()
	send := durable.Define("send", func(c *durable.Ctx, orders []string) ([]string, error) {
		return c.Map("orders", orders, func(context.Context, string) (string, error) {
			return "", errors.New("there is no carrier in a test")
		})
	})
	e := durabletest.New(t, send)
	e.Use(durabletest.Stub("orders/*", func(context.Context) (string, error) { return "parcel", nil }))
	fmt.Println(send.Call(t.Context(), e.Engine, []string{"a", "b"}))
	// Output: [parcel parcel] <nil>
}

// A worker with newer code continues the runs of the first engine.
func ExampleEngine_StartAnother() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("mail", mail))
	signUp(t, e)
	e.Advance(time.Hour)
	e.Stop()
	newer := e.StartAnother(Signup)
	newer.Advance(72 * time.Hour) // nobody confirms
	run, err := newer.Get(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(run.Status)
	// Output: failed
}

// The clock stands still while the test waits for a result.
func ExampleEngine_FreezeClock() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	e.FreezeClock()
	defer e.UnfreezeClock()
	before := e.Now()
	e.Advance(time.Hour) // the only way for time to pass
	fmt.Println(e.Now().Sub(before))
	// Output: 1h0m0s
}

// The history of the run holds these calls, and no others.
func ExampleEngine_AssertOnlyStepsCompleted() {
	t := exampletest.New()
	defer t.End()
	greet := durable.Define("greet", func(c *durable.Ctx, name string) (string, error) {
		return c.Step("compose", func(context.Context) (string, error) { return "hello, " + name, nil })
	})
	e := durabletest.New(t, greet)
	fmt.Println(greet.Call(t.Context(), e.Engine, "Ada", durable.ID("ada")))
	e.AssertOnlyStepsCompleted("ada", "compose")
	// Output: hello, Ada <nil>
}

// Without a confirmation there is no invoice.
func ExampleEngine_AssertNotCalled() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("mail", mail))
	signUp(t, e)
	e.Advance(72 * time.Hour)
	e.AssertNotCalled("ada", "invoice")
	fmt.Println(errors.Is(e.RequireStepFailed("ada", "confirmed"), durable.ErrTimeout))
	// Output: true
}

// A stub returns an error, and the test counts the attempts.
func ExampleEngine_StepAttempts() {
	t := exampletest.New()
	defer t.End()
	e := durabletest.New(t, Signup)
	stub := durabletest.Stub("mail", func(context.Context) (struct{}, error) { return struct{}{}, errors.New("down") })
	e.Use(stub)
	signUp(t, e)
	e.Advance(24 * time.Hour)
	fmt.Println(e.StepAttempts("ada", "mail"), stub.CallCount(), e.ExecutedSteps("ada"))
	// Output: 5 5 [mail]
}

// The crash tests run on PostgreSQL. The step "token" returns another token each time, and the stub of "refund" is not
// always called.
func ExampleOnNewStores() {
	t := exampletest.New()
	defer t.End()
	serial := 0
	order := durable.Define("order", func(c *durable.Ctx, _ int) (int, error) {
		token, err := c.Step("token", func(context.Context) (int, error) { serial++; return serial, nil })
		if err != nil {
			return 0, c.Do("refund", func(context.Context) error { return nil })
		}
		return token, nil
	})
	t.Quiet(func() { // CrashEverywhere prints how many writes it has tried
		durabletest.CrashEverywhere(t, order, 0,
			durabletest.OnNewStores(durabletest.PostgresStore),
			durabletest.Stub("refund", mail).Optional(),
			durabletest.VaryingSteps("token"))
	})
	fmt.Println("failed:", t.Failed())
	// Output: failed: false
}
