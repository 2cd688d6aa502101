package model_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// releaseFold releases a run that waits for its start key. The process that does may not know the row of the queue.
func (c *twinCheck) releaseFold() *twinCall {
	runs := c.runs(func(r twinRow) bool {
		return r.lane() == store.UnreleasedLane && !r.status().IsTerminal() && r.control()&store.CancelRequested == 0
	})
	if len(runs) == 0 {
		return c.start()
	}
	r := pick(c.check, "unreleased", runs)
	queue := r["queue"]
	var by time.Time
	if r.control()&store.HasStartBy != 0 {
		by = c.now.Add(time.Duration(1+c.dice("start by", 6)) * time.Second)
	}
	return c.releaseCall(r, queue, c.needsPlace(queue), by, c.soon("deadline", 3))
}

func (c *twinCheck) releaseCall(r twinRow, queue string, needsPlace bool, startBy, deadline time.Time) *twinCall {
	admission := store.AdmissionNotNeeded
	if needsPlace {
		admission = store.AdmissionPending
	}
	p := int16(r.int("priority"))
	release := &store.DelayedRunRelease{
		RunUUID: r.uuid("id"), Queue: queue, Priority: p, Lane: store.ClaimLaneOf(queue, r["workflow"], r["version"], p).WithAdmission(admission), WakeAt: c.now, StartBy: startBy, Deadline: deadline,
	}
	if !deadline.IsZero() {
		release.Timeout = deadline.Sub(c.now)
	}
	return &twinCall{text: fmt.Sprintf("release %s in %s, needs place %v, start by %s, deadline %s", r.text(), queue, needsPlace, offset(startBy), offset(deadline)), do: func(ctx context.Context, s store.Store) (any, error) {
		plans := 0
		err := s.UpdateStartKeyRow(ctx, &store.StartKeyChangeRequest{Key: twinFoldKey(r.uuid("id")), Plan: func(snap store.StartKeySnapshot) *store.StartKeyWrite {
			if plans++; plans > 1 || snap.Row == nil {
				return nil
			}
			return &store.StartKeyWrite{Row: *snap.Row, Release: release}
		}})
		return plans, err
	}}
}

// changeQueue changes a queue.
func (c *twinCheck) changeQueue() *twinCall {
	name := pick(c.check, "queue", twinQueues)
	actor := pick(c.check, "actor", []string{"", "me"})
	request := store.DeleteOrResetRequest{Name: name, Now: c.now, Actor: actor}
	switch c.dice("change", 8) {
	case 0, 1:
		return &twinCall{text: "delete queue " + name, do: func(ctx context.Context, s store.Store) (any, error) {
			return s.DeleteQueue(ctx, request)
		}}
	case 2:
		return &twinCall{text: "reset queue " + name, do: func(ctx context.Context, s store.Store) (any, error) {
			return s.ResetQueueSettings(ctx, request)
		}}
	case 3, 4:
		p := store.QueuePauseRequest{Name: name, Now: c.now, Resume: c.dice("resume", 2) == 0, Actor: actor}
		return &twinCall{text: fmt.Sprintf("pause queue %s, resume %v", name, p.Resume), do: func(ctx context.Context, s store.Store) (any, error) {
			return s.PauseQueue(ctx, p)
		}}
	}
	return c.setQueue(name)
}

// setQueue sets the settings of a queue, or declares them.
func (c *twinCheck) setQueue(name string) *twinCall {
	some := func(what string, n int) int { return max(0, c.dice(what, 2*n)-n+1) }
	change := store.QueueChangeRequest{Name: name, Now: c.now, Actor: pick(c.check, "actor", []string{"", "me"}), Settings: store.QueueSettings{
		MaxExecuting: some("executing", 3), MaxInProgress: some("open", 3), MaxExecutingPerKey: some("of a key", 2), MaxInProgressPerKey: some("open of a key", 2),
	}}
	if n := some("rate", 2); n > 0 {
		change.Settings.Rate = store.Rate{Count: n, Period: time.Second, Burst: n}
	}
	if n := some("rate of a key", 2); n > 0 {
		change.Settings.RatePerKey = store.Rate{Count: n, Period: time.Second, Burst: n}
	}
	if c.dice("declared", 4) == 0 {
		change.Declare, change.Actor, change.Version = true, "", pick(c.check, "version", []string{"v1", "v2"})
	}
	return &twinCall{text: fmt.Sprintf("set queue %s (declares %v %s): %s", name, change.Declare, change.Version, strings.TrimSpace(change.Settings.EncodeJSON())), do: func(ctx context.Context, s store.Store) (any, error) {
		return nil, s.ChangeQueue(ctx, change)
	}}
}
