package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

type parcelLabel struct{ ID string }

// labelled has a step and a receive whose values are objects. The step fails if the printer does.
func labelled(printer *fixable) *durable.Workflow[string, string] {
	return durable.Define("labelled", func(c *durable.Ctx, _ string) (string, error) {
		printed, err := c.Step("print", func(context.Context) (parcelLabel, error) { return parcelLabel{"L1"}, printer.err() })
		if err != nil {
			return "", err
		}
		sent, err := c.Receive[parcelLabel]("go")
		return printed.ID + sent.ID, err
	})
}

// A recorded value that holds its run, because the code cannot decode it, does not decide which values may replace it. It does not matter
// whether a repair or a signal recorded it. The repair releases the run.
func TestAValueThatTheCodeCannotDecodeIsCorrected(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var printer fixable
		w := labelled(&printer)
		e := engineOn(t, s, w)
		running(t, e)
		wantFailed(t, orFail(w.Start(ctx, e, "", durable.ID("r")))(t))
		orFail(e.Skip(ctx, "r", "print", "L7"))(t)
		awaitStatus(t, e, "r", durable.StatusPaused)
		orFail(e.Override(ctx, "r", "print", parcelLabel{"L7"}))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		if err := e.Signal(ctx, "r", "go", "now"); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "r", durable.StatusPaused)
		if _, err := e.Override(ctx, "r", "print", 7); !errors.Is(err, durable.ErrValueType) {
			t.Errorf("another call than the one that holds the run: %v", err)
		}
		orFail(e.Fork(ctx, "r", durable.FromEnd(), durable.NewID("copy"), durable.OverrideStep("go", parcelLabel{"C"})))(t)
		orFail(e.Override(ctx, "r", "go", parcelLabel{"G"}))(t)
		wantResult(t, w, e, "r", "L7G")
		wantResult(t, w, e, "copy", "L7C")
	})
}

// OverrideStep refuses a value of another JSON type than the recorded one, as Override does.
func TestOverrideStepChecksTheTypeOfTheValue(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var printer fixable
		printer.fixed.Store(true)
		w := labelled(&printer)
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		for _, opts := range [][]durable.ControlOption{{durable.FromEnd()}, {durable.From("print")}, {durable.FromEnd(), durable.NewID("copy")}} {
			if _, err := e.Fork(ctx, "r", append(opts, durable.OverrideStep("print", 12))...); !errors.Is(err, durable.ErrValueType) {
				t.Errorf("a number instead of an object: %v", err)
			}
		}
		orFail(e.Fork(ctx, "r", durable.FromEnd(), durable.OverrideStep("print", parcelLabel{"P"})))(t)
		if err := e.Signal(ctx, "r", "go", parcelLabel{"G"}); err != nil {
			t.Fatal(err)
		}
		wantResult(t, w, e, "r", "PG")
	})
}

// A signal that the code cannot decode holds the run, and its hold names the call that received the signal, whatever the signal is called.
// Override of that call releases the run.
func TestASignalThatTheCodeCannotDecodeIsReplaced(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		tokens := make(chan string, 10)
		w := durable.Define("reader", func(c *durable.Ctx, how string) (string, error) {
			var got parcelLabel
			var err error
			switch how {
			case "other name":
				got, err = c.Receive[parcelLabel]("read", durable.OnSignal("label"))
			case "branch":
				got, err = c.Go("b", func(c *durable.Ctx) (parcelLabel, error) {
					return c.Receive[parcelLabel]("read", durable.OnSignal("label"))
				}).Wait()
			case "callback":
				b := c.Callback[parcelLabel]("read")
				tokens <- b.Token()
				got, err = b.Wait()
			}
			return got.ID, err
		})
		e := engineOn(t, s, w)
		running(t, e)
		for how, call := range map[string]string{"other name": "read", "branch": "b/read", "callback": "read"} {
			run := orFail(w.Start(ctx, e, how, durable.ID(how)))(t)
			send := func() error { return e.Signal(ctx, how, "label", "poison") }
			if how == "callback" {
				send = func() error { return e.Complete(ctx, <-tokens, "poison") }
			}
			if err := send(); err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, how, durable.StatusPaused)
			all := read(e.Divergences(ctx, how))(t)
			if len(all) != 1 || all[0].Call != call || !strings.Contains(all[0].Reason, fmt.Sprintf("with Override of the call %q", call)) {
				t.Errorf("%s: the run is held by %+v", how, all)
			}
			orFail(e.Override(ctx, how, call, parcelLabel{"L"}))(t)
			if out, err := run.Result(ctx); out != "L" || err != nil {
				t.Errorf("%s: %q, %v", how, out, err)
			}
		}
	})
}
