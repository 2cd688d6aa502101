package durabletest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// The clock moves while a compensation waits for its next attempt, after a failure and after a cancel, whether the run leaves memory
// meanwhile or not.
func TestTheClockMovesWhileACompensationIsInBackoff(t *testing.T) {
	for _, delay := range []time.Duration{time.Second, time.Hour} {
		for _, how := range []string{"a failure", "a cancel"} {
			t.Run(how+", "+delay.String(), func(t *testing.T) {
				ctx := quickly(t)
				attempts := 0
				w := durable.Define("pay", func(c *durable.Ctx, in int) (int, error) {
					if err := c.Compensate("refund", func(context.Context) error {
						if attempts++; attempts < 3 {
							return errors.New("the bank is closed")
						}
						return nil
					}, durable.Retry(durable.Fixed(delay, 10))); err != nil {
						return 0, err
					}
					if how == "a failure" {
						return 0, errors.New("card declined")
					}
					return c.Receive[int]("never")
				})
				e := durabletest.New(t, w)
				_, err := w.Start(ctx, e.Engine, 1, durable.ID("r"))
				must(t, err)
				want := durable.StatusFailed
				if how == "a cancel" {
					want = durable.StatusCancelled
					e.Advance(time.Second)
					_, err := e.Cancel(ctx, "r")
					must(t, err)
				}
				began := e.Now()
				e.Advance(2 * delay)
				info, err := e.Get(ctx, "r")
				must(t, err)
				if info.Status != want || attempts != 3 || info.EndedAt.Sub(began) < 2*delay-time.Second {
					t.Errorf("after %v the run is %s, and its compensation had %d attempts", info.EndedAt.Sub(began), info.Status, attempts)
				}
			})
		}
	}
}
