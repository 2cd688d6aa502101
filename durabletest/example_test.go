package durabletest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// t is the test's own; these examples are parts of tests.
var t *testing.T

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

// A month passes in milliseconds.
func ExampleNew() {
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("mail", mail), durabletest.FailFirst("mail", 2, errors.New("busy")))

	run, err := Signup.Start(t.Context(), e.Engine, trial{"ada"}, durable.ID("ada"))
	if err != nil {
		t.Fatal(err)
	}
	e.Advance(48 * time.Hour) // two days later she confirms
	if err := e.Signal(t.Context(), "ada", "confirmed", true); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(t.Context()); err != nil || got != "over" {
		t.Errorf("got %q, %v", got, err)
	}
	if n := e.Attempts("ada", "mail"); n != 3 {
		t.Errorf("%d attempts to send the mail", n)
	}
	e.AssertCompleted("ada", "mail", "confirmed", "trial", "invoice")
}

func ExampleNewWithOptions() {
	e := durabletest.NewWithOptions(t, []durable.Definition{Signup},
		durabletest.OnStore(durabletest.PostgresStore(t)),
		durabletest.StartClockAt(time.Date(2030, 12, 31, 23, 59, 0, 0, time.UTC)),
		durabletest.Configure(func(c *durable.Config) { c.Concurrency = 1 }))
	e.Advance(time.Minute) // happy new year
}

// A package that tests on PostgreSQL has this TestMain.
func ExampleMain() {
	_ = func(m *testing.M) int { // func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) }
		return durabletest.Main(m)
	}
}

// Time passes until something has happened.
func ExampleEngine_AdvanceUntil() {
	e := durabletest.New(t, Signup)
	invoiced := false
	e.Use(durabletest.Stub("invoice", func(context.Context) (struct{}, error) { invoiced = true; return struct{}{}, nil }))
	e.AdvanceUntil(func() bool { return invoiced })
}

// The process dies before, after and without an answer to each write of a run.
func ExampleCrashEverywhere() {
	durabletest.CrashEverywhere(t, Signup, trial{"ada"},
		durabletest.Stub("mail", mail),
		durabletest.SignalAfter(48*time.Hour, "confirmed", true))
}

// Runs that production exported are replayed against the code of today.
func ExampleReplayDir() {
	durabletest.ReplayDir(t, "testdata/runs", Signup)
}

func ExampleReplay() {
	e := durabletest.New(t, Signup)
	exported, err := e.Export(t.Context(), "ada") // or what was kept of a run in production
	if err != nil {
		t.Fatal(err)
	}
	if v := durabletest.Replay(t, Signup, exported); v.Diverged {
		t.Errorf("at %s: %s", v.Step, v.Reason)
	}
}

// The card is declined twice, in whatever process.
func ExampleFailFirst() {
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("charge", func(context.Context) (string, error) { return "receipt", nil }))
	e.Use(durabletest.FailFirst("charge", 2, errors.New("declined")))
}

func ExampleStub() {
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("orders/*", func(ctx context.Context) (int, error) { return durable.Attempt(ctx), nil }))
}

// A worker with newer code continues the runs of the first engine.
func ExampleEngine_StartAnother() {
	e := durabletest.New(t, Signup)
	if _, err := Signup.Start(t.Context(), e.Engine, trial{"ada"}, durable.ID("ada")); err != nil {
		t.Fatal(err)
	}
	e.Stop()
	newer := e.StartAnother(Signup)
	newer.Advance(72 * time.Hour)
}

// The clock stands still while the test waits for a result.
func ExampleEngine_FreezeClock() {
	e := durabletest.New(t, Signup)
	e.FreezeClock()
	defer e.UnfreezeClock()
	e.Advance(time.Hour) // the only way for time to pass
}

// The history of the run holds these calls, and no others.
func ExampleEngine_AssertCompletedOnly() {
	e := durabletest.New(t, Signup)
	e.AssertCompletedOnly("ada", "mail", "confirmed", "trial", "invoice")
}

// Without a confirmation there is no invoice.
func ExampleEngine_AssertNotCalled() {
	e := durabletest.New(t, Signup)
	e.Use(durabletest.Stub("mail", mail))
	if _, err := Signup.Start(t.Context(), e.Engine, trial{"ada"}, durable.ID("ada")); err != nil {
		t.Fatal(err)
	}
	e.Advance(72 * time.Hour)
	e.AssertNotCalled("ada", "invoice")
	if err := e.RequireFailed("ada", "confirmed"); !errors.Is(err, durable.ErrTimeout) {
		t.Errorf("the wait for the confirmation failed with %v", err)
	}
}

// A stub returns an error, and the test counts the attempts.
func ExampleEngine_Attempts() {
	e := durabletest.New(t, Signup)
	stub := durabletest.Stub("mail", func(context.Context) (struct{}, error) { return struct{}{}, errors.New("down") })
	e.Use(stub)
	if _, err := Signup.Start(t.Context(), e.Engine, trial{"ada"}, durable.ID("ada")); err != nil {
		t.Fatal(err)
	}
	e.Advance(24 * time.Hour)
	if e.Attempts("ada", "mail") != 5 || stub.Calls() != 5 || len(e.ExecutedSteps("ada")) != 1 {
		t.Errorf("executed %q, with %d attempts of mail", e.ExecutedSteps("ada"), e.Attempts("ada", "mail"))
	}
}

// The crash tests run on PostgreSQL. The step "token" returns another token each time, and the stub of "refund" is not
// always called.
func ExampleOnNewStores() {
	durabletest.CrashEverywhere(t, Signup, trial{"ada"},
		durabletest.OnNewStores(durabletest.PostgresStore),
		durabletest.Stub("mail", mail),
		durabletest.Stub("refund", mail).Optional(),
		durabletest.VaryingSteps("token"),
		durabletest.SignalAfter(48*time.Hour, "confirmed", true))
}
