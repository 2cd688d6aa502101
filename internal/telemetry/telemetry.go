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

// instrumentationScope is the name of durable's instruments and tracer.
const instrumentationScope = "github.com/seed8ec063be/durable"

// Telemetry records the logs, metrics and spans of one engine. Create it with New.
type Telemetry struct {
	Log    *slog.Logger
	Tracer trace.Tracer

	startedRuns      metric.Int64Counter
	endedRuns        metric.Int64Counter
	recoveredRuns    metric.Int64Counter
	activeRuns       metric.Int64UpDownCounter
	leasesLost       metric.Int64Counter
	stepRetries      metric.Int64Counter
	receiveTimeouts  metric.Int64Counter
	runDuration      metric.Float64Histogram
	startLatency     metric.Float64Histogram
	stepDuration     metric.Float64Histogram
	permitWait       metric.Float64Histogram
	flushDuration    metric.Float64Histogram
	flushedItems     metric.Int64Histogram
	flushedBytes     metric.Int64Histogram
	scheduleFires    metric.Int64Counter
	scheduleLateness metric.Float64Histogram
	queueRuns        metric.Int64Gauge
	oldestDue        metric.Float64Gauge
	labels           stepLabels
	meterProvider    metric.MeterProvider
}

// MeterProvider returns the provider of the instruments.
func (t *Telemetry) MeterProvider() metric.MeterProvider { return t.meterProvider }

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
	t := &Telemetry{Log: log, Tracer: tp.Tracer(instrumentationScope), labels: stepLabels{limit: stepNames}, meterProvider: mp}
	m := instruments{meter: mp.Meter(instrumentationScope)}
	t.startedRuns = m.counter("durable.run.started", "{run}", "Runs created by this process.")
	t.endedRuns = m.counter("durable.run.ended", "{run}", "Runs ended by this process, by outcome.")
	t.recoveredRuns = m.counter("durable.run.recovered", "{run}", "Runs that this process took over after another worker lost its lease.")
	t.leasesLost = m.counter("durable.lease.lost", "{lease}", "Leases that this process lost while it executed the run.")
	t.stepRetries = m.counter("durable.step.retries", "{attempt}", "Attempts of steps after the first attempt.")
	t.receiveTimeouts = m.counter("durable.wait.timed_out", "{wait}", "Waits for a signal that timed out, by the consequence.")
	t.activeRuns = m.upDownCounter("durable.run.active", "{run}", "Runs that this process executes.")
	t.runDuration = m.secondsHistogram("durable.run.duration", "Time from the start of a run to its end.", runSeconds)
	t.startLatency = m.secondsHistogram("durable.run.schedule_latency", "Time from the creation of a run, its delay included, to the beginning of its first execution.", latencySeconds)
	t.stepDuration = m.secondsHistogram("durable.step.duration", "Duration of an attempt of a step.", stepSeconds)
	t.permitWait = m.secondsHistogram("durable.limit.wait", "Time that an attempt of a step waited for a permit of its limit.", latencySeconds)
	t.flushDuration = m.secondsHistogram("durable.journal.flush.duration", "Duration of a flush of the journal.", flushSeconds)
	t.flushedItems = m.sizeHistogram("durable.journal.flush.items", "{item}", "Items in a flush of the journal.", flushItems)
	t.flushedBytes = m.sizeHistogram("durable.journal.flush.size", "By", "Size of the encoded payloads in a flush of the journal.", flushBytes)
	t.scheduleFires = m.counter("durable.schedule.fired", "{fire}", "Scheduled times that this process decided, by outcome.")
	t.scheduleLateness = m.secondsHistogram("durable.schedule.lateness", "Time from a scheduled time to the start of its run, jitter included.", latencySeconds)
	t.queueRuns = m.gauge("durable.queue.runs", "{run}", "Runs of a queue with settings, by state. All workers report the same value.")
	t.oldestDue = m.secondsGauge("durable.queue.oldest_due", "Time since the longest waiting run of a queue with settings was due to begin.")
	if m.err != nil {
		return nil, fmt.Errorf("create the metrics of durable: %w", m.err)
	}
	return t, nil
}

// CountStart counts a run that was created.
func (t *Telemetry) CountStart(ctx context.Context, workflow, queue string) {
	if t.startedRuns.Enabled(ctx) {
		t.startedRuns.Add(ctx, 1, metric.WithAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue)))
	}
}

// CountExecutionBegin counts a run whose execution begins in this process. late is the time since
// the run was created; it is negative if the run was executed before.
func (t *Telemetry) CountExecutionBegin(ctx context.Context, workflow, queue string, late time.Duration, recovered bool) {
	if !t.activeRuns.Enabled(ctx) {
		return
	}
	set := metric.WithAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue))
	t.activeRuns.Add(ctx, 1, set)
	if late >= 0 {
		t.startLatency.Record(ctx, late.Seconds(), set)
	}
	if recovered {
		t.recoveredRuns.Add(ctx, 1, set)
	}
}

// CountExecutionEnd counts a run whose execution in this process has ended. A lifetime above zero tells that the run
// itself has ended.
func (t *Telemetry) CountExecutionEnd(ctx context.Context, workflow, queue, outcome, errorType string, lifetime time.Duration) {
	if !t.activeRuns.Enabled(ctx) {
		return
	}
	base := []attribute.KeyValue{attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue)}
	t.activeRuns.Add(ctx, -1, metric.WithAttributes(base...))
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
	t.endedRuns.Add(ctx, 1, metric.WithAttributes(base...))
	t.runDuration.Record(ctx, lifetime.Seconds(), metric.WithAttributes(base...))
}

// RecordAttempt records one attempt of a step. The label is the step's name without its known keys.
func (t *Telemetry) RecordAttempt(ctx context.Context, workflow, label string, attempt int32, took time.Duration, errorType string) {
	if !t.stepDuration.Enabled(ctx) {
		return
	}
	set := append(make([]attribute.KeyValue, 0, 3), attribute.String(AttrWorkflow, workflow))
	if step, ok := t.labels.labelFor(workflow, label); ok {
		set = append(set, attribute.String(AttrStep, step))
	}
	if attempt > 1 {
		t.stepRetries.Add(ctx, 1, metric.WithAttributes(set...))
	}
	if errorType != "" {
		set = append(set, attribute.String(AttrErrorType, errorType))
	}
	t.stepDuration.Record(ctx, took.Seconds(), metric.WithAttributes(set...))
}

// RecordPermitWait records that an attempt of a step got a permit of a limit.
func (t *Telemetry) RecordPermitWait(ctx context.Context, limit string, waited time.Duration) {
	if t.permitWait.Enabled(ctx) {
		t.permitWait.Record(ctx, waited.Seconds(), metric.WithAttributes(attribute.String(AttrLimit, limit)))
	}
}

// CountReceiveTimeout counts a wait for a signal that timed out.
func (t *Telemetry) CountReceiveTimeout(ctx context.Context, workflow, followed string) {
	if t.receiveTimeouts.Enabled(ctx) {
		t.receiveTimeouts.Add(ctx, 1, metric.WithAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrFollowed, followed)))
	}
}

// RecordFlush records one flush of the journal.
func (t *Telemetry) RecordFlush(items, bytes int, took time.Duration) {
	ctx := context.Background()
	if !t.flushDuration.Enabled(ctx) {
		return
	}
	t.flushDuration.Record(ctx, took.Seconds())
	t.flushedItems.Record(ctx, int64(items))
	t.flushedBytes.Record(ctx, int64(bytes))
}

// instruments creates instruments and keeps the first error.
type instruments struct {
	meter metric.Meter
	err   error
}

func (m *instruments) keepError(err error) {
	if m.err == nil {
		m.err = err
	}
}

func (m *instruments) counter(name, unit, what string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keepError(err)
	return c
}

func (m *instruments) upDownCounter(name, unit, what string) metric.Int64UpDownCounter {
	c, err := m.meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keepError(err)
	return c
}

func (m *instruments) secondsHistogram(name, what string, bounds []float64) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
	m.keepError(err)
	return h
}

func (m *instruments) sizeHistogram(name, unit, what string, bounds []float64) metric.Int64Histogram {
	h, err := m.meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
	m.keepError(err)
	return h
}
