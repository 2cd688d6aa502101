package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// A run that signals or starts another one, or cancels a child, makes two writes: the effect, and then
// the row of the call. They cannot be one transaction, since the other run may be on another node, and
// since what the row holds follows from what the effect met. So the effect has an identity that follows
// from the call alone: a signal has a key, a run has an ID. An execution that finds no row makes the
// effect again, and finds that it is there:
//
//   - The process died before the effect: it is made now.
//   - The process died between both, or never had the answer: the key, or the ID, is found, also if the
//     other run has ended meanwhile. What was sent or started first holds.
//   - The process was superseded: it made the effect under the same key, or ID, as its successor.
//
// The calls are steps whose function is the engine's: they leave a started marker if they take long, for
// example since another transaction holds the other run's row.

// ErrLeft is returned by an effect when its run, or its branch, left over it: nothing is recorded then.
var ErrLeft = errors.New("durable: the run left over a call")

// effectTask is the call whose attempt the context belongs to.
func effectTask(ctx context.Context) (*task, error) {
	t, ok := ctx.Value(attemptKey{}).(*task)
	if !ok {
		return nil, errors.New("durable: an effect outside of an attempt")
	}
	return t, nil
}

// identity is a text that this call has in every execution, and no other call of any run. It is no
// text that a user can give.
func (t *task) identity() string { return separator + t.r.row.ID.String() + separator + t.name }

// startID is the ID of a run that the call starts without another one: the run's UUID and the call's
// name, or a hash of that if it is too long to be an ID.
func (t *task) startID() string {
	id := t.r.row.ID.String() + ":"
	name := Shown(t.name)
	if len(id)+len(name) > MaxName {
		sum := sha256.Sum256([]byte(t.name))
		name = hex.EncodeToString(sum[:])
	}
	return id + name
}

// unended wraps a write that must not come after a choice which ends the branch of the scope: the
// choice waits for the write, or the write is not made.
func (s *Scope) unended(write writeFunc) writeFunc {
	if s.branch == nil {
		return write
	}
	return func(j journal.Writer) (*store.Outcome, error) {
		s.branch.hold()
		defer s.branch.release()
		if s.branchLeft() != nil {
			return nil, ErrLeft
		}
		return write(j)
	}
}

// settle says what an error of an effect means: the target's or the value's, which the call records, or
// one of the database's, over which the run leaves.
func (t *task) settleEffect(what string, err error) error {
	var state *StateError
	switch {
	case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrIDConflict), errors.Is(err, ErrInvalidName), errors.As(err, &state):
		return err
	case errors.Is(err, store.ErrBadData):
		return err
	case errors.Is(err, ErrLeft), t.s.left() != nil:
		return ErrLeft
	}
	t.r.unwritten(what, t.name, err)
	return ErrLeft
}

// effectContext is what an effect is written with: each write is let come to its end, so that its outcome
// is known, and none is retried when the call is to end.
func (t *task) effectContext(ctx context.Context) (writes context.Context, by caller) {
	return context.WithoutCancel(ctx), caller{over: t.s.work.Done(), around: t.s.unended}
}

// SendSignal sends the signal, of which Name, Key and Payload are given, in an attempt of a call of this
// scope. One without a key gets that of the call. It returns ErrNotFound, *StateError, ErrIDConflict, or
// ErrLeft.
func (s *Scope) SendSignal(ctx context.Context, ref string, given *store.Signal) error {
	t, err := effectTask(ctx)
	if err != nil {
		return err
	}
	w := *given
	own := w.Key == ""
	if own {
		w.Key = t.identity()
	}
	writes, by := t.effectContext(ctx)
	err = s.r.e.signal(writes, by, ref, &w, s.r.lastSent(time.Time{}))
	if own && w.Outcome == store.Adopted {
		w.CreatedAt, err = w.Existing.CreatedAt, nil // this call has sent it: what it sent holds
	}
	if last := s.r.lastSent(w.CreatedAt); !last.IsZero() {
		t.endsAfter = last.UnixMicro()
	}
	return t.settleEffect("send signal", err)
}

// lastSent is the time of the latest signal that the run has sent, of this one too.
func (r *run) lastSent(at time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.After(r.sent) {
		r.sent = at
	}
	return r.sent
}

// StartRun starts a root run in an attempt of a call of this scope, and returns its ID. It returns
// ErrIDConflict, or ErrLeft.
func (s *Scope) StartRun(ctx context.Context, q StartRequest) (id string, err error) {
	t, err := effectTask(ctx)
	if err != nil {
		return "", err
	}
	own := q.Name == ""
	if own {
		q.Name = t.startID()
	}
	writes, by := t.effectContext(ctx)
	started, err := s.r.e.startUnlessUsurped(writes, by, []StartRequest{q})
	if err == nil {
		err = started[0].Err
		if own && started[0].Run.Workflow == q.Workflow {
			err = nil // this call has started it: what it started holds
		}
	}
	return q.Name, t.settleEffect("start run", err)
}

// CancelRun cancels a run in an attempt of a call of this scope. That it has ended is no error. It returns
// ErrNotFound, or ErrLeft.
func (s *Scope) CancelRun(ctx context.Context, id uuid.UUID, o *store.Order) error {
	t, err := effectTask(ctx)
	if err != nil {
		return err
	}
	own := *o
	own.Runs = ids(id)
	writes, by := t.effectContext(ctx)
	err = s.r.e.order(writes, by, &own)
	if err == nil && !own.Results[0].Found {
		err = notFound(id.String())
	}
	return t.settleEffect("cancel child", err)
}

// SetTags sets tags of the run itself in an attempt of a call of this scope. It returns ErrLeft if the run
// left over it.
func (s *Scope) SetTags(ctx context.Context, tags []store.Tag) error {
	t, err := effectTask(ctx)
	if err != nil {
		return err
	}
	r := s.r
	writes, by := t.effectContext(ctx)
	fenced := false
	err = r.e.patiently(writes, by, func() error {
		_, err := by.wrap(func(journal.Writer) (*store.Outcome, error) {
			there, err := r.e.store.Tag(writes, r.row.ID, tags, r.row.Epoch)
			fenced = err == nil && !there
			return nil, err
		})(nil)
		return err
	})
	if fenced {
		r.lose()
		return ErrLeft
	}
	return t.settleEffect("set tags", err)
}

// Time is the database's time, as this process measures it.
func (s *Scope) Time() time.Time { return s.r.e.clock.now().Truncate(time.Microsecond) }

// NewUUID makes a UUIDv7 of the database's time. Its last bits are random, as those of no run need be.
func (s *Scope) NewUUID() uuid.UUID {
	random := uuid.New()
	return store.IDAt(store.ShardOf(random), s.Time())
}
