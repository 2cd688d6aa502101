package startkey

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Check is what a worker does for one key: it releases the run that waits when its time has come, tells
// which runs are to be cancelled, and deletes the row when nothing needs it any more.
type Check struct {
	Key store.StartKey
	Now time.Time
	// NeedsPlace reports whether a queue has settings, so that a run needs a place before it is claimed. Nil means none has.
	NeedsPlace func(queue string) bool

	// What Plan has decided:

	Cancels     []uuid.UUID // the caller cancels them, and checks the key again
	Released    uuid.UUID   // the run that is released
	NextCheckAt time.Time   // when the next check is due
	Err         error
}

// ChangeRequest returns the change of the row. If skip is true, it does not wait for another transaction that has
// locked the row.
func (l *Check) ChangeRequest(skip bool) *store.StartKeyChangeRequest {
	return &store.StartKeyChangeRequest{Key: l.Key, SkipLocked: skip, Plan: l.Plan, RunsToRead: func(row *store.StartKeyRow) []uuid.UUID {
		s, _ := decode(row) // Plan returns the error
		return s.runs()
	}}
}

// Plan decides what happens to the row.
func (l *Check) Plan(at store.StartKeySnapshot) *store.StartKeyWrite {
	l.Cancels, l.Released, l.NextCheckAt, l.Err = nil, uuid.Nil, time.Time{}, nil
	if at.Row == nil {
		return nil
	}
	s, err := decode(at.Row)
	if err != nil {
		l.Err = err
		return &store.StartKeyWrite{Row: l.later(at.Row)}
	}
	before := s
	input := at.Row.WaitingInput
	cancelRequested := func(id uuid.UUID) bool { return !isLive(at, id) || at.Runs[id].Control&store.CancelRequested != 0 }
	s.Cancels = slices.DeleteFunc(slices.Clone(s.Cancels), cancelRequested)
	l.Cancels = slices.Clone(s.Cancels)

	waits := isLiveAndUnstarted(at, s.Waiting)
	if !waits && s.Waiting != uuid.Nil { // it was cancelled while it waited
		if l.Key.Kind == store.StartKeyDebounce {
			s.Live = s.Waiting
		}
		s.Waiting, input = uuid.Nil, nil
	}
	var release *store.DelayedRunRelease
	switch {
	case !waits:
	case l.Key.Kind == store.StartKeySingleton && isLive(at, s.Live):
		if !cancelRequested(s.Live) {
			l.Cancels = append(l.Cancels, s.Live)
		}
	case l.Key.Kind == store.StartKeySingleton || s.Due <= micros(l.Now):
		release = l.release(at, &s, input)
		s.Live, s.Waiting, s.First, s.Due, s.Timeout, s.StartBy, input = s.Waiting, uuid.Nil, 0, 0, 0, 0, nil
	}
	if len(l.Cancels) > 0 {
		l.NextCheckAt = l.Now
		return nil // the row stays due until the cancels are recorded
	}
	var after uuid.UUID
	next := max(s.Stamp+KeepRowFor.Microseconds(), micros(l.Now)+1)
	switch {
	case s.Waiting != uuid.Nil && l.Key.Kind == store.StartKeySingleton:
		after, next = s.Live, micros(l.Now.Add(KeepRowFor))
	case s.Waiting != uuid.Nil:
		next = s.Due
	case release == nil && !isLive(at, s.Live) && s.Stamp+KeepRowFor.Microseconds() <= micros(l.Now) && s.isThrottleOver(l.Now):
		return &store.StartKeyWrite{Delete: true}
	case next <= micros(l.Now)+1:
		next = micros(l.Now.Add(KeepRowFor)) // the run is still live
	}
	l.NextCheckAt = time.UnixMicro(next)
	if release == nil && s.Waiting == before.Waiting && len(s.Cancels) == len(before.Cancels) && at.Row.CheckAt.Equal(l.NextCheckAt) {
		return nil
	}
	if release != nil {
		l.Released = release.RunUUID
	}
	return &store.StartKeyWrite{Row: s.row(l.Key, l.NextCheckAt, after, input), Release: release}
}

// isThrottleOver reports whether no start of a throttle counts any more.
func (s *state) isThrottleOver(now time.Time) bool {
	n := len(s.Starts)
	return n == 0 || s.Starts[n-1]+s.Period <= micros(now)
}

// release returns the release of the run that waits.
func (l *Check) release(at store.StartKeySnapshot, s *state, input []byte) *store.DelayedRunRelease {
	run := at.Runs[s.Waiting]
	due := time.UnixMicro(max(s.Due, micros(l.Now)))
	r := &store.DelayedRunRelease{
		RunUUID: s.Waiting, Queue: run.Queue, Priority: run.Priority, Lane: store.ClaimLaneOf(run.Queue, l.Key.Workflow, run.Version, run.Priority),
		WakeAt: due, Input: input,
	}
	if l.NeedsPlace != nil && l.NeedsPlace(run.Queue) {
		r.Lane = r.Lane.WithAdmission(store.AdmissionPending)
	}
	if l.Key.Kind == store.StartKeyDebounce {
		r.WakeAt = l.Now
	}
	if s.Timeout > 0 {
		r.Timeout = time.Duration(s.Timeout) * time.Microsecond
		r.Deadline = r.WakeAt.Add(r.Timeout)
	}
	if s.StartBy > 0 {
		r.StartBy = r.WakeAt.Add(time.Duration(s.StartBy) * time.Microsecond)
	}
	return r
}

// later returns a row that cannot be decoded, to be checked again in an hour.
func (l *Check) later(row *store.StartKeyRow) store.StartKeyRow {
	again := *row
	again.CheckAt = l.Now.Add(time.Hour)
	return again
}
