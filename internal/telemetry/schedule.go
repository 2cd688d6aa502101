package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Fired counts a scheduled time that was decided. A lateness of zero or more tells that its run was started by the schedule
// itself.
func (t *Telemetry) Fired(ctx context.Context, schedule, outcome string, late time.Duration) {
	if !t.fired.Enabled(ctx) {
		return
	}
	name := attribute.String(AttrSchedule, schedule)
	t.fired.Add(ctx, 1, metric.WithAttributes(name, attribute.String(AttrOutcome, outcome)))
	if late >= 0 {
		t.lateness.Record(ctx, late.Seconds(), metric.WithAttributes(name))
	}
}
