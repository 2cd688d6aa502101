package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// newActByName returns an act that calls a method that changes a queue, limit or schedule by its name.
func newActByName(done string, call func(*durable.Engine, context.Context, string, ...durable.ControlOption) error) actFunc {
	return func(ctx context.Context, e *durable.Engine, name string, _ actForm, opts []durable.ControlOption) (string, error) {
		return done, call(e, ctx, name, opts...)
	}
}

var queueActs = map[string]actFunc{
	"pause":  newActByName("the queue is paused", (*durable.Engine).PauseQueue),
	"resume": newActByName("the queue is resumed", (*durable.Engine).ResumeQueue),
	"reset":  newActByName("the settings of the code apply", (*durable.Engine).ResetQueue),
	"set": func(ctx context.Context, e *durable.Engine, name string, f actForm, opts []durable.ControlOption) (string, error) {
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
			if err := f.parseBoundInto(field, number); err != nil {
				return "", err
			}
		}
		if f.Has(paramClosed) {
			settings.Closed = f.Get(paramClosed) == "yes"
		}
		if err := f.parseRateInto("rate", "burst", &settings.Rate.Count, &settings.Rate.Period, &settings.Rate.Burst); err != nil {
			return "", err
		}
		if err := f.parseRateInto("rate_per_key", "burst_per_key", &settings.RatePerKey.Count, &settings.RatePerKey.Period, &settings.RatePerKey.Burst); err != nil {
			return "", err
		}
		return "the queue is set", e.SetQueue(ctx, name, settings, opts...)
	},
}

var limitActs = map[string]actFunc{
	"reset": newActByName("the bounds of the code apply", (*durable.Engine).ResetLimit),
	"set": func(ctx context.Context, e *durable.Engine, name string, f actForm, opts []durable.ControlOption) (string, error) {
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
		if err := f.parseBoundInto("concurrent", &bounds.Concurrent); err != nil {
			return "", err
		}
		if err := f.parseRateInto("rate", "burst", &bounds.Rate, &bounds.Period, &bounds.Burst); err != nil {
			return "", err
		}
		return "the limit is set", e.SetLimit(ctx, name, bounds, opts...)
	},
}

var scheduleActs = map[string]actFunc{
	"pause":  newActByName("the schedule is paused", (*durable.Engine).PauseSchedule),
	"resume": newActByName("the schedule is resumed", (*durable.Engine).ResumeSchedule),
	"reset":  newActByName("the schedule of the code applies", (*durable.Engine).ResetSchedule),
	"trigger": func(ctx context.Context, e *durable.Engine, name string, _ actForm, opts []durable.ControlOption) (string, error) {
		id, err := e.TriggerSchedule(ctx, name, opts...)
		return "run " + id + " was started", err
	},
	"backfill": func(ctx context.Context, e *durable.Engine, name string, f actForm, opts []durable.ControlOption) (string, error) {
		now, err := e.Now(ctx)
		if err != nil {
			return "", err
		}
		now = now.In(f.zone)
		var times [2]time.Time
		for i, field := range []string{"after", "before"} {
			var err error
			if times[i], err = wording.ParseTime(f.text(field), now); err != nil {
				return "", &statusError{http.StatusBadRequest, err.Error()}
			}
		}
		done, err := e.Backfill(ctx, name, times[0], times[1], opts...)
		return wording.Count(done.Started, "run", "runs") + " started", err
	},
}

var workerActs = map[string]actFunc{
	"quiet":  newActByName("the worker is quiet from its next heartbeat on", (*durable.Engine).QuietWorker),
	"resume": newActByName("the worker is resumed from its next heartbeat on", (*durable.Engine).ResumeWorker),
}

// parseBoundInto sets a bound if the form has the field with a value.
func (f actForm) parseBoundInto(name string, to *int) error {
	text := f.text(name)
	if text == "" {
		return nil
	}
	n, err := wording.ParseBound(text)
	if _, isNoNumber := errors.AsType[*strconv.NumError](err); isNoNumber {
		return &statusError{http.StatusBadRequest, fmt.Sprintf("The field %q is %q: use a number from 1, or none to remove the bound.", name, text)}
	}
	if err != nil {
		return &statusError{http.StatusBadRequest, fmt.Sprintf("The field %q is %q: %v.", name, text, err)}
	}
	*to = n
	return nil
}

// parseRateInto sets a rate if the form has the field with a value such as 10/s, 600/1h or none, and sets the burst if the form has the
// field of the burst.
func (f actForm) parseRateInto(name, burstName string, n *int, per *time.Duration, burst *int) error {
	if text := f.text(name); text != "" {
		count, period, err := wording.ParseRate(text)
		if err != nil {
			return &statusError{http.StatusBadRequest, fmt.Sprintf("The field %q: %v.", name, err)}
		}
		if *n, *per = count, period; count == 0 {
			*burst = 0
		}
	}
	text := f.text(burstName)
	if text == "" {
		return nil
	}
	most, err := strconv.Atoi(text)
	if err != nil || most < 0 {
		return &statusError{http.StatusBadRequest, fmt.Sprintf("The field %q is %q: use a number.", burstName, text)}
	}
	*burst = most
	return nil
}
