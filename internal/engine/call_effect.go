package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// A run that sends a signal, starts another run or cancels a child makes two writes: the effect, and then
// the row of the call. They cannot be one transaction, because the other run may be on another node, and
// because the row depends on the result of the effect. So the identity of the effect follows from the call
// alone: a signal has a key, and a run has a name. If an execution finds no row, it repeats the effect, and
// the database finds out whether the effect exists:
//
//   - The process died before the effect: the effect is written now.
//   - The process died between the two writes, or did not receive the result: the key or the name is
//     found, even if the other run has ended meanwhile. The signal or the run that was written first
//     counts.
//   - The process lost the run to another execution: both wrote the effect under the same key or name.
//
// These calls are steps whose function belongs to the engine. They leave a started marker if they take
// long, for example because another transaction has locked the row of the other run.

// ErrEffectInterrupted is returned by a call that affects another run, such as SendSignal, if the calling run or its branch was
// ended or suspended during the call. A call that returns ErrEffectInterrupted records nothing.
var ErrEffectInterrupted = errors.New("durable: the run ended or was suspended during a call")

// stepTaskFromContext returns the task of the attempt whose function has the context.
func stepTaskFromContext(ctx context.Context) (*stepTask, error) {
	t, ok := ctx.Value(attemptContextKey{}).(*stepTask)
	if !ok {
		return nil, errors.New("durable: an effect outside of an attempt")
	}
	return t, nil
}

// uniqueCallKey returns a text that this call has in every execution, and that no other call of any run has.
// Users cannot supply such a text.
func (t *stepTask) uniqueCallKey() string {
	return naming.Separator + t.r.runInKeyOf(t.name) + naming.Separator + t.name
}

// deriveStartedRunName returns the name of a run that the call starts without an ID from the user. It consists of this run with the
// generation of the call's keys, and the name of the call, or a hash of that name if the result would be too long.
func (r *run) deriveStartedRunName(call string) string {
	id := r.runInKeyOf(call) + ":"
	name := naming.Display(call)
	if len(id)+len(name) > naming.MaxName {
		sum := sha256.Sum256([]byte(call))
		name = hex.EncodeToString(sum[:])
	}
	return id + name
}

// writeOnlyInOpenBranch wraps a write that must not follow a choice which ends the branch of the scope. Either the
// choice waits for the write, or the wrapped write returns ErrEffectInterrupted and writes nothing.
func (s *Scope) writeOnlyInOpenBranch(write writeFunc) writeFunc {
	if s.branch == nil {
		return write
	}
	return func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
		s.branch.preventEndByChoice()
		defer s.branch.allowEndByChoice()
		if s.checkBranchOpen() != nil {
			return nil, ErrEffectInterrupted
		}
		return write(j)
	}
}

// If the target or the value of the effect caused the error, effectErrorOrSuspend returns the error that the call records. For an
// error of the database, it suspends the run and returns ErrEffectInterrupted. If the run or the branch was ended or suspended, it
// only returns ErrEffectInterrupted.
func (t *stepTask) effectErrorOrSuspend(what string, err error) error {
	var state *StateError
	switch {
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrIDConflict), errors.Is(err, naming.ErrInvalid), errors.As(err, &state), isQueueRefusal(err):
		return err
	case errors.Is(err, startkey.ErrLive), errors.Is(err, startkey.ErrSkipped):
		return err
	case errors.Is(err, store.ErrBadData):
		return err
	case errors.Is(err, ErrEffectInterrupted), t.scope.checkOpen() != nil:
		return ErrEffectInterrupted
	}
	t.r.suspendAfterFailedWrite(what, t.name, err)
	return ErrEffectInterrupted
}

// effectWriteContext returns the context and the options for the writes of an effect. The context does not end with ctx, so that each
// write finishes and its outcome is known. No write is retried once the call has to end.
func (t *stepTask) effectWriteContext(ctx context.Context) (writes context.Context, by writeOptions) {
	return context.WithoutCancel(ctx), writeOptions{stopRetrying: t.scope.stepsCtx.Done(), wrapAttempt: t.scope.writeOnlyInOpenBranch}
}

// SendSignal sends a signal to the run that ref names, as one attempt of a durable call in this scope. The caller sets Name, Key and
// Payload of the signal. If the signal has no key, SendSignal uses the unique key of the call. SendSignal returns ErrNotFound if the
// run does not exist, a *StateError if it has ended, ErrIDConflict if it has another signal with the key, and ErrEffectInterrupted if
// the calling run or its branch was ended or suspended during the call.
func (s *Scope) SendSignal(ctx context.Context, ref string, given *store.SignalWrite) error {
	t, err := stepTaskFromContext(ctx)
	if err != nil {
		return err
	}
	w := *given
	own := w.Key == ""
	if own {
		w.Key = t.uniqueCallKey()
	}
	writes, by := t.effectWriteContext(ctx)
	err = s.r.e.sendSignal(writes, by, ref, &w, s.r.noteSignalSent(time.Time{}))
	if own && w.Outcome == store.AlreadyRecorded {
		w.CreatedAt, err = w.ExistingSignal.CreatedAt, nil // an earlier attempt of this call sent the signal, and that signal counts
	}
	if last := s.r.noteSignalSent(w.CreatedAt); !last.IsZero() {
		t.minEndTime = last.UnixMicro()
	}
	return t.effectErrorOrSuspend("send signal", err)
}

// noteSignalSent notes that the run sent a signal at the given time, and returns the time of the latest signal
// that the run has sent.
func (r *run) noteSignalSent(at time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.After(r.latestSignalSentAt) {
		r.latestSignalSentAt = at
	}
	return r.latestSignalSentAt
}

// StartRun starts a root run, as one attempt of a durable call in this scope, and returns the ID of the new run. StartRun returns
// ErrIDConflict if another run has the ID, ErrInvalidConfig if the request is not valid, ErrQueueFull or ErrQueueClosed if the queue
// refuses the run, and ErrEffectInterrupted if the calling run or its branch was ended or suspended during the call.
func (s *Scope) StartRun(ctx context.Context, q StartRequest) (id string, err error) {
	t, err := stepTaskFromContext(ctx)
	if err != nil {
		return "", err
	}
	own := q.Name == ""
	if own {
		q.Name = t.r.deriveStartedRunName(t.name)
	}
	if q.StartKey != nil {
		started, err := t.executeStartWithStartKey(ctx, &q, own)
		if err == nil {
			err = started.Err
		}
		return started.Run.NameOrUUID(), t.effectErrorOrSuspend("start run", err)
	}
	writes, by := t.effectWriteContext(ctx)
	started, err := s.r.e.checkNamesAndStart(writes, by, []StartRequest{q})
	if err == nil {
		err = started[0].Err
		if own && started[0].Run.Workflow == q.Workflow {
			err = nil // an earlier attempt of this call started the run, and that run counts
		}
	}
	return q.Name, t.effectErrorOrSuspend("start run", err)
}

// CancelRun cancels a run, as one attempt of a durable call in this scope. CancelRun returns nil if the run has already ended. CancelRun
// returns ErrNotFound if the run does not exist, and ErrEffectInterrupted if the calling run or its branch was ended or suspended during
// the call.
func (s *Scope) CancelRun(ctx context.Context, id uuid.UUID, o *store.ControlRequest) error {
	t, err := stepTaskFromContext(ctx)
	if err != nil {
		return err
	}
	own := *o
	own.Runs = uuidList(id)
	writes, by := t.effectWriteContext(ctx)
	err = s.r.e.controlRuns(writes, by, &own)
	if err == nil && !own.Results[0].Found {
		err = notFoundError(id.String())
	}
	return t.effectErrorOrSuspend("cancel child", err)
}

// SetTags sets tags of this run, as one attempt of a durable call in this scope. SetTags returns ErrEffectInterrupted if the run or the
// branch was ended or suspended during the call.
func (s *Scope) SetTags(ctx context.Context, tags []store.Tag) error {
	t, err := stepTaskFromContext(ctx)
	if err != nil {
		return err
	}
	r := s.r
	writes, by := t.effectWriteContext(ctx)
	fenced := false
	err = r.e.retryUntilPatienceEnds(writes, by, func() error {
		return by.attemptWrite(func() error {
			there, err := r.e.store.SetTags(writes, r.row.UUID, tags, r.row.Epoch, store.ActorAndReason{})
			fenced = err == nil && !there
			return err
		})
	})
	if fenced {
		r.loseOwnership()
		return ErrEffectInterrupted
	}
	return t.effectErrorOrSuspend("set tags", err)
}

// Time returns the database's time as this process estimates it.
func (s *Scope) Time() time.Time { return s.r.e.clock.Now().Truncate(time.Microsecond) }

// NewUUID returns a UUIDv7 with the database's time. The last six bits of the new UUID, which hold the shard in the UUID of a run, are
// random.
func (s *Scope) NewUUID() uuid.UUID {
	random := uuid.New()
	return store.NewUUIDAt(store.ShardOf(random), s.Time())
}
