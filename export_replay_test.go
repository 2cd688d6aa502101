package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// An export is replayed as its run would be: recorded calls are not made, and what the code does differently is found.
func TestReplayExport(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		shop := func(change string) *durable.Workflow[string, int] {
			return durable.Define("shop", func(c *durable.Ctx, in string) (int, error) {
				if change == "removed" {
					return 1, nil
				}
				name := "pay"
				if change == "renamed" {
					name = "charge"
				}
				paid, err := c.Step(name, func(context.Context) (int, error) {
					if change != "" {
						t.Error("a replay executes a step")
					}
					if in == "fails" {
						return 0, errors.New("declined")
					}
					return 7, nil
				})
				switch {
				case err != nil && change == "handles":
					return 0, nil
				case err != nil && change == "another error":
					return 0, errors.New("the bank has declined")
				case err != nil:
					return 0, err
				}
				if err := c.Sleep("cool down", time.Millisecond); err != nil {
					return 0, err
				}
				sums, err := c.Map("items", []int{1, 2}, func(_ context.Context, n int) (int, error) { return n + paid, nil })
				if err != nil {
					return 0, err
				}
				if in == "waits" {
					if _, err := c.Receive[int]("shipped", durable.Within(time.Hour)); err != nil {
						return 0, err
					}
				}
				if change == "one more" {
					return c.Step("mail", func(context.Context) (int, error) { return 1, nil })
				}
				if change == "another output" {
					return sums[0], nil
				}
				return sums[0] + sums[1], nil
			})
		}
		old := shop("")
		stop := running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{old}}))
		client := engineOn(t, s)
		exports := make(map[string][]byte)
		for _, in := range []string{"completes", "fails", "waits"} {
			run, err := old.Start(within(t), client, in, durable.ID(in))
			if err != nil {
				t.Fatal(err)
			}
			if in == "waits" {
				waitFor(t, func() bool { return read(client.Get(within(t), in))(t).Status == durable.StatusWaiting })
			} else {
				_, _ = run.Result(within(t)) // one of them fails
			}
			exports[in] = read(client.Export(within(t), in))(t)
		}
		stop()
		for change, want := range map[string]map[string]string{ // the reasons; none: the code fits
			"the same":       {},
			"renamed":        {"completes": "charge", "fails": "charge", "waits": "charge"},
			"removed":        {"completes": "pay", "fails": "pay", "waits": "pay"},
			"one more":       {"completes": "the run has ended"},
			"another output": {"completes": "another output"},
			"handles":        {"fails": "would complete now"},
			"another error":  {"fails": "the bank has declined"},
		} {
			e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{shop(change)}})
			for in, document := range exports {
				got, err := e.ReplayExport(within(t), document)
				if err != nil {
					t.Fatal(err)
				}
				text := got.Call + " " + got.Reason
				if got.ID != in || got.Unknown || got.Diverged != (want[in] != "") || !strings.Contains(text, want[in]) {
					t.Errorf("%s: the replay of %s is %+v, want %q", change, in, got, want[in])
				}
			}
		}
		for what, document := range map[string]string{
			"no JSON": "run", "another format": `{"format": 9}`, "no UUID": `{"format": 3, "run": {"id": "x", "run_id": "x"}}`,
			"another kind": `{"format": 3, "run": {"id": "x", "run_id": "01a2091f-576d-70bc-96d5-576886cc792d"}, "history": [{"name": "a", "kind": "dance", "status": "completed"}]}`,
		} {
			if _, err := client.ReplayExport(within(t), []byte(document)); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got, err := client.ReplayExport(within(t), exports["waits"]); err != nil || !got.Unknown {
			t.Errorf("an unknown workflow: %+v, %v", got, err)
		}
	})
}
