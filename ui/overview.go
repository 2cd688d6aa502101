package ui

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// Each of these reads is made at most once in a period, however many people look.
const (
	countsPeriod = 2 * time.Second
	nounsPeriod  = time.Second
)

// mostCounted bounds the runs that are counted of each status: an exact number of millions would burden the database.
const mostCounted = 1000

// statusNumber is how many runs have a status.
type statusNumber struct {
	Status durable.Status
	Runs   int
	More   bool // there are more than Runs
}

// Text returns the number as "1,000+".
func (n statusNumber) Text() string {
	text := grouped(n.Runs)
	if n.More {
		text += "+"
	}
	return text
}

// grouped returns a number with commas between thousands.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// statusCounts counts the visible runs by status.
func (v *view) statusCounts() ([]statusNumber, time.Time, error) {
	if err := v.mayRead(Action{}); err != nil {
		return nil, time.Time{}, err
	}
	bound, some := v.visibleAmong(durable.Filter{})
	if !some {
		return nil, v.at, nil
	}
	return cached(v.ctx(), v.read, fmt.Sprintf("counts %+v", bound), countsPeriod, func(ctx context.Context) (numbers []statusNumber, err error) {
		if !v.bounded() {
			counts, err := v.engine.StatusCounts(ctx)
			for _, c := range counts {
				numbers = append(numbers, statusNumber{c.Status, c.Runs, c.More})
			}
			return numbers, err
		}
		for _, status := range wording.Statuses {
			f, some := intersect(bound, durable.Filter{Status: []durable.Status{status}})
			if !some {
				continue
			}
			page, err := v.engine.List(ctx, f, durable.Page{Limit: mostCounted, MaxTime: v.searchTime})
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, statusNumber{status, len(page.Runs), page.Next != ""})
		}
		return numbers, nil
	})
}

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
	all, _, err := cached(v.ctx(), v.read, key, nounsPeriod, func(ctx context.Context) ([]T, error) { return read(v.engine, ctx) })
	return slices.Clone(all), err
}

// failureRow is a group of failures.
type failureRow struct {
	durable.FailureGroup
	Number, NewestID, Message string
	NewestAt                  time.Time
	after                     time.Time // the runs of the group were started after this time; zero: at any time
}

// Path returns the address of the runs of the group.
func (g *failureRow) Path() string {
	q := url.Values{paramWorkflow: {g.Workflow}, paramFailureStep: {g.Step}, paramFailureType: {g.Type}}
	if !g.after.IsZero() {
		q.Set(paramAfter, g.after.UTC().Format(time.RFC3339))
	}
	return "/runs?" + q.Encode()
}

// RetryPath returns the address of the preview that retries the runs of the group.
func (g *failureRow) RetryPath() string {
	_, query, _ := strings.Cut(g.Path(), "?")
	return "/bulk?" + paramVerb + "=retry&" + query
}

// failuresPeriod is how old the failures of the overview may be.
const failuresPeriod = 7 * 24 * time.Hour

// failures groups the visible runs that failed or expired.
func (v *view) failures(f durable.Filter) (rows []*failureRow, err error) {
	if err := v.mayRead(Action{Workflow: f.Workflow}); err != nil {
		return nil, err
	}
	f, some := v.visibleAmong(f)
	if !some {
		return nil, nil
	}
	f.CreatedAfter = f.CreatedAfter.Truncate(time.Minute) // so that requests share the read
	groups, _, err := cached(v.ctx(), v.read, fmt.Sprintf("failures %+v", f), countsPeriod, func(ctx context.Context) ([]durable.FailureGroup, error) {
		return v.engine.Failures(ctx, f)
	})
	for _, g := range groups {
		row := &failureRow{FailureGroup: g, Number: statusNumber{Runs: g.Runs, More: g.More}.Text(), NewestID: g.ID, NewestAt: g.Last, after: f.CreatedAfter}
		if e := (&redactor{f: v.redact, workflow: g.Workflow}).runError(g.Err); e != nil {
			row.Err, row.Message = e, e.Message
		}
		rows = append(rows, row)
	}
	return rows, err
}

// overviewData is what the overview shows.
type overviewData struct {
	Counts   []statusNumber
	CountsAt time.Time
	Oldest   time.Time // when the run was due that waits for the longest time in a queue with settings
	Queues   []durable.QueueInfo
	Workers  int
	Active   int
	Capacity int
	Versions []string
	Failures []*failureRow
	Newest   []durable.RunInfo
}

func (v *view) overviewData() (d *overviewData, err error) {
	d = new(overviewData)
	if d.Counts, d.CountsAt, err = v.statusCounts(); err != nil {
		return nil, err
	}
	if d.Queues, err = v.queueList(); err != nil && !errors.Is(err, errQueuesHidden) {
		return nil, err
	}
	for _, q := range d.Queues {
		if !q.OldestDue.IsZero() && (d.Oldest.IsZero() || q.OldestDue.Before(d.Oldest)) {
			d.Oldest = q.OldestDue
		}
	}
	workers, err := v.allWorkers()
	if err != nil {
		return nil, err
	}
	d.Workers = len(workers)
	for _, w := range workers { // their sums are shown to everybody
		d.Active, d.Capacity = d.Active+w.Active, d.Capacity+w.Capacity
	}
	if workers, err = v.visibleWorkers(workers); err != nil && !errors.Is(err, errWorkersHidden) {
		return nil, err
	}
	for _, w := range workers {
		if w.Version != "" && !slices.Contains(d.Versions, w.Version) {
			d.Versions = append(d.Versions, w.Version)
		}
	}
	if d.Failures, err = v.failures(durable.Filter{CreatedAfter: v.at.Add(-failuresPeriod)}); err != nil {
		return nil, err
	}
	newest, err := v.list(durable.Filter{Roots: true}, durable.Page{Limit: 10, MaxTime: v.searchTime})
	d.Newest = newest.Runs
	return d, err
}

func (s *server) overview(w http.ResponseWriter, r *http.Request, v *view) error {
	d, err := v.overviewData()
	if err != nil {
		return err
	}
	return v.show(w, "overview", http.StatusOK, frame{Title: "Overview", Section: "/", Live: true, Data: d})
}
