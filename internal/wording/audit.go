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
	Old, New string // the queue, the priority or the generation of the run, before and after
}

// eventVerbs are the verbs of the events that hold an actor and a reason.
var eventVerbs = map[durable.EventType]string{
	durable.EventMovedToQueue: "move", durable.EventPriorityChanged: "prioritize", durable.EventRepaired: "repair", durable.EventDeleted: "delete",
}

// clockTolerance is how much earlier than a pause its event may be: the process that pauses a run and the worker that records the
// event each estimate the database's clock.
const clockTolerance = time.Second

// RunIDsForActs returns the UUIDs of the runs that ActsOnRuns needs: those that events say were paused or cancelled.
func RunIDsForActs(events []durable.Event) (ids []string) {
	for i := range events {
		if e := &events[i]; e.Type == durable.EventPaused || e.Type == durable.EventCancelled {
			ids = append(ids, e.RunID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ActsOnRuns returns the acts among events, in their order. The actor of a pause and of a cancel is recorded with the run only, so it
// is that of the last pause, and runs that are not given have none.
func ActsOnRuns(events []durable.Event, runs []durable.RunInfo) (acts []Act) {
	byID := make(map[string]*durable.RunInfo, len(runs))
	for i := range runs {
		byID[runs[i].RunID] = &runs[i]
	}
	for i := range events {
		e := &events[i]
		act := Act{At: e.At, Verb: eventVerbs[e.Type], Target: "run", Name: e.ID, Workflow: e.Workflow, Actor: e.Actor, Reason: e.Reason, Old: e.Old, New: e.New}
		run := byID[e.RunID]
		switch {
		case e.Type == durable.EventPaused && run != nil && run.Status == durable.StatusPaused && run.PausedBy != "" && !run.PausedAt.After(e.At.Add(clockTolerance)):
			act.Verb, act.Actor, act.Reason = "pause", run.PausedBy, run.Reason
			delete(byID, e.RunID) // the events are the newest first: earlier pauses are no longer recorded
		case e.Type == durable.EventCancelled && run != nil && run.Cancellation != nil && run.Cancellation.Actor+run.Cancellation.Reason != "":
			act.At, act.Verb, act.Actor, act.Reason = run.Cancellation.At, "cancel", run.Cancellation.Actor, run.Cancellation.Reason
			if run.Err != nil && errors.Is(run.Err, durable.ErrTerminated) {
				act.Verb = "terminate"
			}
		case act.Verb == "" || e.Type == durable.EventRepaired && act.Actor+act.Reason == "": // the run has retried itself
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
