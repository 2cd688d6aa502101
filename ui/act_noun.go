package ui

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// named makes an act of a method that changes a queue, limit or schedule by its name.
func named(done string, call func(*durable.Engine, context.Context, string, ...durable.ControlOption) error) do {
	return func(ctx context.Context, e *durable.Engine, name string, _ form, opts []durable.ControlOption) (string, error) {
		return done, call(e, ctx, name, opts...)
	}
}

var queueActs = map[string]do{
	"pause":  named("the queue is paused", (*durable.Engine).PauseQueue),
	"resume": named("the queue is resumed", (*durable.Engine).ResumeQueue),
	"reset":  named("the settings of the code apply", (*durable.Engine).ResetQueue),
	"set": func(ctx context.Context, e *durable.Engine, name string, f form, opts []durable.ControlOption) (string, error) {
		queues, err := e.Queues(ctx)
		if err != nil {
			return "", err
		}
		var settings durable.QueueSettings // those that no field names stay
		for _, q := range queues {
			if q.Name == name {
				settings = q.Settings
			}
		}
		for field, number := range map[string]*int{
			"max_executing": &settings.MaxExecuting, "max_executing_per_worker": &settings.MaxExecutingPerWorker, "max_in_progress": &settings.MaxInProgress,
			"max_executing_per_key": &settings.MaxExecutingPerKey, "max_in_progress_per_key": &settings.MaxInProgressPerKey, "depth": &settings.Depth,
		} {
			if err := f.number(field, number); err != nil {
				return "", err
			}
		}
		if f.Has("closed") {
			settings.Closed = f.text("closed") == "yes"
		}
		if err := f.rate("rate", &settings.Rate.Count, &settings.Rate.Period, &settings.Rate.Burst); err != nil {
			return "", err
		}
		return "the queue is set", e.SetQueue(ctx, name, settings, opts...)
	},
}

var limitActs = map[string]do{
	"reset": named("the bounds of the code apply", (*durable.Engine).ResetLimit),
	"set": func(ctx context.Context, e *durable.Engine, name string, f form, opts []durable.ControlOption) (string, error) {
		limits, err := e.Limits(ctx)
		if err != nil {
			return "", err
		}
		var bounds durable.LimitBounds
		for _, l := range limits {
			if l.Name == name {
				bounds = l.LimitBounds
			}
		}
		if err := f.number("concurrent", &bounds.Concurrent); err != nil {
			return "", err
		}
		if err := f.rate("rate", &bounds.Rate, &bounds.Period, &bounds.Burst); err != nil {
			return "", err
		}
		return "the limit is set", e.SetLimit(ctx, name, bounds, opts...)
	},
}

var scheduleActs = map[string]do{
	"pause":  named("the schedule is paused", (*durable.Engine).PauseSchedule),
	"resume": named("the schedule is resumed", (*durable.Engine).ResumeSchedule),
	"reset":  named("the schedule of the code applies", (*durable.Engine).ResetSchedule),
	"trigger": func(ctx context.Context, e *durable.Engine, name string, _ form, _ []durable.ControlOption) (string, error) {
		id, err := e.TriggerSchedule(ctx, name)
		return "run " + id + " was started", err
	},
	"backfill": func(ctx context.Context, e *durable.Engine, name string, f form, _ []durable.ControlOption) (string, error) {
		now, err := e.Now(ctx)
		if err != nil {
			return "", err
		}
		var times [2]time.Time
		for i, field := range []string{"after", "before"} {
			var err error
			if times[i], err = wording.ParseTime(f.text(field), now); err != nil {
				return "", &problem{http.StatusBadRequest, err.Error()}
			}
		}
		done, err := e.Backfill(ctx, name, times[0], times[1])
		return wording.Count(done.Started, "run", "runs") + " started", err
	},
}

var workerActs = map[string]do{
	"quiet":  named("the worker is quiet from its next heartbeat on", (*durable.Engine).QuietWorker),
	"resume": named("the worker is resumed from its next heartbeat on", (*durable.Engine).ResumeWorker),
}

// number sets a number if the form has the field with a value.
func (f form) number(name string, to *int) error {
	text := f.text(name)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return &problem{http.StatusBadRequest, fmt.Sprintf("The field %q is %q: use a number, or 0 for no bound.", name, text)}
	}
	*to = n
	return nil
}

// rate sets a rate if the form has the field with a value: 10/s, 600/1h, or 0 for none.
func (f form) rate(name string, n *int, per *time.Duration, burst *int) error {
	text := f.text(name)
	if text == "" {
		return nil
	}
	count, period, err := wording.ParseRate(text)
	if err != nil {
		return &problem{http.StatusBadRequest, err.Error()}
	}
	if *n, *per = count, period; count == 0 {
		*burst = 0
	}
	return nil
}
