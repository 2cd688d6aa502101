package model_test

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/model"
)

// Small domains, so that calls meet.
var (
	rootNames = []string{"a", "ab", "é"}
	workers   = []uuid.UUID{{15: 1, 6: 0x40, 8: 0x80}, {15: 2, 6: 0x40, 8: 0x80}}
	pairs     = []store.QueueWorkflow{{Queue: "q", Workflow: "f"}, {Queue: "q", Workflow: "g"}, {Queue: "p", Workflow: "f"}}
	served    = []*store.ClaimFilter{
		store.NewClaimFilter([]string{"f", "g"}, nil), store.NewClaimFilter([]string{"f", "g"}, nil), store.NewClaimFilter([]string{"f"}, nil),
		store.NewClaimFilter([]string{"f", "g"}, []string{"q"}), store.NewClaimFilter([]string{"g"}, []string{"p", "q"}), nil,
	}
	kinds = map[string]store.StepKind{
		"step": store.KindStep, "tx": store.KindTx, "nap": store.KindSleep, "one": store.KindChoice, "map": store.KindMap, "undo": store.KindCompensation,
		"map\x1f1": store.KindStep, "map\x1f2": store.KindStep, "map\x1f2\x1fin": store.KindStep, "kid": store.KindChild, "told": store.KindSendSignal, "when": store.KindNow,
	}
	stepNames = []string{"step", "step", "step", "tx", "nap", "one", "map", "map\x1f1", "map\x1f2", "map\x1f2\x1fin", "undo", "kid", "told", "when"}
	payloads  = [][]byte{nil, {}, []byte("1"), []byte("2")}
)

func pick[T any](c *check, what string, from []T) T { return rapid.SampledFrom(from).Draw(c.T, what) }

func (c *check) dice(what string, sides int) int { return rapid.IntRange(0, sides-1).Draw(c.T, what) }

// at is one of ten seconds.
func (c *check) at(what string) time.Time {
	return base.Add(time.Duration(c.dice(what, 10)) * time.Second)
}

// later is after a time, if only a little.
func (c *check) later(t time.Time) time.Time {
	return t.Add(time.Duration(1+c.dice("for", 5)) * time.Second)
}

// newID is made of a number, so that a sequence that is tried again has the same IDs. Its time is that of the runs' creation: a list by time reads
// only the UUIDs of that time.
func (c *check) newID(shard int16) (id uuid.UUID) {
	c.ids++
	binary.BigEndian.PutUint64(id[:8], uint64(base.UnixMilli())<<16|0x7000)
	id[8] = 0x80
	binary.BigEndian.PutUint32(id[9:13], c.ids)
	id[15] = byte(shard)
	return id
}

func number(id uuid.UUID) uint32 { return binary.BigEndian.Uint32(id[9:13]) }

// run is one that is there, or seldom one that is not.
func (c *check) run() *model.Run {
	ids := c.now().RunUUIDs()
	if len(ids) == 0 || c.dice("stranger", 25) == 0 {
		return &model.Run{Run: store.Run{UUID: uuid.UUID{6: 0x70, 8: 0x80, 12: 9, 15: 3}, Epoch: store.Epoch{Count: 1}}}
	}
	return c.now().Runs[pick(c, "run", ids)]
}

// running is one that is running, if any is.
func (c *check) running() *model.Run {
	m := c.now()
	ids := slices.DeleteFunc(m.RunUUIDs(), func(id uuid.UUID) bool { return m.Runs[id].Status != store.Running })
	if len(ids) == 0 || c.dice("whatever it is", 12) == 0 {
		return c.run()
	}
	return m.Runs[pick(c, "running", ids)]
}

// epoch is mostly the run's own.
func (c *check) epoch(r *model.Run) store.Epoch {
	epoch := r.Epoch
	switch c.dice("epoch", 12) {
	case 0:
		epoch.Count--
	case 1:
		epoch.Count++
	case 2:
		epoch.Nonce = c.nonce()
	}
	epoch.Count = max(epoch.Count, 1)
	return epoch
}

func (c *check) nonce() uint32 { return pick(c, "nonce", []uint32{1, 2, 1<<32 - 1}) }

func (c *check) tags() (tags []store.Tag) {
	for _, key := range []string{"t.a", "t.b"} {
		if c.dice("tagged", 3) == 0 {
			tags = append(tags, store.Tag{Key: key, Value: pick(c, "value", []string{"1", "2"})})
		}
	}
	return tags
}

// newRun is one that its creator owns, or one that may be claimed.
func (c *check) newRun(id uuid.UUID, name string) store.Run {
	p := pick(c, "pair", pairs)
	r := store.Run{
		UUID: id, Name: name, Queue: p.Queue, Workflow: p.Workflow, Priority: pick(c, "priority", []int16{0, 0, 1, -2}), Version: "v1", Trace: pick(c, "trace", []string{"", "t1"}),
		Input: pick(c, "input", payloads), CreatedAt: c.at("created"), Status: store.Pending, Detached: c.dice("detached", 4) == 0,
	}
	r.WakeAt = r.CreatedAt
	if c.dice("deadline", 3) == 0 {
		r.Deadline = c.at("deadline at")
	}
	if c.dice("owned", 3) > 0 {
		r.Status, r.Epoch, r.Owner = store.Running, store.Epoch{Count: 1, Nonce: c.nonce()}, uuid.NullUUID{UUID: pick(c, "worker", workers), Valid: true}
		r.StartedAt, r.WakeAt = r.CreatedAt, c.later(r.CreatedAt)
	}
	return r
}

func (c *check) root() *store.StartWrite {
	name := pick(c, "name", rootNames)
	id := c.newID(store.ShardOfName(name))
	switch c.dice("naming", 8) {
	case 0: // without a caller's ID: the name is its own
		id = c.newID(int16(c.dice("shard", 2)))
		name = id.String()
	case 1: // the name is another run's ID
		other := c.run().UUID
		name, id = other.String(), c.newID(store.ShardOf(other))
	}
	r := c.newRun(id, name)
	r.Detached = false
	return &store.StartWrite{Run: r, Tags: c.tags()}
}

// child starts one, with its mark in the parent.
func (c *check) child() (*store.StartWrite, *store.StepWrite) {
	parent := c.running()
	name := pick(c, "child", []string{"kid", "kid\x1f2"})
	r := c.newRun(c.newID(store.ShardOf(parent.UUID)), name)
	r.Parent = uuid.NullUUID{UUID: parent.UUID, Valid: true}
	epoch := c.epoch(parent)
	return &store.StartWrite{Run: r, ParentEpoch: epoch, Tags: c.tags()}, &store.StepWrite{Step: store.Step{
		Run: parent.UUID, Name: name, Kind: store.KindChild, Status: store.StepStarted, Attempt: 1, Epoch: epoch,
		Output: []byte(`"` + r.UUID.String() + `"`), StartedAt: r.CreatedAt,
	}}
}

func (c *check) step() *store.StepWrite {
	r := c.running()
	name := pick(c, "step", stepNames)
	s := store.Step{
		Run: r.UUID, Name: name, Kind: kinds[name], Attempt: int32(1 + c.dice("attempt", 3)), Epoch: c.epoch(r), StartedAt: c.at("began"),
		Status: pick(c, "status", []store.StepStatus{store.StepStarted, store.StepBackoff, store.StepCompleted, store.StepCompleted, store.StepFailed}),
	}
	if s.Kind == store.KindChild {
		s.Attempt, s.Status = 1, pick(c, "end of the child", []store.StepStatus{store.StepCompleted, store.StepFailed})
	}
	had, exists := r.Steps[name]
	if exists {
		s.StartedAt = had.StartedAt // of the first attempt
	}
	switch s.Status {
	case store.StepBackoff:
		s.Error, s.NextAt = []byte("again"), c.at("next")
	case store.StepCompleted:
		s.Output = pick(c, "output", payloads)
		if s.Kind == store.KindSleep {
			s.NextAt = c.at("until")
		}
	case store.StepFailed:
		s.Error = pick(c, "error", payloads)
	}
	if s.Status != store.StepStarted {
		s.EndedAt = c.later(s.StartedAt)
	}
	s.Seq = int32(c.dice("seq", 4))
	s.Failures = pick(c, "failures", payloads)
	knows := exists && !had.Status.IsTerminal()
	return &store.StepWrite{Step: s, RowExists: knows != (c.dice("mistaken", 8) == 0)}
}

func (c *check) receive() *store.ReceiveWrite {
	r := c.running()
	name := pick(c, "receive", []string{"hear", "wait"})
	s := store.Step{
		Run: r.UUID, Name: name, Kind: store.KindReceive, Status: store.StepStarted, Attempt: 1, Epoch: c.epoch(r),
		StartedAt: c.at("began"), NextAt: c.at("until"),
	}
	s.Seq = int32(c.dice("seq", 4))
	had, exists := r.Steps[name]
	if exists {
		s.Attempt, s.StartedAt, s.NextAt = had.Attempt, had.StartedAt, had.NextAt
	}
	s.EndedAt = c.later(s.StartedAt)
	switch c.dice("over", 6) {
	case 0:
		s.Status, s.Error = store.StepFailed, []byte("late")
	case 1:
		s.Status, s.Output = store.StepCompleted, pick(c, "output", payloads)
	case 2:
		s.Attempt, s.NextAt = s.Attempt+1, time.Time{}
	}
	return &store.ReceiveWrite{Step: s, Signal: pick(c, "signal", []string{"go", "stop"})}
}

// act draws who makes a change, mostly nobody.
func (c *check) act() store.ActorAndReason {
	return store.ActorAndReason{Actor: pick(c, "actor", []string{"", "", "me"}), Reason: pick(c, "why", []string{"", "", "because"}), At: c.at("act")}
}

func (c *check) signal() *store.SignalWrite {
	r := c.run()
	return &store.SignalWrite{
		Run: r.UUID, ID: c.newID(store.ShardOf(r.UUID)), Name: pick(c, "signal", []string{"go", "stop"}), Key: pick(c, "key", []string{"", "", "k1", "k2"}),
		Payload: pick(c, "payload", payloads), CreatedAt: c.at("sent"), ArrivedAt: c.at("arrived"), ActorAndReason: c.act(),
	}
}

var failedSteps = []string{"", "charge"}

func (c *check) end() *store.OwnershipEnd {
	r := c.running()
	w := &store.OwnershipEnd{
		UUID: r.UUID, ParentToWake: r.Parent, Now: c.at("now"), Epoch: c.epoch(r), Trace: pick(c, "trace", []string{"", "t2"}),
		Status: pick(c, "status", []store.Status{
			store.Pending, store.Waiting, store.Waiting, store.Waiting, store.Paused, store.Completed, store.Completed, store.Failed, store.Cancelled, store.Expired,
		}),
	}
	switch w.Status {
	case store.Pending:
		if w.HoldsRun = c.dice("held", 2) == 0; w.HoldsRun {
			w.HoldReason, w.MaxCrashes = "rejected", c.dice("crashes", 5)
			if c.dice("drift", 3) == 0 {
				w.Divergence = &store.Divergence{Version: "v2", At: w.Now, Call: "charge", Detail: "renamed"}
			}
		} else {
			w.WakeAt = c.at("wake")
		}
	case store.Waiting:
		if c.dice("timer", 2) == 0 {
			w.WakeAt = c.at("wake")
		}
		w.CancelBegun = c.dice("cancel begun", 2) == 0
	case store.Paused:
		w.HoldReason = pick(c, "reason", []string{"", "why"})
	case store.Completed:
		w.Output, w.EndedAt = pick(c, "output", payloads), w.Now
	default:
		w.Error, w.EndedAt = pick(c, "error", payloads), w.Now
		w.FailedStep, w.FailedType = pick(c, "failed step", failedSteps), "x"
	}
	return w
}
