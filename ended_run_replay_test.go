package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// replaysAs checks what ReplayExport and durabletest.Replay report of an ended run. If call is empty, the code fits; "*" stands for any
// divergence.
func replaysAs(t *testing.T, s durable.Store, id string, w durable.Definition, call string) {
	t.Helper()
	document := read(engineOn(t, s).Export(within(t), id, durable.DecodePayloads()))(t)
	got := read(engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}}).ReplayExport(within(t), document))(t)
	if got.Diverged != (call != "") || call != "*" && got.Call != call || got.Unknown || got.Err != "" || len(got.Next) > 0 {
		t.Errorf("ReplayExport of %s: %+v, want %q", id, got, call)
	}
	if v := durabletest.Replay(t, w, document); v.Diverged != got.Diverged || v.Step != got.Call || v.Err != "" {
		t.Errorf("Replay of %s: %+v, want %+v", id, v, got)
	}
}

// The calls that open branches would make after the function of an ended run has returned are no divergence; the calls of the function, and of
// branches for which it waits, are.
func TestReplayOfAnEndedRunIgnoresItsOpenBranches(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		define := func(change string) *durable.Workflow[int, string] {
			return durable.Define("open branches", func(c *durable.Ctx, _ int) (string, error) {
				c.Go("retries", func(c *durable.Ctx) (int, error) {
					return c.Step("flaky", func(context.Context) (int, error) { return 0, errDeclined }, durable.Retry(durable.Fixed(time.Hour, 5)))
				})
				slow := c.Go("slow", func(c *durable.Ctx) (int, error) {
					if err := c.Sleep("nap", time.Hour); err != nil {
						return 0, err
					}
					return c.Step("late", ones)
				})
				quick := c.Go("quick", func(c *durable.Ctx) (int, error) {
					if change == "a call in an awaited branch" {
						_, _ = c.Step("new", ones)
					}
					return c.Step("quick", ones)
				})
				if _, _, err := durable.Any(c, "first", durable.KeepLosers, quick, slow); err != nil {
					return "", err
				}
				if _, err := c.Receive[int]("go"); err != nil {
					return "", err
				}
				if change == "a call" {
					_, _ = c.Step("new", ones)
				}
				if change == "a call removed" {
					return "done", nil
				}
				_, err := c.Step("end", ones)
				return "done", err
			})
		}
		w := define("")
		e := engineOn(t, s, w)
		stop := running(t, e)
		run := read(w.Start(within(t), e, 0, durable.ID("run")))(t)
		waitFor(t, func() bool {
			open := 0
			for _, c := range historyOf(t, e, "run") {
				if c.Name == "slow/nap" || c.Name == "retries/flaky" && c.Status == durable.CheckpointBackoff {
					open++
				}
			}
			return open == 2
		})
		if err := e.Signal(within(t), "run", "go", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); err != nil {
			t.Fatal(err)
		}
		stop()
		for change, call := range map[string]string{"": "", "a call": "new", "a call in an awaited branch": "quick/new", "a call removed": "end"} {
			replaysAs(t, s, "run", define(change), call)
		}
	})
}

// A failed run whose compensation failed has failed with the error of its function.
func TestReplayOfARunWhoseCompensationFailed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		define := func(failure error) *durable.Workflow[int, string] {
			return durable.Define("undone", func(c *durable.Ctx, _ int) (string, error) {
				if err := c.Compensate("undo", func(context.Context) error { return errors.New("no undo") }); err != nil {
					return "", err
				}
				if _, err := c.Step("pay", func(context.Context) (int, error) { return 0, errDeclined }); err != nil {
					return "", failure
				}
				return "", nil
			})
		}
		w := define(errDeclined)
		e := engineOn(t, s, w)
		stop := running(t, e)
		if _, err := w.Call(within(t), e, 0, durable.ID("run")); err == nil {
			t.Fatal("the run completes")
		}
		stop()
		replaysAs(t, s, "run", w, "")
		replaysAs(t, s, "run", define(errors.New("another error")), "*")
	})
}

// A run that has ended has passed every place of Patched, so a step appended behind Patched does not change its replay.
func TestReplayOfAnEndedRunTakesTheOldPathOfPatched(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		define := func(isPatched bool) *durable.Workflow[bool, string] {
			return durable.Define("patched", func(c *durable.Ctx, fails bool) (string, error) {
				if _, err := c.Step("pay", ones); err != nil {
					return "", err
				}
				if isPatched {
					if takes, err := c.Patched("audit"); err != nil {
						return "", err
					} else if takes {
						if _, err := c.Step("audit", ones); err != nil {
							return "", err
						}
					}
				}
				if fails {
					return "", errDeclined
				}
				return "done", nil
			})
		}
		e := engineOn(t, s, define(false))
		stop := running(t, e)
		for id, fails := range map[string]bool{"completed": false, "failed": true} {
			if _, err := define(false).Call(within(t), e, fails, durable.ID(id)); (err != nil) != fails {
				t.Fatal(err)
			}
		}
		stop()
		for _, id := range []string{"completed", "failed"} {
			replaysAs(t, s, id, define(true), "")
		}
	})
}
