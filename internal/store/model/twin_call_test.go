package model_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

const mostTwinRuns = 9 // each is read after each call

// soon returns a time within the next seconds, or zero.
func (c *twinCheck) soon(what string, sides int) time.Time {
	if c.dice(what, sides) > 0 {
		return time.Time{}
	}
	return c.now.Add(time.Duration(1+c.dice("in", 6)) * time.Second)
}

// newPlace completes the start of a run in its queue, as a process does that may not know the queue's row.
func (c *twinCheck) newPlace(w *store.StartWrite) {
	r := &w.Run
	p := &store.QueuePlace{Run: r.UUID, Queue: r.Queue, Weight: int32(1 + c.dice("weight", 2)), Priority: r.Priority, State: store.PlaceNotArrived, Root: !r.Parent.Valid}
	if p.StartBy = c.soon("start by", 3); !p.StartBy.IsZero() {
		r.Control, w.Place = store.HasStartBy, p
	}
	if c.needsPlace(r.Queue) {
		p.Key, r.Admission, w.Place = pick(c.check, "key", []string{"", "a", "a", "b"}), store.AdmissionPending, p
	}
}

func (c *twinCheck) newTwinRun() store.Run {
	c.started++
	id := c.newID(int16(c.dice("shard", 2)))
	return store.Run{
		UUID: id, Name: id.String(), Workflow: pick(c.check, "workflow", []string{"f", "g"}), Version: "v1", Queue: pick(c.check, "queue", twinQueues),
		Priority: int16(c.dice("priority", 3) - 1), Status: store.Pending, CreatedAt: c.now, WakeAt: c.now.Add(time.Duration(c.dice("delay", 3)) * time.Second), Deadline: c.soon("deadline", 5),
	}
}

func describeStart(w *store.StartWrite) string {
	return fmt.Sprintf("start %s in %s, priority %d, admission %d, due %s, deadline %s, unreleased %v, place %+v", shorten(w.Run.UUID), w.Run.Queue, w.Run.Priority, w.Run.Admission,
		offset(w.Run.WakeAt), offset(w.Run.Deadline), w.Run.Unreleased, w.Place)
}

// start starts a root. Some wait for their start key.
func (c *twinCheck) start() *twinCall {
	if c.started >= mostTwinRuns {
		return c.move()
	}
	w := &store.StartWrite{Run: c.newTwinRun()}
	c.newPlace(w)
	if c.dice("unreleased", 3) > 0 {
		return &twinCall{text: describeStart(w), do: commitStart(w)}
	}
	w.Run.WakeAt, w.Run.Deadline, w.Run.Unreleased = time.Time{}, time.Time{}, true
	if w.Place != nil {
		w.Place.StartBy = time.Time{}
	}
	return &twinCall{text: describeStart(w), do: func(ctx context.Context, s store.Store) (any, error) {
		mine := *w
		return mine.Outcome, s.UpdateStartKeyRow(ctx, &store.StartKeyChangeRequest{Key: twinFoldKey(w.Run.UUID), Plan: func(store.StartKeySnapshot) *store.StartKeyWrite {
			return &store.StartKeyWrite{Row: store.StartKeyRow{StartKey: twinFoldKey(w.Run.UUID), CheckAt: base, State: []byte(`{}`)}, RunToCreate: &mine}
		}})
	}}
}

func twinFoldKey(run uuid.UUID) store.StartKey {
	return store.StartKey{Workflow: "f", Key: run.String(), Kind: store.StartKeySingleton}
}

func commitStart(w *store.StartWrite) func(ctx context.Context, s store.Store) (any, error) {
	return func(ctx context.Context, s store.Store) (any, error) {
		mine := *w
		err := commitNow(ctx, s, &store.Batch{Starts: []*store.StartWrite{&mine}}, func() store.WriteOutcome { return mine.Outcome })
		return mine.Outcome, err
	}
}

func (c *twinCheck) startChild() *twinCall {
	parent := c.withStatus("parent", store.Running)
	if parent == nil || c.started >= mostTwinRuns {
		return nil
	}
	r := c.newTwinRun()
	r.UUID[15], r.Parent = byte(store.ShardOf(parent.uuid("id"))), uuid.NullUUID{UUID: parent.uuid("id"), Valid: true}
	r.Detached = c.dice("detached", 4) == 0
	w := &store.StartWrite{Run: r, ParentEpoch: parent.epoch()}
	c.newPlace(w)
	return &twinCall{text: "child of " + shorten(parent.uuid("id")) + ": " + describeStart(w), do: commitStart(w)}
}

// move gives a run another queue, another priority, or both.
func (c *twinCheck) move() *twinCall {
	r := c.withStatus("run", store.Pending, store.Paused)
	if r == nil {
		return nil
	}
	m := store.MoveRunRequest{Run: r.uuid("id"), Queue: pick(c.check, "to", append([]string{""}, twinQueues...)), Now: c.now, Actor: pick(c.check, "actor", []string{"", "me"}), Reason: pick(c.check, "why", []string{"", "so"})}
	if m.Queue != "" {
		m.NeedsPlace = c.needsPlace(m.Queue)
	}
	p := int16(c.dice("new priority", 5) - 2)
	if c.dice("prioritize", 2) == 0 {
		m.Priority = &p
	}
	return &twinCall{
		text: fmt.Sprintf("move %s to %q (needs place %v), priority %v (%d)", r.text(), m.Queue, m.NeedsPlace, m.Priority != nil, p),
		do: func(ctx context.Context, s store.Store) (any, error) {
			mine := m
			err := s.MoveRun(ctx, &mine)
			return mine, err
		},
		check: checkMove,
	}
}

// checkMove checks what a move has changed, by the documentation of store.MoveRunRequest.
func checkMove(result any, before, after twinDump) error {
	m := result.(store.MoveRunRequest)
	key := strings.ReplaceAll(m.Run.String(), "-", "") + " "
	was, is := before["run"][key], after["run"][key]
	same := func() error {
		if text := before.diff(after); text != "" {
			return fmt.Errorf("a call that is %d has changed:%s", m.Outcome, text)
		}
		return nil
	}
	queue, priority := was["queue"], was["priority"]
	if m.Queue != "" {
		queue = m.Queue
	}
	if m.Priority != nil {
		priority = fmt.Sprint(*m.Priority)
	}
	events := len(after["event"]) - len(before["event"])
	switch {
	case queue == was["queue"] && priority == was["priority"]:
		if m.Outcome != store.Written {
			return fmt.Errorf("a run that has the queue and the priority: %d", m.Outcome)
		}
		return same()
	case m.Outcome == store.Fenced:
		over := func(at string) bool { return at != "" && (twinRow{"at": at}).int("at") <= m.Now.UnixMicro() }
		place := before["place"][key]
		switch s := was.status(); {
		case s != store.Pending && s != store.Paused, was.control()&store.CancelRequested != 0, was["started_at"] != "" && was.control()&store.HasStartBy == 0:
		case s == store.Pending && (over(was["deadline_at"]) || place != nil && over(place["start_by"])):
		default:
			return errors.New("it is fenced, although the run has not begun and its time is not over")
		}
		return same()
	case is["queue"] != queue || is["priority"] != priority || events != count01(queue != was["queue"])+count01(priority != was["priority"]):
		return fmt.Errorf("the run is %s, with %d events more", is, events)
	}
	for _, c := range []string{"status", "deadline_at", "timeout", "control", "epoch", "started_at", "input", "paused_at"} {
		if is[c] != was[c] {
			return fmt.Errorf("column %s was %q, and is %q", c, was[c], is[c])
		}
	}
	place, had := after["place"][key], before["place"][key]
	for _, c := range []string{"key", "weight", "start_by", "root"} {
		if had != nil && (place == nil || place[c] != had[c]) {
			return fmt.Errorf("the place was %s, and is %s", had, place)
		}
	}
	if place != nil && (place["queue"] != queue || place["priority"] != priority) {
		return fmt.Errorf("the place is %s", place)
	}
	for _, table := range []string{"run", "place"} {
		for other, row := range before[table] {
			if other != key && !maps.Equal(row, after[table][other]) {
				return fmt.Errorf("it has changed another row of table %s: %s", table, row)
			}
		}
	}
	return nil
}

// deadline sets or removes a deadline.
func (c *twinCheck) deadline() *twinCall {
	r := c.withStatus("run", store.Pending, store.Running, store.Waiting, store.Paused)
	if r == nil {
		return nil
	}
	d := store.DeadlineChangeRequest{Run: r.uuid("id"), Now: c.now, ActorAndReason: store.ActorAndReason{Actor: pick(c.check, "actor", []string{"", "me"}), At: c.now}}
	if c.dice("none", 4) > 0 {
		d.Timeout = time.Duration(c.dice("timeout", 5)) * time.Second
		d.NewDeadline = c.now.Add(d.Timeout)
	}
	return &twinCall{
		text: fmt.Sprintf("deadline of %s to %s", r.text(), offset(d.NewDeadline)),
		do: func(ctx context.Context, s store.Store) (any, error) {
			mine := d
			err := s.SetDeadline(ctx, &mine)
			return mine, err
		},
		check: checkDeadline,
	}
}

// clearStartBy records that the function of a run is called.
func (c *twinCheck) clearStartBy() *twinCall {
	r := c.withStatus("running", store.Running)
	if r == nil {
		return nil
	}
	e := r.epoch()
	if c.dice("other epoch", 6) == 0 {
		e.Count++
	}
	return &twinCall{
		text: fmt.Sprintf("clear StartBy of %s at %s", r.text(), e),
		do: func(ctx context.Context, s store.Store) (any, error) {
			return s.ClearStartByDeadline(ctx, r.uuid("id"), e)
		},
		check: func(got any, before, after twinDump) error {
			kept, key := got.(bool), r["id"]+" "
			if want := r.status() == store.Running && e == r.epoch(); kept != want {
				return fmt.Errorf("kept %v, want %v", kept, want)
			}
			if is := after["run"][key]; kept && is.control()&store.HasStartBy != 0 || !kept && before.diff(after) != "" {
				return fmt.Errorf("kept %v, and the run is %s", kept, is)
			}
			return nil
		},
	}
}

// leave ends a running run, makes it wait, or pauses it.
func (c *twinCheck) leave() *twinCall {
	r := c.withStatus("running", store.Running)
	if r == nil {
		return nil
	}
	w := store.OwnershipEnd{UUID: r.uuid("id"), Now: c.now, Epoch: r.epoch(), Status: pick(c.check, "becomes", []store.Status{store.Completed, store.Failed, store.Waiting, store.Waiting, store.Pending, store.Pending, store.Paused})}
	if p := r.uuid("parent_id"); p != uuid.Nil {
		w.ParentToWake = uuid.NullUUID{UUID: p, Valid: true}
	}
	switch w.Status {
	case store.Waiting:
		w.WakeAt = c.soon("timer", 2)
	case store.Pending:
		if w.WakeAt = c.now; c.dice("held", 2) == 0 {
			w.WakeAt, w.HoldsRun, w.HoldReason, w.MaxCrashes = time.Time{}, true, "rejected", 2
		}
	case store.Completed:
		w.EndedAt, w.Output = c.now, []byte("1")
	case store.Failed:
		w.EndedAt, w.Error = c.now, []byte("x")
	}
	if r.control()&store.CancelRequested != 0 && c.dice("obeys", 3) > 0 {
		w.Status, w.EndedAt, w.WakeAt, w.HoldsRun = store.Cancelled, c.now, time.Time{}, false
	}
	return c.endCall(w, r)
}

// endCall returns the call that ends the ownership of a run. Some runs have recorded before how they end.
func (c *twinCheck) endCall(w store.OwnershipEnd, r twinRow) *twinCall {
	b := store.Batch{}
	if c.dice("end record", 6) == 0 && c.rows["step"][r["id"]+" "+store.EndRecordName+" "] == nil {
		b.Steps = []*store.StepWrite{{Step: store.Step{
			Run: w.UUID, Name: store.EndRecordName, Kind: store.KindRunEnd, Status: store.StepCompleted, Attempt: 1, Epoch: w.Epoch, StartedAt: c.now, EndedAt: c.now, Output: []byte("1"),
		}}}
	}
	return &twinCall{text: fmt.Sprintf("%s becomes %s, held %v, wakes %s, %d records", r.text(), w.Status, w.HoldsRun, offset(w.WakeAt), len(b.Steps)), do: func(ctx context.Context, s store.Store) (any, error) {
		mine := w
		batch := copyBatch(&b)
		batch.OwnershipEnds = []*store.OwnershipEnd{&mine}
		err := commitNow(ctx, s, batch, func() store.WriteOutcome { return mine.Outcome })
		return mine.Outcome, err
	}}
}

// control pauses, resumes, cancels or terminates a tree.
func (c *twinCheck) control() *twinCall {
	r := c.withStatus("run", store.Pending, store.Running, store.Waiting, store.Paused)
	if r == nil {
		return nil
	}
	return c.controlCall(store.ControlRequest{
		Verb:  pick(c.check, "verb", []store.ControlVerb{store.VerbPause, store.VerbPause, store.VerbPause, store.VerbResume, store.VerbResume, store.VerbResume, store.VerbResume, store.VerbCancel, store.VerbTerminate}),
		Scope: store.CancelScope(c.dice("scope", 5)), Runs: []uuid.UUID{r.uuid("id")}, Now: c.now, Error: []byte("cancelled"), ShiftTimers: c.dice("shift", 2) == 0,
		Actor: pick(c.check, "actor", []string{"", "me"}),
	})
}

func (c *twinCheck) controlCall(o store.ControlRequest) *twinCall {
	return &twinCall{text: fmt.Sprintf("verb %d (scope %d, shift %v) for %s", o.Verb, o.Scope, o.ShiftTimers, showIDs(o.Runs)), do: func(ctx context.Context, s store.Store) (any, error) {
		mine := o
		err := s.ControlRuns(ctx, &mine)
		slices.SortFunc(mine.ChangedRuns, store.CompareUUIDsByShard)
		slices.SortFunc(mine.RequestedRuns, store.CompareUUIDsByShard)
		return mine, err
	}}
}

func (c *twinCheck) claim() *twinCall {
	return c.claimCall(pick(c.check, "served", served), time.Duration(1+c.dice("lease", 60))*time.Second)
}

// claimCall returns a call that claims all due runs: lanes of one priority are claimed in a random order. Now and then the worker does
// not know a row of a queue.
func (c *twinCheck) claimCall(filter *store.ClaimFilter, lease time.Duration) *twinCall {
	q := store.ClaimQuery{
		Worker: workers[0], EpochNonce: c.nonce(), Filter: filter, Limit: 100, MaxSuspects: 100, MaxCrashes: 3, Now: c.now, LeaseUntil: c.now.Add(lease),
	}
	var known, paused []string
	for _, queue := range twinQueues {
		if c.needsPlace(queue) {
			known = append(known, queue)
			if c.rows["queue"][queue+" "]["paused_at"] != "" {
				paused = append(paused, queue)
			}
		}
	}
	q.QueueRules = store.NewQueueClaimRules(known, nil, paused)
	return &twinCall{text: fmt.Sprintf("claim %+v, with known queues %q and paused %q, for %s", filter, known, paused, lease), do: func(ctx context.Context, s store.Store) (any, error) {
		got, err := s.Claim(ctx, q)
		ids := make([]uuid.UUID, len(got.Runs))
		for i := range got.Runs {
			ids[i] = got.Runs[i].Run.UUID
		}
		sortIDs(ids)
		return ids, err
	}}
}
