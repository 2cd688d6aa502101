package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// CountScheduleFire counts a scheduled time that was decided. A lateness of zero or more tells that its run was started by the schedule
// itself.
func (t *Telemetry) CountScheduleFire(ctx context.Context, schedule, outcome string, late time.Duration) {
	if !t.scheduleFires.Enabled(ctx) {
		return
	}
	name := attribute.String(AttrSchedule, schedule)
	t.scheduleFires.Add(ctx, 1, metric.WithAttributes(name, attribute.String(AttrOutcome, outcome)))
	if late >= 0 {
		t.scheduleLateness.Record(ctx, late.Seconds(), metric.WithAttributes(name))
	}
}
