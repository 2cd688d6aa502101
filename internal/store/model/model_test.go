package model_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/store"
)

// One call after the other, through two handles: every result, and all that is there
// after it, is as the model has it.
func TestOneAfterTheOther(t *testing.T) {
	onBeds(t, allChecks, func(t *rapid.T, b *bed) {
		c := newCheck(t, b)
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) { c.T = t; c.alone(c.commit(1 + c.dice("items", 3))) },
			"replay": func(t *rapid.T) { c.T = t; c.alone(c.replay()) },
			"lease":  func(t *rapid.T) { c.T = t; c.alone(c.lease()) },
			"order":  func(t *rapid.T) { c.T = t; c.alone(c.order()) },
			"look":   func(t *rapid.T) { c.T = t; c.alone(c.look()) },
		})
	})
}

// Two calls at once: what comes of them is what comes of one after the other.
func TestTwoConcurrentCalls(t *testing.T) {
	onBeds(t, allChecks, func(t *rapid.T, b *bed) {
		c := newCheck(t, b)
		t.Repeat(map[string]func(*rapid.T){
			"commit":   func(t *rapid.T) { c.T = t; c.alone(c.commit(1 + c.dice("items", 3))) },
			"lease":    func(t *rapid.T) { c.T = t; c.alone(c.lease()) },
			"together": func(t *rapid.T) { c.T = t; c.together(c.any("one"), c.any("other")) },
		})
	})
}

// any is a call that may meet another.
func (c *check) any(which string) *op {
	switch c.dice(which, 8) {
	case 0:
		return c.lease()
	case 1, 2:
		return c.order()
	case 3:
		return c.replay()
	default:
		return c.commit(1)
	}
}

// commit is a batch of up to n entries, as the journal gathers them.
func (c *check) commit(n int) *op {
	b := new(store.Batch)
	busy := make(map[string]bool)
	free := func(what string, of uuid.UUID, name string) bool {
		key := fmt.Sprint(what, of, name)
		was := busy[key]
		busy[key] = true
		return !was
	}
	many := len(c.now().Runs) >= 9 // each is read after each call
	for range n {
		entry := c.dice("entry", 14)
		if entry < 4 && many {
			entry += 4
		}
		switch entry {
		case 0, 1:
			b.Starts = append(b.Starts, c.root())
		case 2, 3:
			start, mark := c.child()
			if free("step", mark.Step.Run, mark.Step.Name) {
				b.Starts, b.Steps = append(b.Starts, start), append(b.Steps, mark)
			}
		case 4, 5, 6:
			if w := c.step(); free("step", w.Step.Run, w.Step.Name) {
				b.Steps = append(b.Steps, w)
			}
		case 7, 8:
			if w := c.receive(); free("step", w.Step.Run, w.Step.Name) && free("receive", w.Step.Run, w.Signal) {
				b.Receives = append(b.Receives, w)
			}
		case 9, 10:
			w := c.signal()
			if w.ActorAndReason.HasActorOrReason() && !free("act", w.Run, "") {
				w.ActorAndReason = store.ActorAndReason{}
			}
			b.Signals = append(b.Signals, w)
		default:
			if w := c.end(); free("end", w.UUID, "") {
				b.OwnershipEnds = append(b.OwnershipEnds, w)
			}
		}
	}
	o := commitOp(b)
	c.past = append(c.past, o)
	return o
}

// replay commits once more what was committed lately.
func (c *check) replay() *op {
	if len(c.past) == 0 {
		return c.commit(1)
	}
	o := *pick(c, "replay", c.past[max(0, len(c.past)-6):])
	o.text = "again: " + o.text
	return &o
}

// leases are some of a worker's, and perhaps one that is not.
func (c *check) leases(worker uuid.UUID) (leases []store.Lease) {
	m := c.now()
	for _, id := range m.RunUUIDs() {
		r := m.Runs[id]
		if r.Status == store.Running && r.Owner.UUID == worker && c.dice("held", 4) > 0 || c.dice("not held", 10) == 0 {
			leases = append(leases, store.Lease{Run: id, Epoch: c.epoch(r)})
		}
	}
	return leases
}

func (c *check) lease() *op {
	q := store.ClaimQuery{Worker: pick(c, "worker", workers), EpochNonce: c.nonce(), Now: c.at("now"), Limit: c.dice("limit", 4), MaxSuspects: c.dice("suspects", 2), MaxCrashes: c.dice("crashes", 5)}
	q.Filter = pick(c, "served", served)
	q.LeaseUntil = c.later(q.Now)
	if c.dice("outage", 3) == 0 {
		q.OutageFrom = c.at("outage")
		q.OutageUntil = c.later(q.OutageFrom)
	}
	switch c.dice("lease", 9) {
	case 0:
		h := store.Heartbeat{Worker: store.Worker{ID: q.Worker, Name: "w", StartedAt: base}, LeaseUntil: c.later(q.Now), Leases: c.leases(q.Worker)}
		return renewOp(h)
	case 1:
		q.LeaseUntil = base.Add(time.Hour)
		return expireOp(workers[:1+c.dice("workers", 2)], q)
	case 2, 3:
		return newsOp(q.Worker, c.leases(q.Worker))
	case 4:
		if r := c.running(); r.Owner.Valid {
			q.Worker, q.EpochNonce, q.LeaseUntil = r.Owner.UUID, r.Epoch.Nonce, r.WakeAt
		}
		return heldByOp(q)
	default:
		q.Limit = max(q.Limit, 1)
		if c.dice("together", 3) == 0 {
			for range q.Limit {
				q.Owners = append(q.Owners, pick(c, "owner", workers))
			}
		}
		return claimOp(q)
	}
}

func (c *check) order() *op {
	o := store.ControlRequest{
		Verb: pick(c, "verb", []store.ControlVerb{store.VerbPause, store.VerbPause, store.VerbResume, store.VerbResume, store.VerbCancel, store.VerbCancel, store.VerbTerminate}), Scope: store.CancelScope(c.dice("scope", 5)),
		Now: c.at("now"), Reason: pick(c, "reason", []string{"", "r1", "r2"}), Actor: pick(c, "actor", []string{"", "me"}), Error: []byte("cancelled"),
		ShiftTimers: c.dice("freeze", 2) == 0,
	}
	if c.dice("deadline", 4) == 0 {
		d := store.DeadlineChangeRequest{Run: c.run().UUID, Now: o.Now, ActorAndReason: c.act()}
		if c.dice("none", 4) > 0 {
			d.NewDeadline = c.later(d.Now)
		}
		return deadlineOp(d)
	}
	for range 1 + c.dice("more", 2) {
		if id := c.run().UUID; !slices.Contains(o.Runs, id) || c.dice("twice", 2) == 0 {
			o.Runs = append(o.Runs, id)
		}
	}
	return orderOp(o)
}

func (c *check) look() *op {
	r := c.run()
	switch c.dice("look", 8) {
	case 0:
		refs := []store.RunRef{{UUIDOrName: pick(c, "name", append(rootNames, "kid"))}, {UUIDOrName: r.UUID.String()}, {UUIDOrName: r.Name}}
		switch c.dice("how", 3) {
		case 0:
			return findOp(refs, pick(c, "payloads", []store.PayloadSelection{store.NoPayloads, store.WithInput, store.WithOutputAndError}))
		case 1:
			return statusesOp([]uuid.UUID{r.UUID, c.newID(0), r.UUID})
		}
		return getOp(refs)
	case 1, 2:
		f := store.Filter{
			Workflow: pick(c, "workflow", []string{"", "", "f"}), Queue: pick(c, "queue", []string{"", "", "q"}),
			Priorities: pick(c, "priorities", [][]int16{nil, nil, {0}, {-2, 1}}), NamePrefix: pick(c, "prefix", []string{"", "", "a", "ab", "0", "kid", "é", "\xc3"}[:7]), OnlyRoots: c.dice("roots", 3) == 0,
			Tag: pick(c, "tag", []store.Tag{{}, {}, {Key: "t.a"}, {Key: "t.a", Value: "1"}, {Key: "t.b", Value: "2"}}),
		}
		if c.dice("statuses", 3) == 0 {
			f.Statuses = []store.Status{store.Running, pick(c, "status", []store.Status{store.Pending, store.Paused, store.Cancelled})}
		}
		if c.dice("after", 4) == 0 {
			f.CreatedAfter = c.at("created after")
		}
		if c.dice("before", 4) == 0 {
			f.CreatedBefore = c.at("created before")
		}
		if c.dice("failure", 4) == 0 {
			f.Failure = store.FailureKey{Workflow: r.Workflow, Step: pick(c, "failed step", failedSteps), Type: "x"}
		}
		before := uuid.UUID{}
		switch c.dice("of runs", 8) {
		case 0:
			f.UUIDs = []uuid.UUID{r.UUID, c.run().UUID, c.newID(0)}
		case 1:
			f.Parents = []uuid.UUID{r.UUID, c.run().UUID}
		}
		if c.dice("cursor", 2) == 0 {
			before = r.UUID
		} else if len(f.UUIDs)+len(f.Parents) == 0 && c.dice("groups", 2) == 0 {
			return failuresOp(f, 1+c.dice("examined", 3), c.dice("limit", 3))
		}
		return listOp(f, before, c.dice("limit", 5))
	case 3:
		return treeOp(r.UUID, c.dice("generations", 2) == 0)
	case 4:
		return countsOp(r.UUID, c.at("now"))
	case 5:
		return eventsOp(c.told, c.dice("from", len(c.told)+1), c.dice("limit", 4))
	case 6:
		return unreceivedOp([]uuid.UUID{r.UUID, c.run().UUID, {6: 0x70}})
	default:
		epoch := pick(c, "as", []store.Epoch{{}, {}, r.Epoch, r.Epoch.Next(7)})
		return tagOp(r.UUID, []store.Tag{{Key: "t.a", Value: pick(c, "value", []string{"", "1", "2"})}, {Key: "t.b", Value: pick(c, "value", []string{"", "2"})}}[:1+c.dice("tags", 2)], epoch, c.act())
	}
}
