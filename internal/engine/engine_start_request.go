package engine

import (
	"time"

	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// StartRequest is a request to start one run.
type StartRequest struct {
	Name     string // the caller's ID; empty: the run's UUID becomes its name
	Workflow string
	Queue    string // empty, of a child: the queue of the parent
	Priority *int16 // nil: the priority of the parent, or zero for a root
	Input    []byte
	Timeout  time.Duration // from the time at which the run may begin; zero: none
	Delay    time.Duration // how long the run waits before it may begin
	Detached bool          // the child continues when its parent ends
	Tags     []store.Tag
	StartKey *startkey.Spec // not nil: the start has a start key, see StartWithStartKey
	GroupKey string         // needs a queue with settings; a child in its parent's queue inherits the parent's group key
	Weight   int32          // of the group key; zero: 1
	StartBy  time.Duration  // the run expires if it has not begun within StartBy after it was due; zero: never

	isChild          bool  // it is not refused by a full or closed queue
	inheritsGroupKey bool  // the group key is the parent's
	hasQueueRow      bool  // the queue has a row; see Engine.MarkStartsNeedingQueuePlace
	queueRefusal     error // why the queue accepts no further run; only for a start with a start key
}

// priority returns the priority of the run, unless it inherits one.
func (q *StartRequest) priority() int16 {
	if q.Priority == nil {
		return 0
	}
	return *q.Priority
}
