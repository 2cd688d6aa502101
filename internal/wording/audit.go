package wording

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
)

// Act is what an operator has done, as the database records it.
type Act struct {
	At       time.Time // of the request
	Verb     string    // as in "pause"
	Target   string    // run, queue, limit, schedule or worker
	Name     string    // the ID of the run, or the name of the other targets
	Workflow string    // of a run
	Actor    string
	Reason   string
	Old, New string // what the act has changed, before and after; see durable.Event
}

// eventVerbs are the verbs of the events that hold an actor and a reason.
var eventVerbs = map[durable.EventType]string{
	durable.EventMovedToQueue: "move", durable.EventPriorityChanged: "prioritize", durable.EventRepaired: "repair", durable.EventDeleted: "delete",
	durable.EventPaused: "pause", durable.EventResumed: "resume", durable.EventSignalled: "signal", durable.EventTagged: "tag", durable.EventTimeoutSet: "timeout",
	durable.EventCancelled: "cancel", durable.EventTriggered: "trigger", durable.EventBackfilled: "backfill",
	durable.EventQueueDeleted: "delete", durable.EventLimitDeleted: "delete", durable.EventScheduleDeleted: "delete",
}

// needsActor are the events of eventVerbs that are no acts without an actor and a reason: the run or the engine has caused them.
var needsActor = map[durable.EventType]bool{durable.EventRepaired: true, durable.EventPaused: true, durable.EventCancelled: true}

// deletedTargets are what the events of deletions are about, other than runs.
var deletedTargets = map[durable.EventType]string{
	durable.EventQueueDeleted: "queue", durable.EventLimitDeleted: "limit", durable.EventScheduleDeleted: "schedule",
}

// ChangeText returns what an event or an act has changed, in words.
func ChangeText(before, after string) string {
	if before == "" {
		return after
	}
	return before + " to " + cmp.Or(after, "-")
}

// RunIDsForActs returns the UUIDs of the runs that ActsOnRuns uses: those that events say were cancelled.
func RunIDsForActs(events []durable.Event) (ids []string) {
	for i := range events {
		if e := &events[i]; e.Type == durable.EventCancelled {
			ids = append(ids, e.RunID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ActsOnRuns returns the acts among events, in their order, with the deletions of queues, limits and schedules. The time of the
// request of a cancel, and whether it was a terminate, are recorded with the run only: for runs that are not given, such as deleted ones, an
// act has the time of the end and the verb cancel.
func ActsOnRuns(events []durable.Event, runs []durable.RunInfo) (acts []Act) {
	byID := make(map[string]*durable.RunInfo, len(runs))
	for i := range runs {
		byID[runs[i].RunID] = &runs[i]
	}
	for i := range events {
		e := &events[i]
		act := Act{At: e.At, Verb: eventVerbs[e.Type], Target: cmp.Or(deletedTargets[e.Type], "run"), Name: e.ID, Workflow: e.Workflow, Actor: e.Actor, Reason: e.Reason, Old: e.Old, New: e.New}
		run := byID[e.RunID]
		switch {
		case e.Type == durable.EventCancelled && run != nil && run.Cancellation != nil && run.Cancellation.Actor+run.Cancellation.Reason != "":
			act.At, act.Verb, act.Actor, act.Reason = run.Cancellation.At, "cancel", run.Cancellation.Actor, run.Cancellation.Reason
			if run.Err != nil && errors.Is(run.Err, durable.ErrTerminated) {
				act.Verb = "terminate"
			}
		case act.Verb == "" || needsActor[e.Type] && act.Actor+act.Reason == "":
			continue
		}
		acts = append(acts, act)
	}
	return acts
}

// LastActs returns what was done last to queues, limits, schedules and workers, the latest first.
func LastActs(queues []durable.QueueInfo, limits []durable.LimitInfo, schedules []durable.ScheduleInfo, workers []durable.WorkerInfo) (acts []Act) {
	add := func(target, name string, c *durable.OperatorChange) {
		if c != nil {
			acts = append(acts, Act{At: c.At, Verb: string(c.Verb), Target: target, Name: name, Actor: c.By, Reason: c.Reason})
		}
	}
	for i := range queues {
		add("queue", queues[i].Name, queues[i].LastChange)
	}
	for i := range limits {
		add("limit", limits[i].Name, limits[i].LastChange)
	}
	for i := range schedules {
		add("schedule", schedules[i].Name, schedules[i].LastChange)
	}
	for i := range workers {
		add("worker", workers[i].Name, workers[i].LastChange)
	}
	SortActs(acts)
	return acts
}

// SortActs sorts acts, the latest first.
func SortActs(acts []Act) {
	slices.SortStableFunc(acts, func(a, b Act) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Name, b.Name))
	})
}
