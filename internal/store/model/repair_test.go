package model_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/model"
)

// Repairs, forks, continuations and deletions between all other calls, one after the other, through two handles.
func TestGenerationsOneAfterTheOther(t *testing.T) {
	onBeds(t, allChecks, func(t *rapid.T, b *bed) {
		c := newCheck(t, b)
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) { c.T = t; c.alone(c.commit(1 + c.dice("items", 3))) },
			"lease":  func(t *rapid.T) { c.T = t; c.alone(c.lease()) },
			"order":  func(t *rapid.T) { c.T = t; c.alone(c.order()) },
			"end": func(t *rapid.T) {
				c.T = t
				c.alone(commitOp(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{c.end()}}))
			},
			"signal": func(t *rapid.T) {
				c.T = t
				c.alone(commitOp(&store.Batch{Signals: []*store.SignalWrite{c.signal()}}))
				c.alone(commitOp(&store.Batch{Receives: []*store.ReceiveWrite{c.receive()}}))
			},
			"repair":   func(t *rapid.T) { c.T = t; c.repair() },
			"continue": func(t *rapid.T) { c.T = t; c.alone(repairOp(c.continuation())) },
			"fork":     func(t *rapid.T) { c.T = t; c.alone(forkOp(c.fork())) },
			"delete":   func(t *rapid.T) { c.T = t; c.alone(c.deletion()) },
			"look":     func(t *rapid.T) { c.T = t; c.alone(c.generations(c.run().UUID)); c.alone(c.archived()) },
		})
	})
}

// request makes an ID of a repair from a number, so that a sequence that is tried again has the same.
func (c *check) request() uuid.UUID { return c.newID(0) }

// before is the state of a run as the caller read it: mostly the present one.
func (c *check) before(r *model.Run) store.RunState {
	state := c.now().RunState(r.UUID)
	switch c.dice("outdated", 10) {
	case 0:
		state.Epoch.Count++
	case 1:
		state.Control ^= store.PausedItself
	}
	return state
}

// ended is mostly a run that has ended, if there is one.
func (c *check) ended() *model.Run {
	m := c.now()
	ids := slices.DeleteFunc(m.RunUUIDs(), func(id uuid.UUID) bool { return !m.Runs[id].Status.IsTerminal() })
	if len(ids) == 0 || c.dice("whatever it is", 4) == 0 {
		return c.run()
	}
	return m.Runs[pick(c, "ended", ids)]
}

// repair fences a run as a repair does, and then mostly repairs it.
func (c *check) repair() {
	r := c.run()
	if c.dice("ended", 2) == 0 {
		r = c.ended()
	}
	c.alone(fenceOp(store.FenceRequest{Run: r.UUID, StateBefore: c.before(r), NextEpochNonce: c.nonce(), Now: c.at("now"), Reason: "for a repair", Actor: pick(c, "actor", []string{"", "me"})}))
	if r = c.now().Runs[r.UUID]; r == nil || !r.Status.IsTerminal() && r.Status != store.Paused || c.dice("dies", 5) == 0 {
		return
	}
	o := repairOp(c.repairOf(r))
	c.alone(o)
	if c.dice("again", 4) == 0 {
		c.alone(o)
	}
	c.alone(unreceivedOp([]uuid.UUID{r.UUID}))
}

// repairOf returns a repair of a run that has ended or is paused.
func (c *check) repairOf(r *model.Run) store.RepairRequest {
	p := store.RunRepair{
		Run: r.UUID, StateBefore: c.before(r), SupersededNumber: store.CurrentGeneration(c.now().GenerationsOf(r.UUID)), CheckpointCount: len(r.Steps), FromStep: pick(c, "from", []string{"", "step"}),
		Detail: []byte("{}"), Status: store.Pending, WakeAt: c.at("wake"), Deadline: c.at("deadline"),
	}
	if c.dice("miscounted", 10) == 0 {
		p.CheckpointCount++
	}
	p.Epoch = p.StateBefore.Epoch.Next(c.nonce())
	out := store.RepairRequest{RequestID: c.request(), Verb: "retry", Actor: "me", Reason: "why", Now: c.at("now")}
	for _, s := range c.now().History(r.UUID) {
		switch {
		case s.Kind == store.KindKeyRenewal:
		case c.dice("keep", 3) > 0:
			p.KeptSteps = append(p.KeptSteps, s.Name)
			p.Progress += s.Progress()
		case s.Kind == store.KindReceive && s.Status.IsTerminal():
			p.ReleasedReceivers = append(p.ReleasedReceivers, s.Name)
		}
	}
	p.FirstChangedSeq = int32(c.dice("first change", 4))
	slices.Sort(p.KeptSteps)
	slices.Sort(p.ReleasedReceivers)
	if !r.Status.IsTerminal() {
		p.Status, p.WakeAt, p.Control = store.Paused, time.Time{}, p.StateBefore.Control
		if p.StateBefore.Control&store.HeldForDrift != 0 && c.dice("released", 2) == 0 {
			if p.Control &^= store.HeldForDrift; p.Control&store.PausedMask == 0 {
				p.Status, p.WakeAt = store.Pending, c.at("wake")
			}
		}
		if c.dice("resumed", 3) > 0 {
			out.ResumeRequest = &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{r.UUID}, Now: out.Now, ForRepair: c.dice("for the repair", 3) > 0}
		}
	}
	for _, id := range c.now().RunUUIDs() {
		if child := c.now().Runs[id]; child.Parent.Valid && child.Parent.UUID == r.UUID && c.dice("detach", 2) == 0 {
			p.DetachedChildren = append(p.DetachedChildren, id)
			if !child.Status.IsTerminal() && !child.Detached && c.dice("cancel", 3) > 0 {
				if out.CancelRequest == nil {
					out.CancelRequest = &store.ControlRequest{Verb: store.VerbCancel, Now: out.Now, Reason: "dropped", Actor: "me", Error: []byte("cancelled")}
				}
				out.CancelRequest.Runs = append(out.CancelRequest.Runs, id)
			}
		}
	}
	slices.SortFunc(p.DetachedChildren, store.CompareUUIDsByShard)
	renewal := record.Renewal{Generation: p.SupersededNumber + 1}
	p.NewSteps, p.Progress = []store.Step{renewal.NewStep(r.UUID, p.Epoch, out.Now)}, p.Progress+1
	out.Runs = []store.RunRepair{p}
	return out
}

// continuation lets a running run continue as new, with its worker or without.
func (c *check) continuation() store.RepairRequest {
	r := c.running()
	now := c.at("now")
	p := store.RunRepair{
		Run: r.UUID, StateBefore: store.RunState{Found: true, Status: store.Running, Epoch: c.epoch(r)}, SupersededNumber: store.CurrentGeneration(c.now().GenerationsOf(r.UUID)), ContinuesAsNew: true,
		Input: pick(c, "input", payloads), FirstInputHash: pick(c, "first input", payloads), Status: store.Pending, WakeAt: now, Progress: 1,
	}
	p.Epoch = p.StateBefore.Epoch.Next(c.nonce())
	switch c.dice("owned", 4) {
	case 0:
	case 1: // as a run that is retried after a wait
		p.Status, p.WakeAt = store.Waiting, c.later(now)
	default:
		p.Status, p.WakeAt, p.Owner = store.Running, c.later(now), uuid.NullUUID{UUID: pick(c, "worker", workers), Valid: true}
	}
	renewal := record.Renewal{Generation: p.SupersededNumber + 1, All: p.SupersededNumber + 1}
	p.NewSteps = []store.Step{renewal.NewStep(r.UUID, p.Epoch, now)}
	return store.RepairRequest{RequestID: c.request(), Verb: "continue", Now: now, Runs: []store.RunRepair{p}}
}

// fork copies some checkpoints of a run to another root.
func (c *check) fork() store.ForkRequest {
	from := c.run()
	name := pick(c, "name", rootNames)
	if len(c.now().Runs) > 9 { // each is read after each call
		name = pick(c, "taken", c.now().RunUUIDs()).String()
	}
	r := c.newRun(c.newID(store.ShardOfName(name)), name)
	r.Detached, r.Status, r.Epoch, r.Owner, r.StartedAt = false, store.Pending, store.Epoch{Count: 1, Nonce: c.nonce()}, uuid.NullUUID{}, time.Time{}
	f := store.ForkRequest{Start: &store.StartWrite{Run: r, Tags: c.tags()}, Source: from.UUID, Actor: "me", Reason: "why"}
	for _, s := range c.now().History(from.UUID) {
		if s.Status.IsTerminal() && c.dice("copy", 2) == 0 {
			s.Run = r.UUID
			f.Steps = append(f.Steps, s)
		}
	}
	slices.SortFunc(f.Steps, func(l, r store.Step) int { return slices.Compare([]byte(l.Name), []byte(r.Name)) })
	return f
}

// deletion deletes the tree of a run, or a superseded generation, if all has ended.
func (c *check) deletion() *op {
	r := c.ended()
	t := store.DeleteTreeRequest{Root: r.UUID, Name: r.Name, Epoch: r.Epoch}
	if n := len(r.Generations); n > 0 && c.dice("generation", 3) == 0 {
		g := pick(c, "of", r.Generations)
		t.Root, t.Epoch = g.ArchiveID, g.Run.Epoch
	} else if c.dice("outdated", 8) == 0 {
		t.Epoch.Count++
	}
	d := store.DeleteTreesRequest{Now: base.Add(time.Hour), Actor: "me", WithEvents: t.Root == r.UUID && c.dice("told", 2) == 0}
	if c.dice("too early", 6) == 0 {
		d.Now = base.Add(10 * time.Second)
	}
	type answer struct {
		Outcome              store.WriteOutcome
		Deleted, Generations int
	}
	call := func(delete func(d *store.DeleteTreesRequest) error) (answer, error) {
		mine, tree := d, t
		mine.Trees = []store.DeleteTreeRequest{tree}
		err := delete(&mine)
		tree = mine.Trees[0]
		return answer{tree.Outcome, tree.DeletedRunCount, tree.DeletedGenerationCount}, err
	}
	o := opReturning(fmt.Sprintf("delete %s at epoch %s at %s", shorten(t.Root), t.Epoch, offset(d.Now)),
		func(ctx context.Context, s store.Store) (answer, error) {
			return call(func(d *store.DeleteTreesRequest) error { return s.DeleteTrees(ctx, d) })
		},
		func(m *model.Model, _ bool) answer {
			before := m.RunUUIDs()
			a, _ := call(func(d *store.DeleteTreesRequest) error { m.DeleteTrees(d); return nil })
			gone := slices.DeleteFunc(before, func(id uuid.UUID) bool { return m.Runs[id] != nil })
			for i := range c.told {
				model.ForgetName(&c.told[i], gone)
			}
			return a
		})
	return o
}

func fenceOp(f store.FenceRequest) *op {
	type answer struct {
		Outcome store.WriteOutcome
		State   store.RunState
	}
	settled := func(f *store.FenceRequest) answer {
		if f.Outcome == store.Written {
			return answer{Outcome: f.Outcome}
		}
		return answer{f.Outcome, f.RunState}
	}
	return opReturning(fmt.Sprintf("fence %s of %+v at %s", shorten(f.Run), f.StateBefore, offset(f.Now)),
		func(ctx context.Context, s store.Store) (answer, error) {
			mine := f
			err := s.FenceRun(ctx, &mine)
			return settled(&mine), err
		},
		func(m *model.Model, _ bool) answer {
			mine := f
			m.FenceForRepair(&mine)
			return settled(&mine)
		})
}

func repairOp(r store.RepairRequest) *op {
	call := func(do func(r *store.RepairRequest) error) (store.WriteOutcome, error) {
		mine := r
		for _, o := range []**store.ControlRequest{&mine.CancelRequest, &mine.ResumeRequest} {
			if *o != nil {
				own := **o
				*o = &own
			}
		}
		err := do(&mine)
		return mine.Outcome, err
	}
	p := &r.Runs[0]
	return opReturning(fmt.Sprintf("%s generation %d of %s, which was %+v, keeps %q, releases %q, detaches %s, cancels %t, resumes %t, becomes %s at %s", r.Verb, p.SupersededNumber, shorten(p.Run),
		p.StateBefore, p.KeptSteps, p.ReleasedReceivers, showIDs(p.DetachedChildren), r.CancelRequest != nil, r.ResumeRequest != nil, p.Status, offset(r.Now)),
		func(ctx context.Context, s store.Store) (store.WriteOutcome, error) {
			return call(func(r *store.RepairRequest) error { return s.ApplyRepair(ctx, r) })
		},
		func(m *model.Model, _ bool) store.WriteOutcome {
			outcome, _ := call(func(r *store.RepairRequest) error { m.Repair(r); return nil })
			return outcome
		})
}

func forkOp(f store.ForkRequest) *op {
	type answer struct {
		Outcome  store.WriteOutcome
		Existing *store.Run
	}
	call := func(do func(f *store.ForkRequest) error) (answer, error) {
		mine, start := f, *f.Start
		mine.Start = &start
		err := do(&mine)
		return answer{start.Outcome, start.ExistingRun}, err
	}
	return opReturning(fmt.Sprintf("fork %s as %s %q with %d checkpoints", shorten(f.Source), shorten(f.Start.Run.UUID), f.Start.Run.Name, len(f.Steps)),
		func(ctx context.Context, s store.Store) (answer, error) {
			return call(func(f *store.ForkRequest) error { return s.ForkRun(ctx, f) })
		},
		func(m *model.Model, _ bool) answer {
			a, _ := call(func(f *store.ForkRequest) error { m.Fork(f); return nil })
			return a
		})
}

// generations reads the superseded generations of a run, or some of them.
func (c *check) generations(run uuid.UUID) *op {
	q := store.GenerationsQuery{
		BeforeNumber: pick(c, "before", []int32{0, 0, 1, 2, 3, 4}), Limit: pick(c, "limit", []int{0, 0, 1, 2}),
		MaxBytes: pick(c, "most bytes", []int64{0, 0, 1, 2}), Payloads: store.AllPayloads,
	}
	return opReturning(fmt.Sprintf("%d generations before %d of %s, %d bytes", q.Limit, q.BeforeNumber, shorten(run), q.MaxBytes),
		func(ctx context.Context, s store.Store) ([]store.SupersededGeneration, error) {
			return s.SupersededGenerations(ctx, run, q)
		},
		func(m *model.Model, _ bool) []store.SupersededGeneration {
			all := m.GenerationsOf(run)
			if at := slices.IndexFunc(all, func(g store.SupersededGeneration) bool { return q.BeforeNumber > 0 && g.Number >= q.BeforeNumber }); at >= 0 {
				all = all[:at]
			}
			if q.Limit > 0 && q.Limit < len(all) {
				all = all[len(all)-q.Limit:]
			}
			if q.MaxBytes > 0 {
				total := int64(0)
				for i := len(all) - 1; i > 1; i-- {
					if total += int64(all[i].StoredBytes); total >= q.MaxBytes {
						all = all[i-1:]
						break
					}
				}
			}
			if len(all) == 0 {
				return nil
			}
			return all
		})
}

// archived reads the checkpoints of a superseded generation.
func (c *check) archived() *op {
	r := c.run()
	if len(r.Generations) == 0 {
		return c.generations(r.UUID)
	}
	g := pick(c, "generation", r.Generations)
	return opReturning(fmt.Sprintf("history of generation %d of %s", g.Number, shorten(r.UUID)),
		func(ctx context.Context, s store.Store) ([]store.Step, error) { return s.History(ctx, g.ArchiveID) },
		func(m *model.Model, _ bool) []store.Step { return m.ArchivedHistory(r.UUID, g.Number) })
}
