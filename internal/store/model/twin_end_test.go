package model_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// deleteTree deletes the tree of a run, mostly of one that has ended. An admission may not have seen the end yet.
func (c *twinCheck) deleteTree() *twinCall {
	r := c.withStatus("tree", store.Completed, store.Failed, store.Cancelled, store.Expired)
	if r == nil {
		return nil
	}
	d := store.DeleteTreesRequest{Now: c.now.Add(24 * time.Hour), WithEvents: true, Actor: "me"}
	t := store.DeleteTreeRequest{Root: r.uuid("id"), Name: r["name"], Epoch: r.epoch()}
	return &twinCall{text: "delete the tree of " + r.text(), do: func(ctx context.Context, s store.Store) (any, error) {
		mine := d
		mine.Trees = []store.DeleteTreeRequest{t}
		err := s.DeleteTrees(ctx, &mine)
		if err == nil && mine.Trees[0].Outcome == store.Locked {
			err = errLocked
		}
		return [2]int{int(mine.Trees[0].Outcome), mine.Trees[0].DeletedRunCount}, err
	}}
}

// repairRun makes the next generation of a root that has ended and has no children, without its checkpoints. An admission may not have
// seen the end yet. A cancelled run is not repaired.
func (c *twinCheck) repairRun() *twinCall {
	parents := make(map[string]bool)
	for _, r := range c.rows["run"] {
		parents[r["parent_id"]] = true
	}
	runs := c.runs(func(r twinRow) bool {
		return r.status().IsTerminal() && r.status() != store.Cancelled && r["parent_id"] == "" && !parents[r["id"]]
	})
	if len(runs) == 0 {
		return nil
	}
	r := pick(c.check, "repaired", runs)
	state := store.RunState{Found: true, Status: r.status(), Epoch: r.epoch(), Control: r.control()}
	steps := 0
	for _, s := range c.rows["step"] {
		steps += count01(s["run_id"] == r["id"])
	}
	c.generations[r["id"]]++
	p := store.RepairRequest{RequestID: c.newID(0), Verb: "retry", Actor: "me", Now: c.now, Runs: []store.RunRepair{{
		Run: r.uuid("id"), StateBefore: state, SupersededNumber: c.generations[r["id"]], CheckpointCount: steps, FromStep: "x", Detail: []byte(`{}`), Epoch: r.epoch().Next(c.nonce()), Status: store.Pending, WakeAt: c.now,
	}}}
	return &twinCall{
		text: "repair " + r.text(),
		do: func(ctx context.Context, s store.Store) (any, error) {
			mine := p
			err := s.ApplyRepair(ctx, &mine)
			return mine.Outcome, err
		},
		check: func(got any, _, after twinDump) error {
			if is := after["run"][r["id"]+" "]; got != store.Written || is.status() != store.Pending {
				return fmt.Errorf("outcome %d, and the run is %s", got, is)
			}
			return nil
		},
	}
}

// checkDeadline checks what a new deadline has changed, by the documentation of store.DeadlineChangeRequest.
func checkDeadline(result any, before, after twinDump) error {
	d := result.(store.DeadlineChangeRequest)
	key := strings.ReplaceAll(d.Run.String(), "-", "") + " "
	was, is := before["run"][key], after["run"][key]
	now, deadline := d.Now.UnixMicro(), was.int("deadline_at")
	paused := was.status() == store.Paused && was["paused_at"] != "" && deadline > was.int("paused_at")
	fenced := was.status().IsTerminal() || was.control()&store.CancelRequested != 0 || deadline != 0 && deadline <= now && !paused
	if (d.Outcome == store.Fenced) != fenced {
		return fmt.Errorf("the outcome is %d, and the run was %s", d.Outcome, was)
	}
	if fenced {
		if text := before.diff(after); text != "" {
			return fmt.Errorf("a fenced call has changed:%s", text)
		}
		return nil
	}
	at := int64(0)
	if !d.NewDeadline.IsZero() {
		at = d.NewDeadline.UnixMicro()
	}
	woken := was.status() == store.Waiting || was.status() == store.Pending && (was.int("crashes") > 0 || was.lane().Admission() == store.AdmissionInLine)
	wake := was.int("wake_at")
	if woken && at != 0 && (wake == 0 || at < wake) {
		wake = at
	}
	events := count01(d.ActorAndReason.HasActorOrReason() && at != deadline)
	if is.int("deadline_at") != at || is.int("timeout") != d.Timeout.Microseconds() || is["timeout"] == "" || is.int("wake_at") != wake ||
		is.is("woken") != (was.is("woken") || was.status() == store.Running) || len(after["event"])-len(before["event"]) != events {
		return fmt.Errorf("the run was %s, and is %s", was, is)
	}
	for _, column := range []string{"deadline_at", "timeout", "wake_at", "woken"} {
		is = is.with(column, was[column])
	}
	if text := (twinDump{"run": {key: was}}).diff(twinDump{"run": {key: is}}); text != "" {
		return fmt.Errorf("it has changed more of the run:%s", text)
	}
	return nil
}

// with returns the row with another value in a column.
func (r twinRow) with(column, value string) twinRow {
	other := make(twinRow)
	for c, v := range r {
		other[c] = v
	}
	if other[column] = value; value == "" {
		delete(other, column)
	}
	return other
}
