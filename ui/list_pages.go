package ui

import (
	"context"
	"encoding/json/jsontext"
	"net/http"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// queueList, limitList, scheduleList and workerList return the queues, limits, schedules and workers that the request may see.
func (v *requestView) queueList() ([]durable.QueueInfo, error) {
	all, err := readCachedList(v, "queues", (*durable.Engine).Queues)
	if err != nil {
		return nil, err
	}
	return v.visibleQueues(all)
}

func (v *requestView) limitList() ([]durable.LimitInfo, error) {
	all, err := readCachedList(v, "limits", (*durable.Engine).Limits)
	if err == nil && v.hasLimitedVisibility() {
		return nil, errLimitsHidden
	}
	return all, err
}

func (v *requestView) scheduleList() ([]durable.ScheduleInfo, error) {
	all, err := readCachedList(v, "schedules", (*durable.Engine).Schedules)
	if err != nil {
		return nil, err
	}
	if all, err = v.visibleSchedules(all); err != nil {
		return nil, err
	}
	for i := range all {
		v.redactSchedule(&all[i])
	}
	return all, nil
}

// redactSchedule redacts the inputs and tags of a schedule.
func (v *requestView) redactSchedule(i *durable.ScheduleInfo) {
	redact := func(s *durable.Schedule) *durable.Schedule {
		if s == nil {
			return nil
		}
		_, err := v.authorizeAction(v.request, Action{Verb: VerbReadPayloads, Workflow: s.Workflow, Queue: s.Queue, Schedule: i.Name, Tags: s.Tags})
		d, own := &redactor{v.redact, s.Workflow, err == nil}, *s
		if input, ok := s.Input.(jsontext.Value); ok {
			d.redactPayload(FieldInput, "", &input)
			own.Input = input
		}
		own.Tags = make(map[string]string, len(s.Tags))
		for key, value := range s.Tags {
			d.redactText(FieldTag, key, &value)
			own.Tags[key] = value
		}
		return &own
	}
	i.Schedule, i.Declared, i.Set = *redact(&i.Schedule), redact(i.Declared), redact(i.Set)
}

func (v *requestView) workerList() ([]durable.WorkerInfo, error) {
	all, err := v.workersIncludingHidden()
	if err != nil {
		return nil, err
	}
	return v.visibleWorkers(all)
}

func (v *requestView) workersIncludingHidden() ([]durable.WorkerInfo, error) {
	return readCachedList(v, "workers", (*durable.Engine).Workers)
}

func readCachedList[T any](v *requestView, key string, read func(*durable.Engine, context.Context) ([]T, error)) ([]T, error) {
	if err := v.checkMayRead(Action{}); err != nil {
		return nil, err
	}
	all, _, err := readOncePerRoundOrPeriod(v, key, nounsPeriod, func(ctx context.Context) ([]T, error) { return read(v.engine, ctx) })
	return slices.Clone(all), err
}

// newListPage returns the page of queues, limits, schedules or workers.
func newListPage[T any](name, title string, read func(*requestView) ([]T, error)) pageFunc {
	return func(w http.ResponseWriter, r *http.Request, v *requestView) error {
		all, err := read(v)
		if err != nil {
			return err
		}
		return v.writePage(w, name, http.StatusOK, pageFrame{Title: title, Section: "/" + name, Notice: noticeAfterAct(r.URL.Query()), Live: true, Data: all})
	}
}

func (s *dashboard) queuesPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	return newListPage("queues", "Queues", (*requestView).queueList)(w, r, v)
}

func (s *dashboard) limitsPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	return newListPage("limits", "Limits", (*requestView).limitList)(w, r, v)
}

func (s *dashboard) schedulesPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	return newListPage("schedules", "Schedules", (*requestView).scheduleList)(w, r, v)
}

func (s *dashboard) workersPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	return newListPage("workers", "Workers", (*requestView).workerList)(w, r, v)
}

// eventsData is what the list of events shows.
type eventsData struct {
	Events []durable.Event
	Next   string // the address of the earlier events; empty: these are the first
}

// eventsPage lists the events before a cursor, the newest first.
func (s *dashboard) eventsPage(w http.ResponseWriter, r *http.Request, v *requestView) error {
	p, err := v.parsePage(r.URL.Query(), 100)
	if err != nil {
		return err
	}
	page, err := v.latestEvents(p)
	if err != nil {
		return err
	}
	d := &eventsData{Events: page.Events}
	if page.Next != "" {
		d.Next = "/events?cursor=" + page.Next
	}
	return v.writePage(w, "events", http.StatusOK, pageFrame{Title: "Events", Section: "/events", Data: d})
}

// IsWorkerDead reports whether a worker counts as dead: its heartbeat is older than its lease.
func (v *requestView) IsWorkerDead(w durable.WorkerInfo) bool { return wording.IsWorkerDead(v.at, &w) }

// HasLiveWorker reports whether one of the workers does not count as dead.
func (v *requestView) HasLiveWorker(workers []durable.WorkerInfo) bool {
	return slices.ContainsFunc(workers, func(w durable.WorkerInfo) bool { return !v.IsWorkerDead(w) })
}

// WorkerStateOf returns the state of a worker in words.
func (v *requestView) WorkerStateOf(w durable.WorkerInfo) string {
	return wording.WorkerState(v.at, &w)
}

// JoinNamesOr returns names in one line; if there are none, the text for all.
func (v *requestView) JoinNamesOr(names []string, all string) string {
	if names == nil {
		return all
	}
	return strings.Join(names, ", ")
}

// Percent returns what part of the whole a number is, from 0 to 100.
func (v *requestView) Percent(part, whole int) int {
	if whole <= 0 {
		return 0
	}
	return min(100*part/whole, 100)
}
