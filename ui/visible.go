package ui

import (
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
)

// The replies to requests for lists that [Visible] hides, because the content of these lists belongs to no single run.
var (
	errQueuesHidden    = &statusError{http.StatusForbidden, "Queues are not shown here, because the runs that you may see are not chosen by their queue."}
	errLimitsHidden    = &statusError{http.StatusForbidden, "Limits are not shown here, because you may not see all runs."}
	errSchedulesHidden = &statusError{http.StatusForbidden, "Schedules are not shown here, because the runs that you may see are not chosen by what a schedule has."}
	errWorkersHidden   = &statusError{http.StatusForbidden, "Workers are not shown here, because the runs that you may see are not chosen by their workflow or queue."}
	errCountsHidden    = &statusError{http.StatusForbidden, "The runs of a tree are not counted here, because you may not see all runs."}
	errNoRun           = &statusError{http.StatusNotFound, "There is no run with this ID that you may see."}
)

// hasLimitedVisibility reports whether the request may not see all runs.
func (v *requestView) hasLimitedVisibility() bool { return v.visible != nil }

// visibleFilter returns the filter of the runs that the request may see.
func (v *requestView) visibleFilter() durable.Filter {
	if v.visible == nil {
		return durable.Filter{}
	}
	if v.fixedVisible != nil {
		return *v.fixedVisible
	}
	return v.visible(v.request)
}

// restrictToVisible adds the conditions of [Visible] to a filter. It reports false if no run can match both.
func (v *requestView) restrictToVisible(f durable.Filter) (durable.Filter, bool) {
	if !v.hasLimitedVisibility() {
		return f, true
	}
	return intersectFilters(f, v.visibleFilter())
}

// mostChecked is how many runs are checked at once.
const mostChecked = 1000

// findVisibleRuns returns those of the runs with these UUIDs that the request may see, with the UUIDs of their parents. Texts that are no UUIDs are
// ignored. The database decides, so that a run is visible here if, and only if, a list shows it.
func (v *requestView) findVisibleRuns(ids []string) (parents map[string]string, err error) {
	parents = make(map[string]string, len(ids))
	var asked []string
	for _, id := range ids {
		if isUUID(id) {
			asked = append(asked, id)
		}
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	for part := range slices.Chunk(asked, mostChecked) {
		f, some := v.restrictToVisible(durable.Filter{RunID: part})
		if !some {
			continue
		}
		page, err := v.listRunsCached(f, durable.Page{Limit: mostChecked})
		if err != nil {
			return nil, err
		}
		for i := range page.Runs {
			parents[page.Runs[i].RunID] = page.Runs[i].Parent
		}
	}
	return parents, nil
}

func isUUID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

// hideInvisibleReferences removes from a run the fields that name other runs that the request may not see. It returns errNoRun if the request may not
// see the run itself.
func (v *requestView) hideInvisibleReferences(r *durable.RunInfo) error {
	if !v.hasLimitedVisibility() {
		return nil
	}
	visible, err := v.findVisibleRuns([]string{r.RunID, r.Parent})
	if err != nil {
		return err
	}
	if _, ok := visible[r.RunID]; !ok {
		return errNoRun
	}
	clearInvisibleParent(r, visible)
	if r.KeyWait != nil && r.KeyWait.Live != "" {
		if _, err := v.findRun(r.KeyWait.Live); err != nil { // it does not wait for a run: no recursion
			wait := *r.KeyWait
			wait.Live, wait.LiveStatus = "", ""
			r.KeyWait = &wait
		}
	}
	return nil
}

// hideInvisibleParents removes the parents that the request may not see from listed runs.
func (v *requestView) hideInvisibleParents(runs []durable.RunInfo) error {
	if !v.hasLimitedVisibility() {
		return nil
	}
	parents := make([]string, len(runs))
	for i := range runs {
		parents[i] = runs[i].Parent
	}
	visible, err := v.findVisibleRuns(parents)
	for i := range runs {
		clearInvisibleParent(&runs[i], visible)
	}
	return err
}

// clearInvisibleParent removes the parent of a run if the parent is not visible, and the name of the run, which comes from the parent.
func clearInvisibleParent(r *durable.RunInfo, visible map[string]string) {
	if _, ok := visible[r.Parent]; !ok {
		r.Parent, r.ParentGeneration, r.Name = "", 0, ""
	}
}

// visibleEvents returns the events of runs that the request may see. It includes events of deleted runs only if [Visible] has no other conditions
// than the workflow and Roots, because nothing else is known about deleted runs.
func (v *requestView) visibleEvents(all []durable.Event) ([]durable.Event, error) {
	if !v.hasLimitedVisibility() {
		return all, nil
	}
	var ids []string
	for i := range all {
		ids = append(ids, all[i].RunID, all[i].Old) // a fork names the run of which it is a copy
	}
	visible, err := v.findVisibleRuns(ids)
	if err != nil {
		return nil, err
	}
	hasParent, err := v.findVisibleRuns(slices.Collect(maps.Values(visible)))
	if err != nil {
		return nil, err
	}
	bound := v.visibleFilter()
	workflow, roots := bound.Workflow, bound.Roots
	bound.Workflow, bound.Roots = "", false
	told := reflect.ValueOf(bound).IsZero()
	all = slices.DeleteFunc(all, func(e durable.Event) bool {
		fits := told && e.RunID != "" && (workflow == "" || e.Workflow == workflow) && (!roots || e.Name == "") // a child has a name
		_, sees := visible[e.RunID]
		return !sees && !fits
	})
	for i := range all {
		e := &all[i]
		if _, sees := visible[e.Old]; isUUID(e.Old) && !sees {
			e.Old = ""
		}
		if _, sees := hasParent[visible[e.RunID]]; !sees { // the parent gave the run this name
			e.Name = ""
		}
	}
	return all, nil
}

// visibleQueues returns the queue that the filter of [Visible] names. If the filter has a group key, only the counts of this key are kept.
// If the filter has other further conditions, the keys of the queue are left out, because they may belong to hidden runs.
func (v *requestView) visibleQueues(all []durable.QueueInfo) ([]durable.QueueInfo, error) {
	if !v.hasLimitedVisibility() {
		return all, nil
	}
	bound := v.visibleFilter()
	if bound.Queue == "" {
		return nil, errQueuesHidden
	}
	all = slices.DeleteFunc(all, func(q durable.QueueInfo) bool { return q.Name != bound.Queue })
	key := bound.GroupKey
	bound.Queue, bound.GroupKey = "", ""
	others := !reflect.ValueOf(bound).IsZero()
	for i := range all {
		all[i].Keys = slices.DeleteFunc(slices.Clone(all[i].Keys), func(k durable.QueueKeyUse) bool { return k.Key != key && (others || key != "") })
	}
	return all, nil
}

// visibleSchedules returns the schedules whose runs the request may see.
func (v *requestView) visibleSchedules(all []durable.ScheduleInfo) ([]durable.ScheduleInfo, error) {
	if !v.hasLimitedVisibility() {
		return all, nil
	}
	bound := v.visibleFilter()
	rest := bound
	rest.Workflow, rest.Queue, rest.GroupKey, rest.Priority, rest.Tag, rest.TagValue, rest.Roots = "", "", "", nil, "", "", false
	if !reflect.ValueOf(rest).IsZero() {
		return nil, errSchedulesHidden
	}
	fits := func(s *durable.Schedule) bool {
		value, tagged := s.Tags[bound.Tag]
		return (bound.Workflow == "" || s.Workflow == bound.Workflow) && (bound.Queue == "" || s.Queue == bound.Queue) &&
			(bound.GroupKey == "" || s.GroupKey == bound.GroupKey) && (len(bound.Priority) == 0 || slices.Contains(bound.Priority, s.Priority)) &&
			(bound.Tag == "" || tagged && (bound.TagValue == "" || value == bound.TagValue))
	}
	all = slices.DeleteFunc(all, func(i durable.ScheduleInfo) bool { return !fits(&i.Schedule) })
	for i := range all {
		if s := all[i].Declared; s != nil && !fits(s) {
			all[i].Declared = nil
		}
	}
	return all, nil
}

// visibleWorkers returns the workers that execute runs which the request may see, without the names of other workflows and queues.
func (v *requestView) visibleWorkers(all []durable.WorkerInfo) ([]durable.WorkerInfo, error) {
	if !v.hasLimitedVisibility() {
		return all, nil
	}
	bound := v.visibleFilter()
	if bound.Workflow == "" && bound.Queue == "" {
		return nil, errWorkersHidden
	}
	only := func(names []string, name string) ([]string, bool) {
		switch {
		case name == "":
			return []string{}, true
		case names == nil || slices.Contains(names, name):
			return []string{name}, true
		}
		return nil, false
	}
	var fit []durable.WorkerInfo
	for _, w := range all {
		workflows, executes := only(w.Workflows, bound.Workflow)
		queues, claims := only(w.Queues, bound.Queue)
		if w.Workflows, w.Queues = workflows, queues; executes && claims {
			fit = append(fit, w)
		}
	}
	return fit, nil
}

// checkMayChange returns an error if [Visible] hides the queue, limit, schedule or worker that a form names.
func (v *requestView) checkMayChange(f actForm) error {
	switch {
	case !v.hasLimitedVisibility():
	case f.Has(paramTargetQueue) && f.Get(paramTargetQueue) != v.visibleFilter().Queue:
		return errQueuesHidden
	case f.Has(paramTargetLimit):
		return errLimitsHidden
	case f.Has(paramTargetWorker): // a worker also executes runs of others
		return &statusError{http.StatusForbidden, "Workers are not changed here, because you may not see all runs."}
	case f.Has(paramTargetSchedule):
		return v.checkMayReadSchedule(f.Get(paramTargetSchedule))
	}
	return nil
}

// checkMayReadSchedule returns an error if [Visible] hides the schedule.
func (v *requestView) checkMayReadSchedule(name string) error {
	if !v.hasLimitedVisibility() {
		return nil
	}
	all, err := v.scheduleList()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(i durable.ScheduleInfo) bool { return i.Name == name }) {
		return &statusError{http.StatusNotFound, "There is no schedule of this name that you may see."}
	}
	return nil
}
