package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// The parameters of a filter in an address: those of the command, with underscores for dashes.
const (
	paramWorkflow    = "workflow"
	paramStatus      = "status" // several; also live and ended
	paramQueue       = "queue"
	paramKey         = "key"
	paramTag         = "tag" // key or key=value
	paramPrefix      = "id_prefix"
	paramPriority    = "priority" // several
	paramOlder       = "older_than"
	paramAfter       = "created_after"
	paramBefore      = "created_before"
	paramVersion     = "run_version"
	paramWorker      = "worker"
	paramEndedAfter  = "ended_after"
	paramEndedBefore = "ended_before"
	paramRoots       = "roots"
	paramHeld        = "held"
	paramParent      = "parent"      // the UUIDs of runs: their children
	paramFailureStep = "failed_step" // with the workflow: a group of failures
	paramFailureType = "failed_type"
	paramCursor      = "cursor"
	paramLimit       = "limit"
)

var filterParams = []string{paramWorkflow, paramStatus, paramQueue, paramKey, paramTag, paramPrefix, paramPriority, paramOlder, paramAfter, paramBefore, paramVersion, paramWorker, paramEndedAfter, paramEndedBefore, paramRoots, paramHeld, paramParent, paramFailureStep, paramFailureType}

// selectFilterParams returns the parameters of an address that are conditions of a filter, without empty ones. A condition that can only be
// true is "yes", or is left out.
func selectFilterParams(q url.Values) url.Values {
	kept := make(url.Values)
	for _, name := range filterParams {
		for _, value := range q[name] {
			switch {
			case slices.Contains(flagConditions, name) && (value == "no" || value == "false"):
				value = ""
			case slices.Contains(flagConditions, name) && value == "true":
				value = "yes"
			}
			if value != "" {
				kept.Add(name, value)
			}
		}
	}
	return kept
}

// parseFilter returns the filter that an address describes.
func parseFilter(q url.Values, now time.Time) (durable.Filter, error) {
	wrong := func(format string, args ...any) (durable.Filter, error) {
		return durable.Filter{}, &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
	}
	q = selectFilterParams(q)
	for name, values := range q {
		if len(values) > 1 && name != paramStatus && name != paramPriority && name != paramParent {
			return wrong("The filter has the condition %q %d times: give it once.", name, len(values))
		}
	}
	for _, name := range flagConditions {
		if text := q.Get(name); text != "" && text != "yes" {
			return wrong("The condition %q is %q: use yes or no.", name, text)
		}
	}
	tag, value, hasValue := strings.Cut(q.Get(paramTag), "=")
	if hasValue && (tag == "" || value == "") {
		return wrong("The tag %q is incomplete: write key or key=value.", q.Get(paramTag))
	}
	f := durable.Filter{
		Workflow: q.Get(paramWorkflow), Queue: q.Get(paramQueue), GroupKey: q.Get(paramKey), Tag: tag, TagValue: value,
		IDPrefix: q.Get(paramPrefix), Roots: q.Get(paramRoots) != "", Version: q.Get(paramVersion), Owner: q.Get(paramWorker), Held: q.Get(paramHeld) != "", Parent: q[paramParent],
	}
	if q.Has(paramFailureStep) || q.Has(paramFailureType) {
		if !q.Has(paramWorkflow) || !q.Has(paramFailureType) {
			return wrong("A group of failures has a workflow and a type of error: give %s and %s too.", paramWorkflow, paramFailureType)
		}
		f.Failure = durable.FailureKey{Workflow: f.Workflow, Step: q.Get(paramFailureStep), Type: q.Get(paramFailureType)}
		if f.Failure.Step == "-" { // as in the command: the function failed by itself
			f.Failure.Step = ""
		}
	}
	for _, s := range q[paramStatus] {
		switch group := wording.StatusGroups[s]; {
		case group != nil:
			f.Status = append(f.Status, group...)
		case slices.Contains(wording.Statuses, durable.Status(s)):
			f.Status = append(f.Status, durable.Status(s))
		default:
			return wrong("The status %q does not exist.", s)
		}
	}
	for _, text := range q[paramPriority] {
		n, err := strconv.Atoi(text)
		if err != nil {
			return wrong("The priority %q is no number: use -2 to 2.", text)
		}
		f.Priority = append(f.Priority, n)
	}
	var err error
	if text := q.Get(paramOlder); text != "" {
		if f.OlderThan, err = wording.ParseDuration(text); err != nil {
			return wrong("%v", err)
		}
	}
	for name, t := range timeFieldsByParam(&f) {
		if text := q.Get(name); text != "" {
			if *t, err = wording.ParseTime(text, now); err != nil {
				return wrong("%v", err)
			}
		}
	}
	return f, nil
}

// timeFieldsByParam returns the times of a filter by their parameters.
func timeFieldsByParam(f *durable.Filter) map[string]*time.Time {
	return map[string]*time.Time{paramAfter: &f.CreatedAfter, paramBefore: &f.CreatedBefore, paramEndedAfter: &f.EndedAfter, paramEndedBefore: &f.EndedBefore}
}

// searchTime is the default bound of the search of one page for runs that no index finds.
const searchTime = 100 * time.Millisecond

// parsePage returns the page that an address asks for.
func (v *requestView) parsePage(q url.Values, size int) (durable.Page, error) {
	p := durable.Page{Limit: size, Cursor: q.Get(paramCursor), MaxTime: v.searchTime}
	if text := q.Get(paramLimit); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return p, &statusError{http.StatusBadRequest, fmt.Sprintf("The limit %q is not between 1 and 1000.", text)}
		}
		p.Limit = n
	}
	return p, nil
}

// intersectFilters returns the filter of the runs that match both. It reports false if no run can.
func intersectFilters(f, g durable.Filter) (durable.Filter, bool) {
	some := true
	text := func(a *string, b string) {
		some = some && (*a == "" || b == "" || *a == b)
		if *a == "" {
			*a = b
		}
	}
	text(&f.Workflow, g.Workflow)
	text(&f.Queue, g.Queue)
	text(&f.GroupKey, g.GroupKey)
	text(&f.Version, g.Version)
	text(&f.Owner, g.Owner)
	text(&f.Tag, g.Tag)
	text(&f.TagValue, g.TagValue)
	some = some && (f.Failure == g.Failure || f.Failure == (durable.FailureKey{}) || g.Failure == (durable.FailureKey{}))
	if f.Failure == (durable.FailureKey{}) {
		f.Failure = g.Failure
	}
	switch {
	case strings.HasPrefix(g.IDPrefix, f.IDPrefix):
		f.IDPrefix = g.IDPrefix
	case !strings.HasPrefix(f.IDPrefix, g.IDPrefix):
		some = false
	}
	f.Status, some = commonValues(f.Status, g.Status, some)
	f.Priority, some = commonValues(f.Priority, g.Priority, some)
	f.RunID, some = commonValues(f.RunID, g.RunID, some)
	f.Parent, some = commonValues(f.Parent, g.Parent, some)
	f.OlderThan, f.Roots = max(f.OlderThan, g.OlderThan), f.Roots || g.Roots
	f.Held = f.Held || g.Held
	if g.CreatedAfter.After(f.CreatedAfter) {
		f.CreatedAfter = g.CreatedAfter
	}
	if f.CreatedBefore.IsZero() || !g.CreatedBefore.IsZero() && g.CreatedBefore.Before(f.CreatedBefore) {
		f.CreatedBefore = g.CreatedBefore
	}
	if g.EndedAfter.After(f.EndedAfter) {
		f.EndedAfter = g.EndedAfter
	}
	if f.EndedBefore.IsZero() || !g.EndedBefore.IsZero() && g.EndedBefore.Before(f.EndedBefore) {
		f.EndedBefore = g.EndedBefore
	}
	return f, some
}

// commonValues returns the values that are in both lists. An empty list stands for all values.
func commonValues[T comparable](a, b []T, some bool) ([]T, bool) {
	switch {
	case len(a) == 0:
		return b, some
	case len(b) == 0:
		return a, some
	}
	both := slices.DeleteFunc(slices.Clone(a), func(v T) bool { return !slices.Contains(b, v) })
	return both, some && len(both) > 0
}
