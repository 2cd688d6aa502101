package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A step cannot repair its own run: the repair would wait for the step, or interrupt it again and again.
func TestAStepThatRepairsItsOwnRunIsRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var e *durable.Engine
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			id := c.ID()
			return c.Step("repair", func(ctx context.Context) (string, error) {
				for _, opts := range [][]durable.ControlOption{nil, {durable.InterruptSteps()}} {
					var refused *durable.StateError
					if _, err := e.Override(ctx, id, "a", nil, opts...); !errors.As(err, &refused) || !strings.Contains(err.Error(), `step "repair"`) {
						return "", fmt.Errorf("not refused: %w", err)
					}
				}
				_, err := e.Override(ctx, id, "a", nil, durable.DryRun())
				return "done", err
			})
		})
		e = engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		wantResult(t, w, e, "r", "done")
	})
}
