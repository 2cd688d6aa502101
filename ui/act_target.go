package ui

import (
	"net/http"
	"slices"

	"github.com/seed8ec063be/durable"
)

// The fields that name the target of an act. An act has exactly one of these fields.
const (
	paramTargetRun      = "run"
	paramTargetQueue    = "queue_name"
	paramTargetLimit    = "limit_name"
	paramTargetSchedule = "schedule"
	paramTargetWorker   = "worker"
)

// parseTarget returns the acts on the target of the form, and an Action that names the target. A form with two targets is refused: the act would be
// authorized for one of them and performed on the other.
func (f actForm) parseTarget() (acts map[string]actFunc, a Action, err error) {
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

// actionFields returns [Action.Fields].
func (f actForm) actionFields() map[string]string {
	fields := make(map[string]string)
	for name := range f.Values {
		if !payloadFields[name] && !slices.Contains(notActionFields, name) {
			fields[name] = f.Get(name)
		}
	}
	return fields
}

// notActionFields are the fields of an act that an [Action] has elsewhere.
var notActionFields = []string{"verb", paramTargetRun, paramTargetQueue, paramTargetLimit, paramTargetSchedule, paramTargetWorker}

// authorizeAct returns the actor of an act, or the error of a refusal. For an act on a schedule, Authorize decides by the runs that the schedule
// starts; for a reset, it also decides by the runs that the schedule would start afterwards.
func (v *requestView) authorizeAct(a Action) (string, error) {
	if a.Schedule == "" {
		return v.authorizeAction(v.request, a)
	}
	all, err := v.engine.Schedules(v.ctx())
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(all, func(i durable.ScheduleInfo) bool { return i.Name == a.Schedule })
	if at < 0 {
		return v.authorizeAction(v.request, a)
	}
	applies := []*durable.Schedule{&all[at].Schedule}
	if declared := all[at].Declared; declared != nil && a.Verb == "reset" {
		applies = append(applies, declared)
	}
	var actor string
	for _, s := range applies {
		a.Workflow, a.Queue, a.Tags = s.Workflow, s.Queue, s.Tags
		if actor, err = v.authorizeAction(v.request, a); err != nil {
			return "", err
		}
	}
	return actor, nil
}
