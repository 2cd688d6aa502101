package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of durable's instruments and tracer.
const scope = "github.com/seed8ec063be/durable"

// Telemetry records the logs, metrics and spans of one engine. Create it with New.
type Telemetry struct {
	Log    *slog.Logger
	Tracer trace.Tracer

	started    metric.Int64Counter
	ended      metric.Int64Counter
	recovered  metric.Int64Counter
	active     metric.Int64UpDownCounter
	leasesLost metric.Int64Counter
	retries    metric.Int64Counter
	timedOut   metric.Int64Counter
	duration   metric.Float64Histogram
	latency    metric.Float64Histogram
	step       metric.Float64Histogram
	permit     metric.Float64Histogram
	flush      metric.Float64Histogram
	batch      metric.Int64Histogram
	payload    metric.Int64Histogram
	fired      metric.Int64Counter
	lateness   metric.Float64Histogram
	queue      metric.Int64Gauge
	oldestDue  metric.Float64Gauge
	labels     stepLabels
	meters     metric.MeterProvider
}

// Meters returns the provider of the instruments.
func (t *Telemetry) Meters() metric.MeterProvider { return t.meters }

// New creates the instruments. If log is nil, nothing is logged; if a provider is nil, New uses the
// global provider of OpenTelemetry. stepNames limits the number of step names of each workflow in
// metrics; if it is zero, metrics have no durable.step.name.
func New(log *slog.Logger, tp trace.TracerProvider, mp metric.MeterProvider, stepNames int) (*Telemetry, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if tp == nil {
		tp = otel.GetTracerProvider()
	}
	if mp == nil {
		mp = otel.GetMeterProvider()
	}
	t := &Telemetry{Log: log, Tracer: tp.Tracer(scope), labels: stepLabels{limit: stepNames}, meters: mp}
	m := instruments{meter: mp.Meter(scope)}
	t.started = m.counter("durable.run.started", "{run}", "Runs created by this process.")
	t.ended = m.counter("durable.run.ended", "{run}", "Runs ended by this process, by outcome.")
	t.recovered = m.counter("durable.run.recovered", "{run}", "Runs that this process took over after another worker lost its lease.")
	t.leasesLost = m.counter("durable.lease.lost", "{lease}", "Leases that this process lost while it executed the run.")
	t.retries = m.counter("durable.step.retries", "{attempt}", "Attempts of steps after the first attempt.")
	t.timedOut = m.counter("durable.wait.timed_out", "{wait}", "Waits for a signal that timed out, by the consequence.")
	t.active = m.upDown("durable.run.active", "{run}", "Runs that this process executes.")
	t.duration = m.seconds("durable.run.duration", "Time from the start of a run to its end.", runSeconds)
	t.latency = m.seconds("durable.run.schedule_latency", "Time from when a run was due to the begin of its execution.", latencySeconds)
	t.step = m.seconds("durable.step.duration", "Duration of an attempt of a step.", stepSeconds)
	t.permit = m.seconds("durable.limit.wait", "Time that an attempt of a step waited for a permit of its limit.", latencySeconds)
	t.flush = m.seconds("durable.journal.flush.duration", "Duration of a flush of the journal.", flushSeconds)
	t.batch = m.sizes("durable.journal.flush.items", "{item}", "Items in a flush of the journal.", flushItems)
	t.payload = m.sizes("durable.journal.flush.size", "By", "Size of the encoded payloads in a flush of the journal.", flushBytes)
	t.fired = m.counter("durable.schedule.fired", "{fire}", "Scheduled times that this process decided, by outcome.")
	t.lateness = m.seconds("durable.schedule.lateness", "Time from a scheduled time to the start of its run, jitter included.", latencySeconds)
	t.queue = m.gauge("durable.queue.runs", "{run}", "Runs of a queue with settings, by state. All workers report the same value.")
	t.oldestDue = m.secondsGauge("durable.queue.oldest_due", "Time since the longest waiting run of a queue with settings was due to begin.")
	if m.err != nil {
		return nil, fmt.Errorf("create the metrics of durable: %w", m.err)
	}
	return t, nil
}

// Started counts a run that was created.
func (t *Telemetry) Started(ctx context.Context, workflow, queue string) {
	if t.started.Enabled(ctx) {
		t.started.Add(ctx, 1, metric.WithAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue)))
	}
}

// Entered counts a run whose execution begins in this process. late is the time since it was due.
func (t *Telemetry) Entered(ctx context.Context, workflow, queue string, late time.Duration, recovered bool) {
	if !t.active.Enabled(ctx) {
		return
	}
	set := metric.WithAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue))
	t.active.Add(ctx, 1, set)
	t.latency.Record(ctx, late.Seconds(), set)
	if recovered {
		t.recovered.Add(ctx, 1, set)
	}
}

// Left counts a run whose execution in this process has ended. A lifetime above zero tells that the run
// itself has ended.
func (t *Telemetry) Left(ctx context.Context, workflow, queue, outcome, errorType string, lifetime time.Duration) {
	if !t.active.Enabled(ctx) {
		return
	}
	base := []attribute.KeyValue{attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue)}
	t.active.Add(ctx, -1, metric.WithAttributes(base...))
	if outcome == OutcomeLost {
		t.leasesLost.Add(ctx, 1, metric.WithAttributes(base...))
	}
	if lifetime <= 0 {
		return
	}
	base = append(base, attribute.String(AttrOutcome, outcome))
	if errorType != "" {
		base = append(base, attribute.String(AttrErrorType, errorType))
	}
	t.ended.Add(ctx, 1, metric.WithAttributes(base...))
	t.duration.Record(ctx, lifetime.Seconds(), metric.WithAttributes(base...))
}

// Attempted records one attempt of a step. The label is the step's name without its known keys.
func (t *Telemetry) Attempted(ctx context.Context, workflow, label string, attempt int32, took time.Duration, errorType string) {
	if !t.step.Enabled(ctx) {
		return
	}
	set := append(make([]attribute.KeyValue, 0, 3), attribute.String(AttrWorkflow, workflow))
	if step, ok := t.labels.label(workflow, label); ok {
		set = append(set, attribute.String(AttrStep, step))
	}
	if attempt > 1 {
		t.retries.Add(ctx, 1, metric.WithAttributes(set...))
	}
	if errorType != "" {
		set = append(set, attribute.String(AttrErrorType, errorType))
	}
	t.step.Record(ctx, took.Seconds(), metric.WithAttributes(set...))
}

// Permitted records that an attempt of a step got a permit of a limit.
func (t *Telemetry) Permitted(ctx context.Context, limit string, waited time.Duration) {
	if t.permit.Enabled(ctx) {
		t.permit.Record(ctx, waited.Seconds(), metric.WithAttributes(attribute.String(AttrLimit, limit)))
	}
}

// TimedOut counts a wait for a signal that timed out.
func (t *Telemetry) TimedOut(ctx context.Context, workflow, followed string) {
	if t.timedOut.Enabled(ctx) {
		t.timedOut.Add(ctx, 1, metric.WithAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrFollowed, followed)))
	}
}

// Flushed records one flush of the journal.
func (t *Telemetry) Flushed(items, bytes int, took time.Duration) {
	ctx := context.Background()
	if !t.flush.Enabled(ctx) {
		return
	}
	t.flush.Record(ctx, took.Seconds())
	t.batch.Record(ctx, int64(items))
	t.payload.Record(ctx, int64(bytes))
}

// instruments creates instruments and keeps the first error.
type instruments struct {
	meter metric.Meter
	err   error
}

func (m *instruments) keep(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *instruments) counter(name, unit, what string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keep(err)
	return c
}

func (m *instruments) upDown(name, unit, what string) metric.Int64UpDownCounter {
	c, err := m.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keep(err)
	return c
}

func (m *instruments) seconds(name, what string, bounds []float64) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
	m.keep(err)
	return h
}

func (m *instruments) sizes(name, unit, what string, bounds []float64) metric.Int64Histogram {
	h, err := m.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
	m.keep(err)
	return h
}
