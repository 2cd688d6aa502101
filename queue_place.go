package durable

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// QueuePlace is the place of a run in a queue that has settings. [Engine.Get] returns the QueuePlace in [RunInfo].Place.
type QueuePlace struct {
	Queue    string
	GroupKey string // see [GroupKey]
	Weight   int    // see [KeyWeight]
	State    QueuePlaceState
	// Before is the number of runs that are in the line of the queue before this run, at most 10,000. In the state
	// PlaceBehindKey, Before counts only the runs with the same group key. A pause of the queue does not change Before.
	Before int
	// InProgress reports whether the run counts towards MaxInProgress and MaxInProgressPerKey. A root run that has begun counts
	// as in progress until it ends, even while the run waits, is paused or is held.
	InProgress bool
	Since      time.Time // when the run was first due; zero until a worker has seen that the run is due
	StartBy    time.Time // when the run expires if it has not begun; zero if the run was started without StartBy
	// QueuePaused reports whether the queue is paused. PausedAt, PausedBy and PauseReason say since when the queue has been
	// paused, who paused the queue, and why.
	QueuePaused bool
	PausedAt    time.Time
	PausedBy    string
	PauseReason string

	outsideReason string // why the state is PlaceOutside; empty: not known
}

// QueuePlaceState is the state of a run in its queue.
type QueuePlaceState string

// The states of a run in its queue.
const (
	PlaceOutside   QueuePlaceState = "outside"    // the run is not due or is paused, or no worker has seen yet that the run is due
	PlaceInLine    QueuePlaceState = "in line"    // the run waits for its turn
	PlaceBehindKey QueuePlaceState = "behind key" // the run waits because its group key has reached a bound, or behind other runs of the key
	PlaceExecuting QueuePlaceState = "executing"  // the run executes, or has its turn and waits until a worker claims it
	PlacePassing   QueuePlaceState = "passing"    // the run may execute without a turn, in order to end, because it was cancelled, has failed, or its time is over
)

var placeStates = map[store.PlaceState]QueuePlaceState{
	store.PlaceNotArrived: PlaceOutside, store.PlaceInLine: PlaceInLine, store.PlaceBehindKey: PlaceBehindKey,
	store.PlaceExecuting: PlaceExecuting, store.PlaceBypassed: PlacePassing,
}

// String describes the place of the run for people: for example, "waits for its turn in queue mail (key acme, 3 before it)".
func (p *QueuePlace) String() string {
	var notes []string
	if p.GroupKey != "" {
		notes = append(notes, "key "+p.GroupKey)
	}
	text := ""
	switch p.State {
	case PlaceInLine, PlaceBehindKey:
		text = "waits for its turn in queue " + p.Queue
		switch {
		case p.Before >= store.MaxRunsAhead:
			notes = append(notes, fmt.Sprintf("at least %d before it", p.Before))
		default:
			notes = append(notes, fmt.Sprintf("%d before it", p.Before))
		}
		switch {
		case p.State != PlaceBehindKey:
		case p.Before == 0:
			notes = append(notes, "its key has reached a bound")
		default:
			notes = append(notes, "behind others of its key")
		}
	case PlaceExecuting:
		text = "has a place in queue " + p.Queue
	case PlacePassing:
		text = "was let through by queue " + p.Queue
	default:
		text = "is outside of queue " + p.Queue
		if p.outsideReason != "" {
			notes = append(notes, p.outsideReason)
		}
	}
	if p.InProgress {
		notes = append(notes, "open")
	}
	if p.QueuePaused {
		paused := "the queue is paused"
		if p.PausedBy != "" {
			paused += " by " + p.PausedBy
		}
		if p.PauseReason != "" {
			paused += ": " + p.PauseReason
		}
		notes = append(notes, paused)
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// addQueuePlaceToInfo adds the place of a run that has not ended.
func (e *Engine) addQueuePlaceToInfo(ctx context.Context, r *store.Run, info *RunInfo) error {
	p, err := e.inner.Store().QueuePlaceOfRun(ctx, r.UUID)
	if err != nil || p == nil {
		return err
	}
	at := &QueuePlace{
		Queue: p.Queue, GroupKey: p.Key, Weight: int(p.Weight), State: placeStates[p.State], Before: p.RunsAhead, InProgress: p.Root && p.HasBegun,
		Since: p.ArrivedAt, StartBy: p.StartBy,
	}
	if p.Admission == store.AdmissionNotNeeded && p.State == store.PlaceNotArrived { // the queue has no settings, and the place only has a time
		at.Queue = r.Queue
	}
	if at.State == PlaceOutside {
		if at.outsideReason, err = e.explainWhyNotInLine(ctx, r, info.KeyWait); err != nil {
			return err
		}
	}
	queues, err := e.inner.Queues(ctx)
	if err != nil {
		return err
	}
	for i := range queues {
		if q := &queues[i]; q.Name == p.Queue && !q.PausedAt.IsZero() {
			at.QueuePaused, at.PausedAt, at.PausedBy, at.PauseReason = true, q.PausedAt, q.PausedBy, q.PauseReason
		}
	}
	info.Place = at
	return nil
}

// explainWhyNotInLine returns in words why a run that has not ended is neither in line nor executed.
func (e *Engine) explainWhyNotInLine(ctx context.Context, r *store.Run, key *KeyWait) (string, error) {
	now, err := e.inner.Now(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case r.Status == store.Paused:
		return "the run is paused", nil
	case r.Status == store.Waiting:
		return "the run has begun and waits", nil
	case r.Status != store.Pending:
		return "", nil
	case key != nil:
		return "it " + key.String(), nil
	case r.WakeAt.IsZero():
		return "it is about to be released or cancelled", nil
	case r.WakeAt.After(now.Add(time.Second)): // the clock of this process may be behind
		return "due at " + r.WakeAt.UTC().Format(time.RFC3339), nil
	}
	return "due, not yet seen by a worker", nil
}
