package durable

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// MoveToQueue moves the run with the given ID, which is the caller's ID or the UUID, to another queue if the run has not begun.
// A moved run keeps its priority, its [GroupKey], and the times of its [Delay], [StartBy] and [Timeout]. If the new queue has
// settings, the moved run waits behind the runs that are already in line there with the same group key and priority. There is
// one exception: runs that wait because of MaxInProgressPerKey or MaxExecutingPerKey are ordered by the times at which they
// became due, so among them the moved run can come before runs that were in the new queue earlier. A paused run stays paused
// after the move. A run that waits for its [Singleton] key continues to wait after the move. After the move, the run no longer
// counts towards the bounds of its group key in the old queue. Moving a child does not move its parent.
//
// The options of MoveToQueue are [Reason] and [Actor]. An [Event] records the move. If the run is in the queue already,
// MoveToQueue does nothing, whatever the state of the run, so that a call whose result was lost can be repeated. MoveToQueue
// returns
//
//   - [ErrNotFound] if there is no run with the ID;
//   - [ErrInvalidName] if the name of the queue is invalid;
//   - a [*StateError] if the run has begun, has ended or is being cancelled, or if its StartBy or Timeout is over;
//   - [ErrQueueFull] or [ErrQueueClosed] if the run is a root run and the new queue refuses it, as it would refuse a start.
func (e *Engine) MoveToQueue(ctx context.Context, id, queue string, opts ...ControlOption) error {
	err := naming.Check("queue", queue)
	return e.moveRun(ctx, VerbMove, id, &store.MoveRunRequest{Queue: queue}, err, opts)
}

// SetPriority sets the [Priority] of the run with the given ID, which is the caller's ID or the UUID, if the run has not begun.
// In a queue with settings, a waiting run with a new priority takes its turn as if the run had just become due: it waits behind
// the runs with the same [GroupKey] and priority that are in line already, even if SetPriority sets the old priority again.
// There is one exception: runs that wait because of MaxInProgressPerKey or MaxExecutingPerKey are ordered by the times at which
// they became due.
//
// The options of SetPriority are [Reason] and [Actor]. An [Event] records the change of the priority. If the run has the
// priority already, SetPriority does nothing, whatever the state of the run. SetPriority returns
//
//   - [ErrNotFound] if there is no run with the ID;
//   - [ErrInvalidConfig] if the priority is not from [LowestPriority] to [HighestPriority];
//   - a [*StateError] if the run has begun, has ended or is being cancelled, or if its StartBy or Timeout is over.
func (e *Engine) SetPriority(ctx context.Context, id string, priority int, opts ...ControlOption) error {
	return e.moveRun(ctx, VerbSetPriority, id, &store.MoveRunRequest{Priority: new(int16(priority))}, checkPriority(priority), opts)
}

// moveRun makes the change, unless its arguments are invalid.
func (e *Engine) moveRun(ctx context.Context, verb Verb, id string, m *store.MoveRunRequest, invalid error, opts []ControlOption) error {
	err := e.checkUsableOutsideWorkflow(ctx, "a change of a run's queue or priority", "the options InQueue and Priority")
	if err == nil {
		err = invalid
	}
	if err == nil {
		var o controlOptions
		o, err = applyActorReasonOptions("a change of a run's queue or priority", opts)
		m.Actor, m.Reason = o.actor, o.reason
	}
	if err != nil {
		return fmt.Errorf("%s run %q: %w", verb, id, err)
	}
	return convertStateError(e.inner.MoveRun(ctx, string(verb), id, m))
}
