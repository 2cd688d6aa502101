package main

import (
	"context"
	"crypto/rand"
	"errors"
	random "math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable"
)

// The queues with settings.
const (
	boundedQueue = "bounded" // few runs execute at once; its bound changes, and it is paused at times
	orderedQueue = "ordered" // one run of a key is open at a time
	ratedQueue   = "rated"   // so many runs begin in a second
	renewedQueue = "renewed" // its settings are deleted and set again
)

const (
	mostExecuting  = 4 // the highest bound of queue bounded, at first
	laterExecuting = 2 // the highest one later
	mostOfKey      = 2 // runs of a key that execute at once in queue bounded
	ratedPerSecond = 10
	ratedBurst     = 2
)

// boundLowered is how long after it was lowered for the last time the bound of queue bounded holds at the latest: a process
// may be stopped or wait for the database while it sets the higher bound, and the runs that execute go on.
const boundLowered = 15 * time.Second

// settingsOf returns settings of the queues at a time; those of queue bounded are drawn.
func settingsOf(queue string, lowered time.Time, r *random.Rand) durable.QueueSettings {
	switch queue {
	case boundedQueue:
		n := laterExecuting - r.IntN(2)
		if time.Now().Before(lowered) {
			n = mostExecuting - r.IntN(2)
		}
		return durable.QueueSettings{MaxExecuting: n, MaxExecutingPerKey: mostOfKey}
	case ratedQueue:
		return durable.QueueSettings{Rate: durable.QueueRate{Count: ratedPerSecond, Period: time.Second, Burst: ratedBurst}}
	case orderedQueue:
		return durable.QueueSettings{MaxInProgressPerKey: 1}
	}
	return durable.QueueSettings{MaxExecuting: 2, MaxInProgress: 3, MaxInProgressPerKey: 1}
}

// queuedRun is the input of a run in a queue.
type queuedRun struct {
	Queue string `json:"queue"`
	Key   string `json:"key,omitzero"`
	Ms    int    `json:"ms,omitzero"`    // that its steps take
	Sleep int    `json:"sleep,omitzero"` // for how many milliseconds it sleeps
	Child bool   `json:"child,omitzero"` // it has a child in the same queue
	Undo  bool   `json:"undo,omitzero"`  // it has a compensation
}

// queued returns the workflow of the runs in queues. The ledger says when its function is called, and when it returns.
func queued(book *ledger) (w *durable.Workflow[queuedRun, int]) {
	w = durable.Define("queued", func(c *durable.Ctx, in queuedRun) (int, error) {
		e := entry{Kind: kindQueuedBegun, Run: c.RunID(), Exec: rand.Text(), Step: in.Queue, Value: in.Key}
		book.add(e)
		e.Kind = kindQueuedReturned
		defer book.add(e)
		work := func(name string) error {
			return c.Do(name, func(ctx context.Context) error { return sleepCtx(ctx, time.Duration(in.Ms)*time.Millisecond) }, durable.Retry(retryPolicy))
		}
		if in.Undo {
			if err := c.Compensate("undo", func(ctx context.Context) error { return sleepCtx(ctx, 20*time.Millisecond) }, durable.Retry(retryPolicy)); err != nil {
				return 0, err
			}
		}
		if err := work("before"); err != nil {
			return 0, err
		}
		if in.Sleep > 0 {
			if err := c.Sleep("sleep", time.Duration(in.Sleep)*time.Millisecond); err != nil {
				return 0, err
			}
		}
		if in.Child { // its key is that of its parent, whose place it needs to be open
			if _, err := c.Child("child", w, queuedRun{Queue: in.Queue, Ms: in.Ms}); err != nil {
				return 0, err
			}
		}
		return in.Ms, work("after")
	})
	return w
}

// queueTimes tells a process when it changes queues.
type queueTimes struct {
	Lowered time.Time `json:"lowered,omitzero"` // from when queue bounded has its lower bounds
	End     time.Time `json:"end,omitzero"`     // of the changes
}

// changeQueues changes settings of the queues bounded and renewed, and pauses and resumes the first, until ctx ends. Several
// processes do this at the same time.
func changeQueues(ctx context.Context, e *durable.Engine, book *ledger, times queueTimes) {
	ctx, cancel := context.WithDeadline(ctx, times.End)
	defer cancel()
	lowered := times.Lowered
	r := random.New(random.NewPCG(random.Uint64(), 1))
	for sleepCtx(ctx, time.Duration(400+r.IntN(1600))*time.Millisecond) == nil {
		switch r.IntN(6) {
		case 0, 1:
			pauseQueue(ctx, e, book, r)
		case 2:
			callQueue(ctx, book, askDelete, renewedQueue, func(ctx context.Context) error { return e.DeleteQueue(ctx, renewedQueue) })
		case 3:
			callQueue(ctx, book, askSet, renewedQueue, func(ctx context.Context) error {
				return e.SetQueue(ctx, renewedQueue, settingsOf(renewedQueue, lowered, r))
			})
		default:
			callQueue(ctx, book, askSet, boundedQueue, func(ctx context.Context) error {
				return e.SetQueue(ctx, boundedQueue, settingsOf(boundedQueue, lowered, r))
			})
		}
	}
}

// pauseQueue pauses queue bounded for a while.
func pauseQueue(ctx context.Context, e *durable.Engine, book *ledger, r *random.Rand) {
	callQueue(ctx, book, askPause, boundedQueue, func(ctx context.Context) error {
		return e.PauseQueue(ctx, boundedQueue, durable.Reason("soak"), durable.Actor("soak"))
	})
	_ = sleepCtx(ctx, time.Duration(300+r.IntN(900))*time.Millisecond) // a queue that stays paused is resumed by others
	for range 3 {
		if callQueue(ctx, book, askResume, boundedQueue, func(ctx context.Context) error { return e.ResumeQueue(ctx, boundedQueue) }) {
			return
		}
	}
}

// The verbs that the ledger has.
const (
	askSet    = "set"
	askDelete = "delete"
	askPause  = "pause"
	askResume = "resume"
	askCancel = "cancel"
)

// longestChange bounds one change of a queue.
const longestChange = 3 * time.Second

// callQueue makes a change of a queue, records it, and reports whether it succeeded. The database may be away.
func callQueue(ctx context.Context, book *ledger, verb, queue string, change func(context.Context) error) bool {
	x := entry{Kind: kindVerbCalled, Exec: rand.Text(), Step: verb, Value: queue}
	book.add(x)
	bounded, cancel := context.WithTimeout(ctx, longestChange)
	defer cancel()
	err := change(bounded)
	x.Kind = kindVerbReturned
	switch {
	case err == nil, errors.Is(err, durable.ErrNotFound):
		book.add(x)
	case errors.Is(err, durable.ErrUnavailable), errors.Is(err, durable.ErrLocked), bounded.Err() != nil: // it may take effect
	default:
		x.Err = err.Error()
		book.add(x)
	}
	return err == nil
}
