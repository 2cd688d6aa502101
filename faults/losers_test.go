package faults

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// noCancels is a database that rejects requests to cancel a run, and takes everything else.
func noCancels() rejection {
	const whose = "WHEN (NEW.control & 4 <> 0)"
	return rejection{
		name: "requests to cancel",
		begin: `CREATE FUNCTION raising() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END $$;
			CREATE TRIGGER raising BEFORE UPDATE ON run FOR EACH ROW ` + whose + ` EXECUTE FUNCTION raising()`,
		end:    "DROP FUNCTION raising CASCADE",
		begin3: "CREATE TRIGGER raising BEFORE UPDATE ON durable_run " + whose + " BEGIN SELECT RAISE(ABORT, 'no'); END",
		end3:   "DROP TRIGGER raising",
	}
}

// cancelTries counts the requests to cancel runs.
type cancelTries struct {
	durable.Store
	n atomic.Int64
}

func (s *cancelTries) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	if o.Verb == store.VerbCancel {
		s.n.Add(1)
	}
	return s.Store.ControlRuns(ctx, o)
}

// Row 40: the database rejects the cancel of the children of a choice's losers. Each execution of the parent
// retries it for Patience, and is then held with the reason; the next begins after the backoff, not at once. The
// parent is paused at MaxCrashes, and a resume cancels the children when that is mended.
func TestRow40_LosersChildrenCannotBeCancelled(t *testing.T) {
	onBothOwned(t, func(t *testing.T, db database) {
		log := new(lines)
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		kids := make(chan string, 1)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			begun := make(chan struct{})
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
				h, err := c.StartChild("kid", kid, 0)
				if err != nil {
					return "", err
				}
				select {
				case kids <- h.ID():
				default:
				}
				close(begun)
				_, err = h.Wait()
				return "", err
			})
			quick := c.Go("quick", func(c *durable.Ctx) (string, error) {
				select {
				case <-begun:
				case <-c.Done():
				}
				return c.Step("quick", func(context.Context) (string, error) { return "quick", nil })
			})
			_, got, err := durable.Any(c, "first", durable.CancelLosers, slow, quick)
			if err != nil {
				return "", err
			}
			_, err = c.Receive[int]("end")
			return got, err
		})
		s := &cancelTries{Store: db.openIn(t)}
		cfg := durable.Config{Patience: 3 * time.Second, MaxCrashes: 2, Logger: slog.New(slog.NewTextHandler(log, nil))}
		e := engineOn(t, s, cfg, w, kid)
		defer runEngine(t, e)()
		fault := noCancels()
		fault.turn(t, db, true)
		run := start(t, e, w, 0, durable.ID("r"))
		var at *durable.RunInfo
		await(t, "the first release", func() bool {
			at = info(t, e, "r")
			return at.Crashes == 1 || at.Status == durable.StatusPaused
		})
		if at.Status != durable.StatusPending || !strings.Contains(at.Reason, `"first"`) || at.WakeAt.Before(at.StartedAt.Add(time.Second)) {
			t.Errorf("released: %v for the reason %q, due %v after its start", at.Status, at.Reason, at.WakeAt.Sub(at.StartedAt))
		}
		await(t, "the pause", func() bool {
			at = info(t, e, "r")
			return at.Status == durable.StatusPaused
		})
		if !strings.Contains(at.Reason, `"first"`) || !strings.Contains(at.Reason, "2 times in a row") || at.Crashes != 2 {
			t.Errorf("paused for the reason %q, %d crashes", at.Reason, at.Crashes)
		}
		await(t, "the line that tells of the pause, which is written after the pause", func() bool { return log.with("was paused", "name=r ") > 0 })
		tries, told := s.n.Load(), log.with("level=ERROR", "name=r ")
		if tries < 4 {
			t.Errorf("%d tries in two executions: Patience did not count", tries)
		}
		if n := e.Stats().HeldExecutions; n != 2 || told != 2 {
			t.Errorf("%d executions were held, and %d lines tell of it; want one of the release and one of the pause", n, told)
		}
		fault.turn(t, db, false)
		if _, err := e.Resume(bounded(t), "r"); err != nil {
			t.Fatal(err)
		}
		id := <-kids
		await(t, "the cancel of the child", func() bool { return info(t, e, id).Status == durable.StatusCancelled })
		must(t, "send the signal", e.Signal(bounded(t), "r", "end", 0))
		if v, err := run.Result(bounded(t)); err != nil || v != "quick" {
			t.Errorf("resumed: %q, %v", v, err)
		}
		t.Logf("tries=%d reason=%q", tries, at.Reason)
	})
}
