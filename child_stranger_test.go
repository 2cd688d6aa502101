package durable_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// If somebody inserted a run under the name of a child that its parent is about to start, the parent is held, with a reason that
// names that run. Nothing fails, and the output of that run is not used as the child's.
func TestAStrangersChildHoldsItsParent(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		kid := durable.Define("kid", func(*durable.Ctx, int) (string, error) { return "denied", nil })
		g := newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			if err := c.Do("hold", g.pass); err != nil {
				return "", err
			}
			return c.Child("approve", kid, 1)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, kid}, MaxCrashes: 2, Patience: 10 * time.Millisecond})
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		parent := uuid.MustParse(run.RunID())
		row := read(s.GetRuns(within(t), []store.RunRef{{UUIDOrName: "x"}}))(t)[0]
		now := dbNow(t, s)
		stranger := &store.StartWrite{ParentEpoch: row.Epoch, Run: store.Run{
			UUID: store.ChildUUID(parent, "another", now, 1), Parent: uuid.NullUUID{UUID: parent, Valid: true}, Name: "approve", Workflow: "evil",
			Queue: "evil", Status: store.Pending, CreatedAt: now, WakeAt: now.Add(time.Hour),
		}}
		if err := s.Commit(within(t), &store.Batch{Starts: []*store.StartWrite{stranger}}); err != nil || stranger.Outcome != store.Written {
			t.Fatal(err, stranger.Outcome)
		}
		close(g.open)
		var info *durable.RunInfo
		waitFor(t, func() bool {
			info = read(e.Get(within(t), "x"))(t)
			return info.Err != nil || info.Output != nil || info.Crashes > 0 && strings.Contains(info.Reason, stranger.Run.UUID.String())
		})
		if info.Err != nil || info.Output != nil {
			t.Fatalf("the run is %s: %v", info.Status, info.Err)
		}
		waitFor(t, func() bool { // the parent is due again, does not find its child, and is paused in the end
			info = read(e.Get(within(t), "x"))(t)
			return info.Err != nil || info.Output != nil || info.Status == durable.StatusPaused
		})
		if info.Status != durable.StatusPaused || !strings.Contains(info.Reason, "approve") {
			t.Errorf("the run is %s (%s): %v", info.Status, info.Reason, info.Err)
		}
		must(t)(e.Terminate(within(t), "x"))
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrTerminated) {
			t.Error(err)
		}
	})
}
