package durable

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// InQueue sets the queue in which the run waits for a worker, in place of the workflow's [Queue]. A queue need not be created:
// a start can use any name, for example one queue per tenant. A worker serves all queues, unless its Config.Queues names some
// queues. A child without InQueue waits in the queue of its workflow, if the workflow is defined with [Queue], and otherwise in
// the queue of its parent. The name of a queue is a text of 1 to 512 bytes without control characters.
func InQueue(name string) StartOption {
	return func(o *startOptions) {
		o.addOptionOnce(optionQueue, "InQueue")
		o.queue = name
		o.setFirstError(naming.Check("queue", name))
	}
}

// The range of [Priority].
const (
	LowestPriority  = store.LowestPriority  // -2
	HighestPriority = store.HighestPriority // 2
)

// Priority sets the priority of the run, from [LowestPriority] to [HighestPriority]. The default priority is 0; a child has the
// priority of its parent by default. A start with a Priority outside of this range returns [ErrInvalidConfig].
//
// A worker claims the due runs of all its queues in the order of their priorities, the highest first. Among the runs of one
// priority, a worker claims the runs of one queue and workflow together; each claim begins with a random queue and workflow.
// Among the runs of one queue, workflow and priority, the run that has been due the longest comes first. A run that was claimed
// keeps its slot: a run of a higher priority waits until a slot is free. As long as runs of a higher priority are always due,
// runs of a lower priority are not executed.
func Priority(n int) StartOption {
	return func(o *startOptions) {
		o.addOptionOnce(optionPriority, "Priority")
		if err := checkPriority(n); err != nil {
			o.setFirstError(err)
			return
		}
		o.priority = new(int16(n))
	}
}

func checkPriority(n int) error {
	if n < LowestPriority || n > HighestPriority {
		return fmt.Errorf("%w: Priority of %d: it must be from %d to %d", ErrInvalidConfig, n, LowestPriority, HighestPriority)
	}
	return nil
}
