package durable_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable"
)

// A start is a producer span. The execution of the run in each process is a consumer span below it, linked to the one before.
// Attempts are spans, and replayed steps are not.
func TestSpans(t *testing.T) {
	s := openStore(t)
	spans := tracetest.NewSpanRecorder()
	tp := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	blocked := make(chan struct{})
	first := true
	w := durable.Define("pay", func(c *durable.Ctx, _ int) (int, error) {
		if _, err := c.Step("a", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
		return c.Step("b", func(ctx context.Context) (int, error) {
			if first {
				first = false
				close(blocked)
				<-ctx.Done()
			}
			if durable.Attempt(ctx) < 2 {
				return 0, errDeclined
			}
			return 2, ctx.Err()
		}, durable.Retry(durable.Fixed(0, 9)))
	})
	cfg := durable.Config{Workflows: []durable.Definition{w}, TracerProvider: tp, Grace: -1}
	e := engineWith(t, s, cfg)
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-blocked
	stop()
	if got, err := w.Call(within(t), engineWith(t, s, cfg), 0, durable.ID("a")); got != 2 || err != nil {
		t.Fatal(got, err)
	}

	byName := make(map[string][]trace.ReadOnlySpan)
	for _, span := range spans.Ended() {
		byName[span.Name()] = append(byName[span.Name()], span)
	}
	producer, segments := byName["start pay"][0], byName["run pay"]
	if producer.SpanKind() != oteltrace.SpanKindProducer {
		t.Errorf("the start is a %v span", producer.SpanKind())
	}
	if len(segments) != 2 {
		t.Fatalf("%d segments, want 2", len(segments))
	}
	for _, segment := range segments {
		if segment.SpanKind() != oteltrace.SpanKindConsumer || segment.Parent().SpanID() != producer.SpanContext().SpanID() {
			t.Errorf("segment of kind %v under %v, want a consumer under the start", segment.SpanKind(), segment.Parent().SpanID())
		}
	}
	if links := segments[1].Links(); len(links) != 1 || links[0].SpanContext.SpanID() != segments[0].SpanContext().SpanID() {
		t.Errorf("links of the second segment: %v, want the first", links)
	}
	if n := len(byName["step a"]); n != 1 {
		t.Errorf("%d spans of step a, want 1: a replayed step has none", n)
	}
	if n := len(byName["step b"]); n < 2 {
		t.Errorf("%d spans of step b, want one an attempt", n)
	}
	if !slices.Contains(segments[1].Attributes(), attribute.String("durable.outcome", "completed")) {
		t.Errorf("attributes of the last segment: %v", segments[1].Attributes())
	}
}

func TestMetrics(t *testing.T) {
	reader := metric.NewManualReader()
	mp := metric.NewMeterProvider(metric.WithReader(reader))
	w := durable.Define("pay", func(c *durable.Ctx, n int) (int, error) {
		return c.Step("charge", func(ctx context.Context) (int, error) {
			if durable.Attempt(ctx) == 1 {
				return 0, errDeclined
			}
			return n, nil
		}, durable.Retry(durable.Fixed(0, 2)))
	})
	e := engineWith(t, openStore(t), durable.Config{Workflows: []durable.Definition{w}, MeterProvider: mp})
	for i := range 3 {
		if _, err := w.Call(within(t), e, i); err != nil {
			t.Fatal(err)
		}
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(within(t), &got); err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]int64)
	counts := make(map[string]uint64)
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					sums[m.Name] += p.Value
					noIDs(t, m.Name, p.Attributes)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					counts[m.Name] += p.Count
					noIDs(t, m.Name, p.Attributes)
				}
				if m.Unit != "s" {
					t.Errorf("%s is in %q, want seconds", m.Name, m.Unit)
				}
			}
		}
	}
	for name, want := range map[string]int64{
		"durable.run.started": 3, "durable.run.ended": 3, "durable.run.active": 0, "durable.step.retries": 3,
	} {
		if sums[name] != want {
			t.Errorf("%s is %d, want %d", name, sums[name], want)
		}
	}
	for name, want := range map[string]uint64{
		"durable.run.duration": 3, "durable.run.schedule_latency": 3, "durable.step.duration": 6,
	} {
		if counts[name] != want {
			t.Errorf("%s has %d measurements, want %d", name, counts[name], want)
		}
	}
	if counts["durable.journal.flush.duration"] == 0 {
		t.Error("no flush was measured")
	}
}

// A run that waits and is executed again does not make the latency of the beginning look better than it is.
func TestOnlyTheFirstExecutionHasAScheduleLatency(t *testing.T) {
	reader := metric.NewManualReader()
	w := durable.Define("wait", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
	e := engineWith(t, openStore(t), durable.Config{
		Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
	})
	running(t, e)
	run, err := w.Start(within(t), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, run.ID(), durable.StatusWaiting)
	if err := e.Signal(within(t), run.ID(), "go", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Result(within(t)); err != nil {
		t.Fatal(err)
	}
	if info := read(e.Get(within(t), run.ID()))(t); info.Epoch < 2 {
		t.Fatalf("the run was claimed %d times, want two executions", info.Epoch)
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(within(t), &got); err != nil {
		t.Fatal(err)
	}
	var measured uint64
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if d, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "durable.run.schedule_latency" {
				for _, p := range d.DataPoints {
					measured += p.Count
				}
			}
		}
	}
	if measured != 1 {
		t.Errorf("the latency was measured %d times, want once", measured)
	}
}

// noIDs checks that a metric has no ID as an attribute, because each run would then be a series.
func noIDs(t *testing.T, name string, set attribute.Set) {
	t.Helper()
	for _, kv := range set.ToSlice() {
		if strings.Contains(string(kv.Key), "id") {
			t.Errorf("%s has attribute %s", name, kv.Key)
		}
	}
}
