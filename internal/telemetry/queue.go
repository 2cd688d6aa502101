package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// MeasuredQueues is the largest number of queues with metrics of their own: the first ones by name.
const MeasuredQueues = 100

// MeasuresQueues reports whether somebody receives the metrics of queues.
func (t *Telemetry) MeasuresQueues(ctx context.Context) bool { return t.queueRuns.Enabled(ctx) }

// RecordQueue records the use of a queue. Group keys are no attributes, because there may be any number of them.
func (t *Telemetry) RecordQueue(ctx context.Context, name string, executing, open, waiting int, oldestDue time.Duration) {
	queue := attribute.String(AttrQueue, name)
	for _, s := range []struct {
		state string
		n     int
	}{{"executing", executing}, {"open", open}, {"waiting", waiting}} {
		t.queueRuns.Record(ctx, int64(s.n), metric.WithAttributes(queue, attribute.String(AttrQueueState, s.state)))
	}
	t.oldestDue.Record(ctx, oldestDue.Seconds(), metric.WithAttributes(queue))
}

func (m *instruments) gauge(name, unit, what string) metric.Int64Gauge {
	g, err := m.meter.Int64Gauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keepError(err)
	return g
}

func (m *instruments) secondsGauge(name, what string) metric.Float64Gauge {
	g, err := m.meter.Float64Gauge(name, metric.WithUnit("s"), metric.WithDescription(what))
	m.keepError(err)
	return g
}
