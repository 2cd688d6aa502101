package engine

import (
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// Child is a child run, as its parent's function holds it.
type Child struct {
	s    *Scope
	name string // with its scope
	id   uuid.UUID
	row  store.Step // of the parent, as recorded when it was started
	here bool       // it was started by this execution

	once   sync.Once
	result Result
	err    error
}

// Name is the call's name, with its scope, as people see it.
func (c *Child) Name() string { return Shown(c.name) }

// StartChild makes a run whose parent is this one and whose name is the call's. Its start,
// and the row of this call, which is completed when the parent has waited for it, are
// one transaction. It is refused while anything is asked of the parent.
func (s *Scope) StartChild(q StartRequest, site uintptr) (*Child, error) {
	r := s.r
	full := s.prefix + q.Name
	recorded, err := s.claimName(full, store.KindChild, site)
	if err != nil {
		return nil, err
	}
	c := &Child{s: s, name: full}
	if recorded != nil {
		c.row = *recorded
		if had := FailuresOf(recorded).Workflow; had != "" && had != q.Workflow {
			return nil, fmt.Errorf("%w: child %q in run %q is recorded as a run of workflow %q, and the code starts %q: give the new call another name", ErrDiverged, Shown(full), r.row.Address(), had, q.Workflow)
		}
		if recorded.Status.Terminal() {
			c.id = store.ChildID(r.row.ID, full, recorded.StartedAt)
			c.once.Do(func() { c.result = resultOf(recorded) })
			return c, nil
		}
		if c.id, err = childID(recorded); err != nil {
			return nil, fmt.Errorf("%w: the record of child %q in run %q does not name a run", ErrDiverged, Shown(full), r.row.Address())
		}
		return c, nil
	}
	if err := CheckName("child", q.Name); err != nil {
		return nil, err
	}
	if s.nested() {
		return nil, nestedError(r, full)
	}
	return c, c.start(q)
}

// childID is the run that the row of a child's start names.
func childID(started *store.Step) (id uuid.UUID, err error) {
	var text string
	if err := json.Unmarshal(started.Output, &text); err != nil {
		return id, err
	}
	if err := uuid.Validate(text); err != nil {
		return id, err
	}
	return uuid.Parse(text)
}

// start commits the child. It begins here at once if there is a slot.
func (c *Child) start(q StartRequest) error {
	r := c.s.r
	if !r.branched() { // the run's end waits for the start, and cancels the child
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.suspended != nil {
			return ErrSuspended
		}
		return r.returnedAlready()
	}
	defer r.branchReturned()
	r.idle.busy()
	defer r.idle.done()
	w, slots := r.e.reserve([]StartRequest{q})
	starts, spans := r.e.Prepare(r.work, []StartRequest{q})
	start := starts[0]
	c.id = store.ChildID(r.row.ID, c.name, start.Run.CreatedAt)
	start.Run.ID, start.Run.Name, start.ParentEpoch = c.id, c.name, r.row.Epoch
	start.Run.Parent = uuid.NullUUID{UUID: r.row.ID, Valid: true}
	if slots > 0 && start.Run.WakeAt.Equal(start.Run.CreatedAt) {
		w.own(&start.Run, start.Run.CreatedAt, store.NewNonce())
	}
	own := start.Run.Owner.Valid
	out, err := json.Marshal(c.id.String())
	if err != nil {
		return err
	}
	t := &task{r: r, s: c.s, spec: &Spec{Kind: store.KindChild}, name: c.name, attempt: 1, first: start.Run.CreatedAt}
	step := t.row(store.StepStarted, out, nil)
	if step.Step.Failures, err = json.Marshal(&Failures{Workflow: q.Workflow}); err != nil {
		return err
	}
	var left error   // the branch was ended
	var failed error // the last that a write met
	err = r.e.persist(r.durable, until(r.hard.Done()), func() {
		w.release(slots, 0) // others need not wait for them
		slots, own = 0, false
		disown(&start.Run)
	}, func(j journal.Writer) (*store.Outcome, error) {
		c.s.branch.hold() // a choice that ends the branch cancels this child, or comes first
		defer c.s.branch.release()
		if left = c.s.branchLeft(); left != nil {
			fenced := store.Fenced
			return &fenced, nil
		}
		err := j.Child(r.durable, start, step)
		failed = cmp.Or(err, failed)
		if err == nil && start.Outcome == store.Written && step.Outcome == store.Written {
			r.child(c.name, c.id)
		}
		return &start.Outcome, err
	})
	written := err == nil && left == nil && start.Outcome == store.Written && step.Outcome == store.Written
	if !own || !written {
		w.release(slots, 0)
	}
	if own && !written && failed != nil {
		w.unanswerStart(starts, cmp.Or(err, failed))
	}
	if err := cmp.Or(err, left); err != nil {
		spans.Refused(err)
	} else {
		spans.answered(0, start, nil)
	}
	switch {
	case left != nil && failed != nil: // it may have been started: another execution finds out
		r.lose()
		return ErrSuspended
	case left != nil:
		return left
	case err != nil && !errors.Is(err, store.ErrBadData):
		r.unwritten("start child", c.name, err)
		return ErrSuspended
	case err != nil:
		return fmt.Errorf("start child %q of run %q: %w", Shown(c.name), r.row.Address(), err)
	case start.Outcome == store.Fenced && start.State.Epoch == r.row.Epoch && start.State.Control != 0:
		r.asked(start.State.Control)
		return c.s.left()
	case start.Outcome == store.Adopted: // the name is unique below a parent, and this parent has started no such child
		r.unwritten("start child", c.name, strangerError(start.Existing, c.id))
		return ErrSuspended
	case !written:
		r.fenced(start.State)
		return ErrSuspended
	}
	r.e.tel.Started(r.ctx, q.Workflow, q.Queue)
	c.row, c.here = step.Step, true
	r.proven()
	if own {
		w.enter(&store.Claimed{Run: start.Run}, 0, false)
	} else {
		r.w.hint()
	}
	return nil
}

// ID is the child's UUID, in every execution.
func (c *Child) ID() uuid.UUID { return c.id }

// Wait answers the child's result, once it has ended, wherever it is executed. The parent
// may leave memory meanwhile; the child's end wakes it.
func (c *Child) Wait() (Result, error) {
	if c.s.nested() {
		return Result{}, nestedError(c.s.r, c.name)
	}
	c.once.Do(func() { c.result, c.err = c.wait() })
	return c.result, c.err
}

func (c *Child) wait() (Result, error) {
	r := c.s.r
	if left := c.s.left(); left != nil {
		return Result{}, left // to look for its end would be a call that is new
	}
	r.live.Store(true)
	r.idle.busy()
	defer r.idle.done()
	row, err := c.ended()
	if row == nil && err == nil {
		r.idle.done()
		waiting := r.idle.enter(time.Time{})
		row, err = r.e.await(c.s.ctx, c.id, new(waiter))
		r.idle.busy() // before it stops waiting, so that the run does not settle in between
		r.idle.leave(waiting)
	}
	switch {
	case unwritable(err):
		r.lose()
	case errors.Is(err, ErrNotFound): // what it has done is not known, so it is not started again
		r.unwritten("wait for child", c.name, fmt.Errorf("%w: the child %s is not in this database: it was deleted, or another run had its name when it was to be started: end this run by Cancel or Terminate",
			store.ErrRejected, c.id))
	}
	if left := c.s.left(); left != nil {
		return Result{}, left
	}
	if err != nil {
		return Result{}, fmt.Errorf("wait for child %q of run %q: %w", Shown(c.name), r.row.Address(), err)
	}
	t := &task{r: r, s: c.s, spec: &Spec{Kind: store.KindChild}, name: c.name, attempt: c.row.Attempt, first: c.row.StartedAt, exists: true, seq: c.row.Seq}
	w := t.row(store.StepCompleted, row.Output, nil)
	if row.Status != store.Completed {
		w = t.row(store.StepFailed, nil, childFailure(row))
	}
	w.Step.Failures = c.row.Failures // its workflow
	res, _, err := t.write(w)
	if err == nil {
		r.childEnded(c.name)
	}
	return res, err
}

// ended looks whether a child that was started by an execution before has ended: that
// was perhaps what woke this one, and then nothing wakes it again. The end of one that was
// started here is news.
func (c *Child) ended() (*store.Run, error) {
	if c.here {
		return nil, nil
	}
	var ended []gone
	err := c.s.r.e.patiently(c.s.ctx, caller{}, func() (err error) {
		ended, err = c.s.r.e.ended(c.s.ctx, []uuid.UUID{c.id})
		return err
	})
	switch {
	case err != nil && c.s.left() == nil:
		c.s.r.unwritten("look for child", c.name, err)
		return nil, err
	case err != nil:
		return nil, err
	case len(ended) == 1 && ended[0].run == nil:
		return nil, notFound(c.id.String())
	case len(ended) == 1:
		return ended[0].run, nil
	}
	return nil, nil
}

// strangerError tells of a run below this one that nothing in its history has started.
func strangerError(had *store.Run, child uuid.UUID) error {
	return fmt.Errorf("%w: the name belongs to run %s of workflow %q, which this run has not started, in place of the child %s: find out who inserted that row",
		store.ErrRejected, had.ID, had.Workflow, child)
}

// childFailure is the record, in its parent, of a child that did not complete.
func childFailure(row *store.Run) *Failure {
	f := &Failure{Message: "no error was recorded"}
	if len(row.Error) > 0 {
		f = DecodeFailure(row.Error)
	}
	f.Run, f.Workflow, f.Status = row.ID.String(), row.Workflow, row.Status.String()
	return f
}
