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

// A run's trace column holds one or two W3C traceparents, separated by a space:
// of the span that started the run, and of its latest segment in some process.
const between = " "

// StartSpan is the short producer span of one start, and the traceparent for the run's row, which is
// empty if nobody records. It lasts until EndStart says what became of the start.
func (t *Telemetry) StartSpan(ctx context.Context, workflow, queue string) (trace.Span, string) {
	ctx, span := t.Tracer.Start(ctx, "start "+workflow, trace.WithSpanKind(trace.SpanKindProducer))
	if span.IsRecording() { // the attributes are not made for nobody
		span.SetAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue))
	}
	return span, parent(ctx)
}

// EndStart ends the span of a start. id and name are of the run that was created or found; zero if
// none is known to exist.
func EndStart(span trace.Span, outcome string, id uuid.UUID, name, errorType string) {
	if id != uuid.Nil && span.IsRecording() {
		span.SetAttributes(attribute.String(AttrRunID, id.String()), attribute.String(AttrRunName, name))
	}
	EndSpan(span, outcome, errorType)
}

// SegmentSpan is the consumer span of one process's part of a run: a child of the
// start, linked to the segment before. It answers the trace column's next value.
func (t *Telemetry) SegmentSpan(ctx context.Context, workflow, queue string, id uuid.UUID, name string, epoch int32, column string) (context.Context, trace.Span, string) {
	start, previous, _ := strings.Cut(column, between)
	ctx = remote(ctx, start)
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	if link := trace.SpanContextFromContext(remote(context.Background(), previous)); link.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	ctx, span := t.Tracer.Start(ctx, "run "+workflow, opts...)
	if !span.IsRecording() {
		return ctx, span, column
	}
	span.SetAttributes(attribute.String(AttrWorkflow, workflow), attribute.String(AttrQueue, queue),
		attribute.String(AttrRunID, id.String()), attribute.String(AttrRunName, name), attribute.Int(AttrEpoch, int(epoch)))
	if start == "" {
		return ctx, span, parent(ctx)
	}
	return ctx, span, start + between + parent(ctx)
}

// StepSpan is the span of one attempt of a step. The label names it, as names of spans have few
// values; step is the whole name.
func (t *Telemetry) StepSpan(ctx context.Context, workflow, label, step string, attempt int32) (context.Context, trace.Span) {
	return t.Tracer.Start(ctx, "step "+label, trace.WithAttributes(attribute.String(AttrWorkflow, workflow),
		attribute.String(AttrStep, step), attribute.Int(AttrAttempt, int(attempt))))
}

// EndSpan ends a span with an outcome; an error type marks it as an error.
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

func parent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

func remote(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}
