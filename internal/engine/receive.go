package engine

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// Timeout is what follows when the time of a receive is over.
type Timeout uint8

// The behaviours.
const (
	TimeoutFails     Timeout = iota // the receive fails with CodeTimeout
	TimeoutGoesOn                   // it answers ReceiveSpec.Value
	TimeoutCancels                  // the run's tree is cancelled
	TimeoutExpires                  // the run expires, as when its own timeout is over
	TimeoutEscalates                // Escalate is called, once, and the wait goes on
	timeouts                        // how many there are
)

// ReceiveSpec is one receive.
type ReceiveSpec struct {
	Name      string
	Signal    string
	Site      uintptr
	Within    time.Duration // from the first look
	Bounded   bool          // Within holds
	Otherwise Timeout
	Value     []byte
	Escalate  Escalation
}

// receiving is one receive on its way.
type receiving struct {
	s    *Scope
	r    *run
	spec *ReceiveSpec
	name string     // with its scope
	row  store.Step // as recorded, or to be
	late bool       // its last look came when its time was over
}

// Receive answers the payload of the oldest signal that nothing has received, waiting for
// it if need be. A look that finds none records that the run waits, and until when: one
// row, which the end of the wait completes.
func (s *Scope) Receive(spec *ReceiveSpec) (Result, error) {
	r := s.r
	full := s.prefix + spec.Name
	recorded, err := s.claimName(full, store.KindReceive, spec.Site)
	if err != nil {
		return Result{}, err
	}
	if recorded == nil {
		if err := CheckName("receive", spec.Name); err != nil {
			return Result{}, err
		}
		if s.nested() {
			return Result{}, nestedError(r, full)
		}
	}
	w := &receiving{s: s, r: r, spec: spec, name: full}
	if recorded == nil || !recorded.Status.Terminal() {
		if recorded, err = w.wait(recorded); err != nil {
			return Result{}, err
		}
	}
	return w.answer(recorded)
}

// wait looks until there is a signal or the time is over.
func (w *receiving) wait(recorded *store.Step) (*store.Step, error) {
	now := w.r.e.clock.now()
	w.row = store.Step{RunID: w.r.row.ID, Name: w.name, Kind: store.KindReceive, Attempt: 1, StartedAt: now}
	if recorded == nil {
		w.row.Seq = w.r.nextSeq()
	} else {
		w.row.Seq = recorded.Seq
	}
	if recorded != nil {
		w.row.Attempt, w.row.StartedAt, w.row.NextAt = recorded.Attempt, recorded.StartedAt, recorded.NextAt
	} else if w.spec.Bounded {
		w.row.NextAt = now.Add(w.spec.Within).Truncate(time.Microsecond)
	}
	w.row.Epoch = w.r.row.Epoch
	in := &w.r.inbox
	l := in.join(w.spec.Signal)
	took := false
	defer func() { in.leave(l, took) }()
	waits := recorded != nil && in.await(l)
	for {
		if !waits {
			in.looks(l)
			found, err := w.look()
			if err != nil {
				return nil, err
			}
			if found.Status.Terminal() {
				took = !w.late && found.Status == store.StepCompleted
				return found, nil
			}
			w.row.StartedAt, w.row.NextAt, w.row.Attempt = found.StartedAt, found.NextAt, found.Attempt
			in.looked(l)
		}
		waits = false
		if err := w.r.idle.until(w.s, w.row.NextAt, l.call); err != nil {
			return nil, cmp.Or(w.s.left(), err)
		}
	}
}

// look asks the database once. Whether the time is over is decided before; a signal that arrived
// in time goes before the end all the same, see [store.Receive].
func (w *receiving) look() (*store.Step, error) {
	r := w.r
	r.idle.busy()
	defer r.idle.done()
	row := w.row
	row.Status, row.EndedAt = store.StepStarted, r.e.clock.now()
	if w.late = !w.row.NextAt.IsZero() && r.e.clock.until(w.row.NextAt) == 0; !w.late {
		return w.record(&row, false)
	}
	if w.spec.Otherwise == TimeoutEscalates { // nobody is told of a wait that a signal has ended in time
		if found, err := w.record(&row, false); err != nil || found.Status.Terminal() {
			return found, err
		}
	}
	if err := w.timeIsOver(&row); err != nil {
		return nil, err
	}
	return w.record(&row, true)
}

// record commits the row, or the step's end by a signal, and answers what is recorded then. With late, the row is
// what follows when the time is over.
func (w *receiving) record(row *store.Step, late bool) (*store.Step, error) {
	r := w.r
	rec := &store.Receive{Step: *row, Signal: w.spec.Signal}
	var left error // the branch was ended
	failed := false
	err := r.e.persist(r.durable, until(r.hard.Done()), nil, func(j journal.Writer) (*store.Outcome, error) {
		w.s.branch.hold()
		defer w.s.branch.release()
		if left = w.s.branchLeft(); left != nil {
			fenced := store.Fenced
			return &fenced, nil
		}
		err := j.Receive(r.durable, rec)
		failed = failed || err != nil
		return &rec.Outcome, err
	})
	switch {
	case left != nil && failed: // it may be recorded: another execution finds out
		r.lose()
		return nil, ErrSuspended
	case left != nil:
		return nil, left
	case err != nil && !errors.Is(err, store.ErrBadData):
		r.unwritten("record receive", w.name, err)
		return nil, ErrSuspended
	case err != nil:
		return nil, fmt.Errorf("receive %q in run %q: %w", Shown(w.name), r.row.Address(), err)
	case rec.Outcome == store.Fenced:
		r.fenced(rec.State)
		return nil, ErrSuspended
	}
	r.proven()
	r.asked(rec.State.Control)
	w.reportTimeout(rec, late)
	if rec.Recorded.Kind != store.KindReceive {
		return nil, divergedKind(&r.row, w.name, rec.Recorded.Kind, store.KindReceive)
	}
	return rec.Recorded, nil
}

// timeIsOver makes the row that is recorded if there is no signal now.
func (w *receiving) timeIsOver(row *store.Step) error {
	switch w.spec.Otherwise {
	case TimeoutGoesOn:
		row.Status, row.Output = store.StepCompleted, w.spec.Value
	case TimeoutEscalates:
		if err := w.escalate(); err != nil {
			return err
		}
		row.Attempt++
		row.NextAt = time.Time{}
	default:
		row.Status = store.StepFailed
		f := &Failure{
			Message: fmt.Sprintf("no signal %q came in time", ShownSignal(w.spec.Signal)), Type: "timeout", Codes: []string{CodeTimeout}, Attempts: 1,
		}
		row.Error = f.Encode()
	}
	return nil
}

// answer is what the recorded end of the wait means, now and in every replay.
func (w *receiving) answer(recorded *store.Step) (Result, error) {
	res := resultOf(recorded)
	if res.Failure == nil {
		return res, nil
	}
	switch w.spec.Otherwise {
	case TimeoutCancels:
		if err := w.r.goesOn(); err != nil { // of the run: that the branch was ended came after the row
			return Result{}, err
		}
		o := &store.Order{Verb: store.VerbCancel, Runs: ids(w.r.row.ID), Reason: res.Failure.Message + " for " + Shown(w.name), Actor: "durable"}
		if err := w.r.e.Order(w.r.durable, o); err != nil {
			w.r.unwritten("cancel the run, whose time to wait is over, at", w.name, err)
		} else {
			w.r.doom(cancelled())
		}
		return Result{}, w.s.left()
	case TimeoutExpires:
		f := *res.Failure
		f.Step = Shown(w.name)
		w.r.doom(doom{cause: ErrTimeout, status: store.Expired, failure: &f})
		return Result{}, w.s.left()
	}
	return res, nil
}
