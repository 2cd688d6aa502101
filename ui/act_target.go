package ui

import "net/http"

// The fields that name the target of an act. An act has one of them.
const (
	paramTargetRun      = "run"
	paramTargetQueue    = "queue_name"
	paramTargetLimit    = "limit_name"
	paramTargetSchedule = "schedule"
	paramTargetWorker   = "worker"
)

// target returns the acts on the target of the form, and an Action that names the target. A form with two targets is refused: the act would be
// authorized for one of them and performed on the other.
func (f actForm) target() (acts map[string]actFunc, a Action, err error) {
	found := 0
	for _, t := range []struct {
		field string
		name  *string
		acts  map[string]actFunc
	}{
		{paramTargetRun, &a.Run, runActs},
		{paramTargetQueue, &a.Queue, queueActs},
		{paramTargetLimit, &a.Limit, limitActs},
		{paramTargetSchedule, &a.Schedule, scheduleActs},
		{paramTargetWorker, &a.Worker, workerActs},
	} {
		if f.Has(t.field) {
			found += len(f.Values[t.field])
			*t.name, acts = f.Get(t.field), t.acts
		}
	}
	if found != 1 {
		return nil, a, &statusError{http.StatusBadRequest, "An act has one target: give one of the fields run, queue_name, limit_name, schedule and worker, once."}
	}
	return acts, a, nil
}
