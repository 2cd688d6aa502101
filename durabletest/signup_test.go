package durabletest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// What the examples say, as tests.
func TestSignup(tt *testing.T) {
	e := durabletest.New(tt, Signup)
	e.Use(durabletest.Stub("mail", mail), durabletest.FailFirst("mail", 2, errors.New("busy")))
	ctx := quickly(tt)
	run, err := Signup.Start(ctx, e.Engine, trial{"ada"}, durable.ID("ada"))
	if err != nil {
		tt.Fatal(err)
	}
	e.Advance(48 * time.Hour)
	if err := e.Signal(ctx, "ada", "confirmed", true); err != nil {
		tt.Fatal(err)
	}
	if got, err := run.Result(ctx); err != nil || got != "over" {
		tt.Errorf("got %q, %v", got, err)
	}
	if n := e.StepAttempts("ada", "mail"); n != 3 {
		tt.Errorf("%d attempts to send the mail", n)
	}
	e.AssertStepsCompleted("ada", "mail", "confirmed", "trial", "invoice")
	if v := durabletest.Replay(tt, Signup, exported(tt, e, "ada")); v.Diverged || len(v.NotCalled) > 0 {
		tt.Error(v)
	}
}

func TestSignupSurvives(tt *testing.T) {
	durabletest.CrashEverywhere(tt, Signup, trial{"ada"}, durabletest.Stub("mail", mail),
		durabletest.FailFirst("mail", 2, errors.New("busy")), durabletest.SignalAfter(48*time.Hour, "confirmed", true))
}

// A wait that is too long is a failure that the test is told.
func TestUntilNothingMoreHappens(tt *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
	s := &fatal{spy: spy{TB: tt}}
	e := durabletest.New(tt, w)
	if _, err := w.Start(quickly(tt), e.Engine, 0); err != nil {
		tt.Fatal(err)
	}
	s.check(func() {
		durabletest.NewWithOptions(s, defs(w), durabletest.OnStore(e.Store())).AdvanceUntil(func() bool { return false })
	})
	if len(s.errors) != 1 {
		tt.Errorf("%q", s.errors)
	}
}

// fatal is a spy that Fatal ends.
type fatal struct{ spy }

func (s *fatal) Fatal(args ...any) { s.errors = append(s.errors, "fatal"); panic(s) }

func (s *fatal) check(f func()) {
	defer func() {
		if v := recover(); v != nil && v != any(s) {
			panic(v)
		}
	}()
	f()
}
