package faults

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// series is a workflow of one step that fails until its fifth attempt.
func series(l ledger, wait time.Duration, block int) *durable.Workflow[int, int] {
	return durable.Define("series", func(c *durable.Ctx, in int) (int, error) {
		return c.Step("try", func(ctx context.Context) (int, error) {
			n := durable.Attempt(ctx)
			l.did(ctx, c.ID(), "try")
			say("attempt", n)
			if n == block {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			if n < 5 {
				return 0, fmt.Errorf("attempt %d failed", n)
			}
			return n, nil
		}, durable.Retry(durable.Fixed(wait, 5)))
	})
}

const seriesWait = 600 * time.Millisecond

func init() {
	scenarios["series"] = func(ctx context.Context, j *job, s durable.Store) error {
		w := series(j.Ledger, seriesWait, int(j.N))
		f := &faulty{Store: s, afterCommit: func(_ int64, b *store.Batch) error {
			for _, w := range b.Steps {
				if j.N == 0 && w.Step.Attempt == 2 && w.Step.Status == store.StepBackoff {
					die()
				}
			}
			return nil
		}}
		e, err := durable.New(f, durable.Config{Workflows: []durable.Definition{w}, Lease: j.Lease})
		if err != nil {
			return err
		}
		_, err = w.Call(ctx, e, 1, durable.ID(j.ID))
		return err
	}
}

// Row 31: the process dies between two attempts, in the middle of one, and in the
// middle of the last: no attempt is lost, none is made too early, and never more than
// the policy's five are made.
func TestRow31_TakeoverInARetrySeries(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s := db.openIn(t)
		for _, c := range []struct {
			id     string
			block  int // the attempt that hangs; zero: none, killed in the backoff after the second
			want   []int
			kept   int // the last attempt that failed or died
			failed bool
		}{
			{"backoff", 0, []int{1, 2, 3, 4, 5}, 4, false},
			{"second", 2, []int{1, 2, 3, 4, 5}, 4, false},
			{"last", 5, []int{1, 2, 3, 4, 5}, 5, true},
		} {
			t.Run(c.id, func(t *testing.T) {
				l := newLedger(t)
				w := series(l, seriesWait, c.block)
				e := engineOn(t, s, durable.Config{}, w)
				p := spawn(t, job{Scenario: "series", DB: db, Ledger: l, ID: c.id, N: int64(c.block)})
				if c.block > 0 {
					await(t, "the attempt to kill", func() bool {
						at := history(t, e, c.id)["try"]
						return at.Attempts == c.block && at.Status == "started"
					})
					p.kill()
				}
				p.mustBeKilled(syscall.SIGKILL)
				at := history(t, e, c.id)["try"]
				expire(t, db, c.id)
				died := len(l.of(t, c.id, "try"))
				out, err := w.Call(bounded(t), e, 1, durable.ID(c.id))
				did := l.of(t, c.id, "try")
				var got []int
				for _, d := range did {
					got = append(got, d.Attempt)
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("attempts %v, want %v", got, c.want)
				}
				if c.failed {
					// Whether the last attempt took effect is not known; it may not be made again.
					if err == nil {
						t.Errorf("%d, though the last attempt ended with its process", out)
					}
				} else if err != nil || out != 5 {
					t.Errorf("%d, %v", out, err)
				}
				// What is kept of them: the first, of the process that died, and the last.
				kept := history(t, e, c.id)["try"]
				first, last := kept.FirstFailure, kept.LastFailure
				switch {
				case first == nil || last == nil || first.WorkerID == "" || last.WorkerID == "":
					t.Errorf("kept of the attempts: %+v and %+v", first, last)
				case first.Attempt != 1 || first.Interrupted || last.Attempt != c.kept || last.Interrupted != c.failed || (last.WorkerID == first.WorkerID) != c.failed:
					t.Errorf("kept of the attempts: %+v and %+v", first, last)
				}
				if c.block == 0 && len(did) > 2 && did[2].At.Add(reading).Before(at.NextAt) {
					t.Errorf("attempt 3 at %v, due at %v", did[2].At, at.NextAt)
				}
				t.Logf("died_in_or_after_attempt=%d attempts=%v err=%v", died, got, err)
			})
		}
	})
}

// A long backoff leaves memory: the row waits with its wake time, and the run goes on
// in time.
func TestRow31_LongBackoffLeavesMemory(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const wait = 1200 * time.Millisecond
		l := newLedger(t)
		var left error
		w := durable.Define("long", func(c *durable.Ctx, in int) (int, error) {
			v, err := c.Step("try", func(ctx context.Context) (int, error) {
				l.did(ctx, c.ID(), "try")
				if durable.Attempt(ctx) == 1 {
					return 0, errors.New("come again later")
				}
				return in, nil
			}, durable.Retry(durable.Fixed(wait, 2)))
			if err != nil {
				left = context.Cause(c)
			}
			return v, err
		})
		e := engineOn(t, db.openIn(t), durable.Config{ParkAfter: 200 * time.Millisecond}, w)
		runEngine(t, e)
		start(t, e, w, 9, durable.ID("long"))
		var parked *durable.RunInfo
		await(t, "the run to leave memory", func() bool {
			parked = info(t, e, "long")
			return parked.Status == durable.StatusWaiting
		})
		due := history(t, e, "long")["try"].NextAt
		if !parked.WakeAt.Equal(due) || parked.Owner != "" {
			t.Errorf("wakes at %v, owned by %q; the next attempt is due at %v", parked.WakeAt, parked.Owner, due)
		}
		if out, err := result(t, e, w, "long"); err != nil || out != 9 {
			t.Errorf("%d, %v", out, err)
		}
		mustFail(t, left, durable.ErrParked)
		did := l.of(t, "long", "try")
		late := did[1].At.Sub(due)
		if len(did) != 2 || late < -reading {
			t.Errorf("%+v, due %v", did, due)
		}
		t.Logf("waiting=true attempts=%d late=%v epochs=%d", len(did), late.Round(time.Millisecond), info(t, e, "long").Epoch)
	})
}
