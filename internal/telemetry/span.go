package telemetry

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A run's trace column holds one or two W3C traceparents, separated by a space: of the span that
// started the run, and of the run's latest segment. A segment is the execution of a run in one process.
const traceparentSeparator = " "

// StartSpan starts the producer span of one start. It returns the span and the traceparent for the
// run's row, which is empty without a valid span. EndStart ends the span.
func (t *Telemetry) StartSpan(ctx context.Context, workflow, queue string) (trace.Span, string) {
	ctx, span := t.Tracer.Start(ctx, "start "+workflow, trace.WithSpanKind(trace.SpanKindProducer))
	if span.IsRecording() { // otherwise no attributes are allocated
		span.SetAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue))
	}
	return span, traceparent(ctx)
}

// EndStart ends the span of a start. id and name belong to the run that was created or found. They are
// zero if no run is known to exist.
func EndStart(span trace.Span, outcome string, id uuid.UUID, name, errorType string) {
	if id != uuid.Nil && span.IsRecording() {
		span.SetAttributes(attribute.String(AttrRunUUID, id.String()), attribute.String(AttrRunName, name))
	}
	EndSpan(span, outcome, errorType)
}

// SegmentSpan starts the consumer span of a run's segment in this process. It is a child of the start's
// span, and linked to the span of the segment before. SegmentSpan also returns the new value of the
// trace column.
func (t *Telemetry) SegmentSpan(ctx context.Context, workflow, queue string, id uuid.UUID, name string, epoch int32, column string) (context.Context, trace.Span, string) {
	start, previous, _ := strings.Cut(column, traceparentSeparator)
	ctx = withRemoteParent(ctx, start)
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	if link := trace.SpanContextFromContext(withRemoteParent(context.Background(), previous)); link.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	ctx, span := t.Tracer.Start(ctx, "run "+workflow, opts...)
	if !span.IsRecording() {
		return ctx, span, column
	}
	span.SetAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue),
		attribute.String(AttrRunUUID, id.String()), attribute.String(AttrRunName, name), attribute.Int(AttrEpoch, int(epoch)))
	if start == "" {
		return ctx, span, traceparent(ctx)
	}
	return ctx, span, start + traceparentSeparator + traceparent(ctx)
}

// StepSpan starts the span of one attempt of a step. The label becomes part of the span's name, which
// should have few different values; step is the complete name.
func (t *Telemetry) StepSpan(ctx context.Context, workflow, label, step string, attempt int32) (context.Context, trace.Span) {
	return t.Tracer.Start(ctx, "step "+label, trace.WithAttributes(attribute.String(AttrWorkflow, workflow),
		attribute.String(AttrStep, step), attribute.Int(AttrAttempt, int(attempt))))
}

// EndSpan ends a span with an outcome. An error type that is not empty sets the span's status to Error.
func EndSpan(span trace.Span, outcome, errorType string) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String(AttrOutcome, outcome))
		if errorType != "" {
			span.SetAttributes(attribute.String(AttrErrorType, errorType))
			span.SetStatus(codes.Error, errorType)
		}
	}
	span.End()
}

// traceparent returns the W3C traceparent of the span in ctx, or an empty text if there is none.
func traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// withRemoteParent returns a context with the span of a traceparent as the parent of new spans.
func withRemoteParent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}
