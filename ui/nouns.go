package ui

import (
	"context"
	"encoding/json/jsontext"
	"net/http"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable"
)

// queueList, limitList, scheduleList and workerList return what the request may see.
func (v *view) queueList() ([]durable.QueueInfo, error) {
	all, err := listed(v, "queues", (*durable.Engine).Queues)
	if err != nil {
		return nil, err
	}
	return v.visibleQueues(all)
}

func (v *view) limitList() ([]durable.LimitInfo, error) {
	all, err := listed(v, "limits", (*durable.Engine).Limits)
	if err == nil && v.bounded() {
		return nil, errLimitsHidden
	}
	return all, err
}

func (v *view) scheduleList() ([]durable.ScheduleInfo, error) {
	all, err := listed(v, "schedules", (*durable.Engine).Schedules)
	if err != nil {
		return nil, err
	}
	if all, err = v.visibleSchedules(all); err != nil {
		return nil, err
	}
	for i := range all {
		v.hideSchedule(&all[i])
	}
	return all, nil
}

// hideSchedule redacts the inputs and tags of a schedule.
func (v *view) hideSchedule(i *durable.ScheduleInfo) {
	redact := func(s *durable.Schedule) *durable.Schedule {
		if s == nil {
			return nil
		}
		_, err := v.permit(v.request, Action{Verb: VerbReadPayloads, Workflow: s.Workflow, Queue: s.Queue, Schedule: i.Name, Tags: s.Tags})
		d, own := &redactor{v.redact, s.Workflow, err == nil}, *s
		if input, ok := s.Input.(jsontext.Value); ok {
			d.payload(FieldInput, "", &input)
			own.Input = input
		}
		own.Tags = make(map[string]string, len(s.Tags))
		for key, value := range s.Tags {
			d.text(FieldTag, key, &value)
			own.Tags[key] = value
		}
		return &own
	}
	i.Schedule, i.Declared, i.Set = *redact(&i.Schedule), redact(i.Declared), redact(i.Set)
}

func (v *view) workerList() ([]durable.WorkerInfo, error) {
	all, err := v.allWorkers()
	if err != nil {
		return nil, err
	}
	return v.visibleWorkers(all)
}

func (v *view) allWorkers() ([]durable.WorkerInfo, error) {
	return listed(v, "workers", (*durable.Engine).Workers)
}

func listed[T any](v *view, key string, read func(*durable.Engine, context.Context) ([]T, error)) ([]T, error) {
	if err := v.mayRead(Action{}); err != nil {
		return nil, err
	}
	all, _, err := sharedFor(v, key, nounsPeriod, func(ctx context.Context) ([]T, error) { return read(v.engine, ctx) })
	return slices.Clone(all), err
}

// nouns makes the page of queues, limits, schedules or workers.
func nouns[T any](name, title string, read func(*view) ([]T, error)) page {
	return func(w http.ResponseWriter, r *http.Request, v *view) error {
		all, err := read(v)
		if err != nil {
			return err
		}
		return v.show(w, name, http.StatusOK, frame{Title: title, Section: "/" + name, Notice: notice(r.URL.Query()), Live: true, Data: all})
	}
}

func (s *server) queues(w http.ResponseWriter, r *http.Request, v *view) error {
	return nouns("queues", "Queues", (*view).queueList)(w, r, v)
}

func (s *server) limits(w http.ResponseWriter, r *http.Request, v *view) error {
	return nouns("limits", "Limits", (*view).limitList)(w, r, v)
}

func (s *server) schedules(w http.ResponseWriter, r *http.Request, v *view) error {
	return nouns("schedules", "Schedules", (*view).scheduleList)(w, r, v)
}

func (s *server) workers(w http.ResponseWriter, r *http.Request, v *view) error {
	return nouns("workers", "Workers", (*view).workerList)(w, r, v)
}

// eventsData is what the list of events shows.
type eventsData struct {
	Events []durable.Event
	Next   string // the address of the earlier events; empty: these are the first
}

// events lists the events before a cursor, the newest first.
func (s *server) events(w http.ResponseWriter, r *http.Request, v *view) error {
	p, err := v.parsePage(r.URL.Query(), 100)
	if err != nil {
		return err
	}
	all, next, err := v.eventList(p, v.engine.LatestEvents)
	if err != nil {
		return err
	}
	d := &eventsData{Events: all}
	if next != "" {
		d.Next = "/events?cursor=" + next
	}
	return v.show(w, "events", http.StatusOK, frame{Title: "Events", Section: "/events", Data: d})
}

// Late reports whether the heartbeat of a worker is old.
func (v *view) Late(w durable.WorkerInfo) bool { return v.at.Sub(w.HeartbeatAt).Seconds() > 10 }

// NamesOr returns names in one line; if there are none, the text for all.
func (v *view) NamesOr(names []string, all string) string {
	if names == nil {
		return all
	}
	return strings.Join(names, ", ")
}

// Share returns what part of the whole a number is, from 0 to 100.
func (v *view) Share(part, whole int) int {
	if whole <= 0 {
		return 0
	}
	return min(100*part/whole, 100)
}
