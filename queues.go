package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// QueueInfo is a queue as [Engine.Queues] returns it.
type QueueInfo struct {
	Name string
	// Settings are the settings that apply: Set, or Declared if Set is nil.
	Settings QueueSettings
	// Declared holds the settings that code declares in Config.QueueSettings. Declared is nil if no code has declared the
	// queue.
	Declared        *QueueSettings
	DeclaredVersion string // the Config.Version of the code that declared the queue
	DeclaredAt      time.Time
	// Set holds the settings of [Engine.SetQueue]. Set is nil if SetQueue has not set the queue.
	Set         *QueueSettings
	SetAt       time.Time
	SetBy       string
	SetReason   string
	PausedAt    time.Time // zero if the queue is not paused
	PausedBy    string
	PauseReason string
	LastChange  *OperatorChange // the last change by an operator; nil if no operator has changed the queue

	QueueUse
	// OldestDue is the due time of the run that has waited the longest to begin, as last seen by a worker. OldestDue is zero if
	// no run waits to begin, or if no worker has been running since the waiting runs became due. If you alert on OldestDue,
	// alert also when [Engine.Workers] returns no worker.
	OldestDue time.Time
	// BlockedBy is why the next run of the queue does not begin. BlockedBy is empty if no run waits, or if the next run is
	// about to begin.
	BlockedBy QueueBlock
	Keys      []QueueKeyUse // the keys with the most waiting runs, at most ten
}

// QueueBlock is the reason why the next run of a queue does not begin.
type QueueBlock string

// The reasons why the next run of a queue does not begin.
const (
	BlockedByPause         QueueBlock = "pause"           // the queue is paused
	BlockedByMaxExecuting  QueueBlock = "max_executing"   // as many runs execute as MaxExecuting allows
	BlockedByMaxInProgress QueueBlock = "max_in_progress" // as many runs are in progress as MaxInProgress allows
	BlockedByRate          QueueBlock = "rate"            // the Rate is used up for now
	BlockedByKey           QueueBlock = "key"             // a bound of its group key holds back each waiting run; see [RunInfo.Place]
)

// QueueUse counts the runs of a queue, or of one group key of a queue, by their state.
type QueueUse struct {
	Executing  int // the number of runs that execute or that a worker may claim now; a run that has just stopped still counts for a moment
	InProgress int // the number of root runs that have begun and not ended
	// Waiting is how many runs are due and wait for their turn, as last seen by a worker. Waiting does not change while no
	// worker is running.
	Waiting int
	// WaitingForKey counts those waiting runs that may not be executed yet because of the bounds of their group key: either the
	// key has reached its bounds, or the runs of the same key that are already in the line will use up the bounds.
	WaitingForKey int
}

// QueueKeyUse counts the runs of one [GroupKey] by their state in the queue.
type QueueKeyUse struct {
	Key string
	QueueUse
}

func toQueueUse(u store.QueueUse) QueueUse {
	return QueueUse{Executing: u.Executing, InProgress: u.InProgress, Waiting: u.Waiting, WaitingForKey: u.WaitingForKey}
}

// Queues returns the queues that have settings, ordered by name.
func (e *Engine) Queues(ctx context.Context) ([]QueueInfo, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("list the queues: %w", err)
	}
	rows, err := e.inner.Queues(ctx)
	if err != nil {
		return nil, err
	}
	now, err := e.inner.Now(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]QueueInfo, len(rows))
	for i := range rows {
		q := &rows[i]
		all[i] = QueueInfo{
			Name: q.Name, Settings: newQueueSettings(q.Settings), DeclaredVersion: q.DeclaredVersion, DeclaredAt: q.DeclaredAt,
			SetBy: q.SetBy, SetReason: q.SetReason, SetAt: q.SetAt, PausedAt: q.PausedAt, PausedBy: q.PausedBy, PauseReason: q.PauseReason,
			LastChange: newOperatorChange(q.LastChange),
			QueueUse:   toQueueUse(q.QueueUse), OldestDue: q.OldestDue, BlockedBy: QueueBlock(q.BlockedBy(now)),
		}
		if q.DeclaredSettings != nil {
			all[i].Declared = new(newQueueSettings(*q.DeclaredSettings))
		}
		if q.OperatorSettings != nil {
			all[i].Set = new(newQueueSettings(*q.OperatorSettings))
		}
		for _, k := range q.Keys {
			all[i].Keys = append(all[i].Keys, QueueKeyUse{k.Key, toQueueUse(k.QueueUse)})
		}
	}
	return all, nil
}

// SetQueue sets the settings of a queue. Any process can call SetQueue, even while runs of the queue execute. The settings of
// SetQueue take effect within a second, and replace the settings that code declares until [Engine.ResetQueue] or
// [Engine.DeleteQueue]. Runs that already execute continue, and count towards the new settings, even if more runs execute than
// the new settings allow.
//
// The options of SetQueue are [Reason] and [Actor]. SetQueue returns [ErrInvalidConfig] with the name of the field if a setting
// is invalid, [ErrInvalidName], and [ErrSchema] while a running worker has a version of durable that ignores queues.
func (e *Engine) SetQueue(ctx context.Context, name string, s QueueSettings, opts ...ControlOption) error {
	return e.changeQueue(ctx, "set", name, opts, func(o *controlOptions) error {
		if err := s.check(); err != nil {
			return fmt.Errorf("set queue %q: %w", name, err)
		}
		return e.inner.SetQueue(ctx, store.QueueChangeRequest{Name: name, Settings: s.toStore(), Actor: o.actor, Reason: o.reason})
	})
}

// PauseQueue pauses a queue: no run of the queue begins until [Engine.ResumeQueue]. While a queue is paused, its executing runs
// continue, cancels take effect, and compensations are executed. [StartBy] and [Timeout] also apply during the pause of a
// queue: runs expire even while their queue is paused. PauseQueue does nothing if the queue is paused. The options of
// PauseQueue are [Reason] and [Actor]. PauseQueue returns [ErrNotFound] if the queue has no settings.
func (e *Engine) PauseQueue(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeQueue(ctx, "pause", name, opts, func(o *controlOptions) error {
		return e.inner.PauseQueue(ctx, store.QueuePauseRequest{Name: name, Actor: o.actor, Reason: o.reason})
	})
}

// ResumeQueue lets the runs of a paused queue begin again. ResumeQueue does nothing if the queue is not paused, and returns
// [ErrNotFound] if the queue has no settings. The options of ResumeQueue are [Reason] and [Actor].
func (e *Engine) ResumeQueue(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeQueue(ctx, "resume", name, opts, func(o *controlOptions) error {
		return e.inner.PauseQueue(ctx, store.QueuePauseRequest{Name: name, Resume: true, Actor: o.actor, Reason: o.reason})
	})
}

// DeleteQueue removes the settings of a queue, both the settings that SetQueue has set and the settings that code has declared,
// and ends a pause of the queue. The runs of the queue stay, and are executed without bounds. Starts with [GroupKey] return
// [ErrInvalidConfig] until the queue has settings again. The queue has settings again when a worker that declares the queue in
// Config.QueueSettings starts, or when [Engine.SetQueue] is called. A worker that is already running does not declare a deleted
// queue again.
//
// To return from the settings of SetQueue to the settings that code declares, call [Engine.ResetQueue] instead. The options of
// DeleteQueue are [Reason] and [Actor]. DeleteQueue returns [ErrNotFound] if the queue has no settings.
func (e *Engine) DeleteQueue(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeQueue(ctx, "delete", name, opts, func(o *controlOptions) error {
		return e.inner.DeleteQueue(ctx, store.DeleteOrResetRequest{Name: name, Actor: o.actor, Reason: o.reason})
	})
}

// ResetQueue removes the settings that SetQueue has set, so that the settings that code declares in Config.QueueSettings apply
// within a second. The queue is never without settings during a ResetQueue. A paused queue stays paused after ResetQueue. The
// options of ResetQueue are [Reason] and [Actor]. ResetQueue returns [ErrNotFound] if the queue has no settings, [ErrState] if
// no code declares the queue, and [ErrSchema] as SetQueue does.
func (e *Engine) ResetQueue(ctx context.Context, name string, opts ...ControlOption) error {
	return e.changeQueue(ctx, "reset", name, opts, func(o *controlOptions) error {
		err := e.inner.ResetQueue(ctx, store.DeleteOrResetRequest{Name: name, Actor: o.actor, Reason: o.reason})
		if errors.Is(err, engine.ErrNotDeclared) {
			return fmt.Errorf("%w: cannot reset queue %q: no code declares it in Config.QueueSettings: use DeleteQueue to remove its settings", ErrState, name)
		}
		return err
	})
}

// changeQueue checks the arguments of a method that changes a queue, and calls change.
func (e *Engine) changeQueue(ctx context.Context, verb, name string, opts []ControlOption, change func(*controlOptions) error) error {
	err := e.checkUsableOutsideWorkflow(ctx, "a change of a queue", "a step")
	var o controlOptions
	if err == nil {
		o, err = applyActorReasonOptions("a change of a queue", opts)
	}
	if err == nil {
		err = naming.Check("queue", name)
	}
	if err == nil {
		err = e.inner.CheckOutsideTx(ctx, "a change of a queue")
	}
	if err != nil {
		return fmt.Errorf("%s queue %.100q: %w", verb, name, err)
	}
	return change(&o)
}
