package durable_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// collected returns the metrics that a reader has, by the instruments' names.
func collected(t *testing.T, reader metric.Reader) map[string]metricdata.Metrics {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := reader.Collect(within(t), &got); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]metricdata.Metrics)
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// stepNames returns the values of durable.step.name, with the number of attempts of each; empty is the missing attribute.
func stepNames(t *testing.T, reader metric.Reader) map[string]uint64 {
	t.Helper()
	duration, ok := collected(t, reader)["durable.step.duration"].Data.(metricdata.Histogram[float64])
	if !ok {
		t.Fatal("there is no durable.step.duration")
	}
	names := make(map[string]uint64)
	for _, p := range duration.DataPoints {
		name, _ := p.Attributes.Value("durable.step.name")
		names[name.AsString()] += p.Count
	}
	return names
}

// loops is a workflow whose step names mostly contain an item's key.
var loops = durable.Define("loops", func(c *durable.Ctx, n int) (int, error) {
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	one := func(context.Context, int) (int, error) { return 1, nil }
	if _, err := c.Map("mail", items, one, durable.Key(func(i int) string { return fmt.Sprint("customer-", i) })); err != nil {
		return 0, err
	}
	branch := c.Go("branch", func(c *durable.Ctx) ([]int, error) { return c.Map("inner", items, one) })
	if _, err := branch.Wait(); err != nil {
		return 0, err
	}
	for i := range items {
		if err := c.Do(fmt.Sprint("send-", i), func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
	}
	return n, nil
})

func measured(t *testing.T, n, names int) map[string]uint64 {
	t.Helper()
	reader := metric.NewManualReader()
	cfg := durable.Config{Workflows: []durable.Definition{loops}, MetricStepNames: names, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
	e := engineWith(t, openStore(t), cfg)
	if _, err := loops.Call(within(t), e, n); err != nil {
		t.Fatal(err)
	}
	return stepNames(t, reader)
}

// Items of a Map are counted under its name, whatever their keys and scopes.
func TestMapItemsAreOneSeries(t *testing.T) {
	got := measured(t, 2, 0)
	if want := map[string]uint64{"mail": 2, "inner": 2, "send-0": 1, "send-1": 1}; !maps.Equal(got, want) {
		t.Errorf("attempts by step: %v, want %v", got, want)
	}
}

// However many step names a loop uses, a workflow has at most the configured number of them in the metrics, plus one for all
// others.
func TestStepNamesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		n, bound int
		want     int    // the number of series
		other    uint64 // attempts that are counted under the name for all others
	}{
		"by default":      {150, 0, 101, 150 - 98},
		"as configured":   {20, 5, 6, 20 - 3},
		"under the bound": {2, 4, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := measured(t, c.n, c.bound)
			if len(got) != c.want || got["_OTHER"] != c.other {
				t.Errorf("%d names with %d attempts under _OTHER, want %d with %d: %v", len(got), got["_OTHER"], c.want, c.other, got)
			}
		})
	}
}

// The step names of one workflow do not count against the bound of another workflow.
func TestStepNamesAreBoundedByWorkflow(t *testing.T) {
	reader := metric.NewManualReader()
	w := durable.Define("w", double)
	e := engineWith(t, openStore(t), durable.Config{
		Workflows: []durable.Definition{loops, w}, MetricStepNames: 3, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
	})
	if _, err := loops.Call(within(t), e, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Call(within(t), e, 1); err != nil {
		t.Fatal(err)
	}
	if got := stepNames(t, reader); got["double"] != 1 {
		t.Errorf("the step of the second workflow is not there: %v", got)
	}
}

func TestStepNamesAreLeftOut(t *testing.T) {
	if got := measured(t, 3, -1); len(got) != 1 || got[""] != 9 {
		t.Errorf("attempts by step: %v, want nine without a name", got)
	}
}

// The bounds of histograms fit what they measure, and the names of instruments follow the conventions of OpenTelemetry.
func TestInstruments(t *testing.T) {
	reader := metric.NewManualReader()
	cfg := durable.Config{Workflows: []durable.Definition{loops}, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
	e := engineWith(t, openStore(t), cfg)
	if _, err := loops.Call(within(t), e, 3); err != nil {
		t.Fatal(err)
	}
	bounds := make(map[string][]float64)
	for name, m := range collected(t, reader) {
		switch d := m.Data.(type) {
		case metricdata.Histogram[float64]:
			bounds[name] = d.DataPoints[0].Bounds
		case metricdata.Histogram[int64]:
			bounds[name] = d.DataPoints[0].Bounds
		}
		parts := strings.Split(name, ".")
		for _, namespace := range parts[:len(parts)-1] {
			if strings.HasSuffix(namespace, "s") {
				t.Errorf("the namespace %q of %s is a plural", namespace, name)
			}
		}
		if m.Description == "" || m.Unit == "" {
			t.Errorf("%s has no description or no unit", name)
		}
	}
	for name, c := range map[string]struct{ from, to float64 }{ // the smallest and the largest bound
		"durable.run.duration":           {0.01, 7 * 24 * 3600},
		"durable.run.schedule_latency":   {0.001, 3600},
		"durable.step.duration":          {0.001, 3600},
		"durable.journal.flush.duration": {0.0005, 10},
		"durable.journal.flush.items":    {1, 1000},
		"durable.journal.flush.size":     {1024, 4 << 20},
	} {
		got := bounds[name]
		if len(got) == 0 || got[0] > c.from || got[len(got)-1] < c.to || !slices.IsSorted(got) {
			t.Errorf("%s has the bounds %v, want them from %v at most to %v at least", name, got, c.from, c.to)
		}
	}
}

// started returns the spans of starts, in order, with their outcome, error.type, and run, if they have one.
func started(spans *tracetest.SpanRecorder) (all []string) {
	for _, span := range spans.Ended() {
		if !strings.HasPrefix(span.Name(), "start ") {
			continue
		}
		set := attribute.NewSet(span.Attributes()...)
		text := make([]string, 0, 3)
		for _, key := range []attribute.Key{"durable.outcome", "error.type", "durable.run.name"} {
			if v, ok := set.Value(key); ok {
				text = append(text, v.AsString())
			}
		}
		all = append(all, strings.Join(text, " "))
	}
	return all
}

// The span of a start has the outcome of the start, and the ID of a run only if the run exists.
func TestStartSpansNameRunsThatExist(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		spans := tracetest.NewSpanRecorder()
		w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
			if n == 0 {
				return 0, nil
			}
			return c.Child("kid", kid, 0)
		})
		e := engineWith(t, s, durable.Config{
			Workflows: []durable.Definition{w, kid}, TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(spans)),
		})
		first, err := w.Start(within(t), e, 0, durable.ID("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Start(within(t), e, 1, durable.ID("a")); !errors.Is(err, durable.ErrIDConflict) {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Start(ended, e, 0, durable.ID("b")); err == nil {
			t.Fatal("a start whose context has ended is made")
		}
		want := []string{"created a", "existing a", "refused durable.id_conflict a", "refused context.canceled"}
		if got := started(spans); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for _, span := range spans.Ended() {
			set := attribute.NewSet(span.Attributes()...)
			if id, ok := set.Value("durable.run.uuid"); ok && id.AsString() != first.RunID() {
				t.Errorf("a span names run %s, and there is only %s", id.AsString(), first.RunID())
			}
		}
		spans.Reset()
		if _, err := w.Call(within(t), e, 1, durable.ID("parent")); err != nil {
			t.Fatal(err)
		}
		got := started(spans)
		slices.Sort(got) // the parent may start the kid before its own span has ended
		if !slices.Equal(got, []string{"created kid", "created parent"}) {
			t.Errorf("%q", got)
		}
		for _, span := range spans.Ended() {
			set := attribute.NewSet(span.Attributes()...)
			id, ok := set.Value("durable.run.uuid")
			if !ok {
				continue
			}
			if _, err := e.Get(within(t), id.AsString()); err != nil {
				t.Errorf("%s: %v", span.Name(), err)
			}
		}
	})
}

// A start in a transaction of the caller that is rolled back leaves a span without the ID of a run.
func TestStartSpansOfTransactions(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "durable.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	spans := tracetest.NewSpanRecorder()
	e := engineWith(t, s, durable.Config{TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(spans))})
	tx, err := s.Writer().BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.StartTx(within(t), tx, e, kid, 1, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := started(spans); !slices.Equal(got, []string{"in_transaction"}) {
		t.Errorf("%q", got)
	}
}

var kid = durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 1, nil })
