package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// If a workflow function calls a method of an engine that writes with its own Ctx, the call is refused with an error that names
// the durable call to use. In a step, and for methods that read, the call is allowed.
func TestEngineCallsOfAWorkflowFunctionAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		kid := durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 0, nil })
		var e *durable.Engine
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			derived, cancel := context.WithTimeout(c, time.Hour)
			defer cancel()
			for _, ctx := range []context.Context{c, derived} {
				for _, x := range []struct {
					instead string
					err     error
				}{
					{"Ctx.Start", second(kid.Start(ctx, e, 1))},
					{"Ctx.Start", second(kid.StartMany(ctx, e, []durable.StartItem[int]{{Input: 1}}))},
					{"Ctx.Child", second(kid.Call(ctx, e, 1))},
					{"Ctx.Signal", e.Signal(ctx, "other", "s", 1)},
					{"in a step", e.Complete(ctx, c.Callback[int]("a").Token(), 1)},
					{"Child.Cancel", second(e.Pause(ctx, "other"))},
					{"Child.Cancel", second(e.CancelAll(ctx, durable.Filter{Workflow: "kid"}))},
					{"Ctx.SetTags", e.SetTags(ctx, "other", map[string]string{"a.b": "c"})},
					{"Timeout", e.SetTimeout(ctx, "other", time.Hour)},
				} {
					if !errors.Is(x.err, durable.ErrOutsideStep) || !strings.Contains(x.err.Error(), x.instead) {
						return 0, fmt.Errorf("%w: want ErrOutsideStep, and to be told of %s", x.err, x.instead)
					}
				}
			}
			if _, err := e.Get(c, c.ID()); err != nil { // methods that read are allowed
				return 0, err
			}
			if err := c.Do("start", func(ctx context.Context) error {
				if _, err := kid.Start(c, e, 1, durable.ID("kid-1")); err != nil { // the engine call gets the workflow's context
					return err
				}
				_, err := kid.Start(ctx, e, 1, durable.ID("kid-2"))
				return err
			}); err != nil {
				return 0, err
			}
			return c.Go("branch", func(c *durable.Ctx) (int, error) {
				if _, err := kid.Start(c, e, 1); !errors.Is(err, durable.ErrOutsideStep) {
					return 0, fmt.Errorf("%w: want ErrOutsideStep in a branch", err)
				}
				return 0, nil
			}).Wait()
		})
		e = engineOn(t, s, w, kid)
		if _, err := w.Call(within(t), e, 0, durable.ID("x")); err != nil {
			t.Error(err)
		}
		if page := read(e.List(within(t), durable.Filter{Workflow: "kid"}, durable.Page{}))(t); len(page.Runs) != 2 {
			t.Errorf("%d kids were started, want the 2 of the step", len(page.Runs))
		}
	})
}

func second[T any](_ T, err error) error { return err }
