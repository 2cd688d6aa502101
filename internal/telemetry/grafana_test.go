package telemetry_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/seed8ec063be/durable/internal/telemetry"
)

// emitted returns the metrics that the library emits, by the names that Prometheus gives them, with their labels.
func emitted(t *testing.T) map[string]map[string]bool {
	t.Helper()
	reader := metric.NewManualReader()
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), noop.NewTracerProvider(), metric.NewMeterProvider(metric.WithReader(reader)), 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	tel.CountStart(ctx, "w", "q")
	tel.CountExecutionBegin(ctx, "w", "q", time.Second, true)
	tel.CountExecutionEnd(ctx, "w", "q", telemetry.OutcomeFailed, "type", time.Second)
	tel.CountExecutionEnd(ctx, "w", "q", telemetry.OutcomeLost, "", time.Second)
	tel.RecordAttempt(ctx, "w", "s", 2, time.Second, "type")
	tel.RecordPermitWait(ctx, "l", time.Second)
	tel.CountReceiveTimeout(ctx, "w", telemetry.FollowedByError)
	tel.RecordFlush(1, 1, time.Second)
	tel.CountScheduleFire(ctx, "s", "started", time.Second)
	tel.RecordQueue(ctx, "q", 1, 1, 1, time.Second)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]map[string]bool)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			name := strings.ReplaceAll(m.Name, ".", "_") + map[string]string{"s": "_seconds", "By": "_bytes"}[m.Unit]
			labels := make(map[string]bool)
			note := func(set attribute.Set) {
				for _, kv := range set.ToSlice() {
					labels[strings.ReplaceAll(string(kv.Key), ".", "_")] = true
				}
			}
			suffixes := []string{""}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				if data.IsMonotonic {
					suffixes = []string{"_total"}
				}
				for _, p := range data.DataPoints {
					note(p.Attributes)
				}
			case metricdata.Gauge[int64]:
				note(data.DataPoints[0].Attributes)
			case metricdata.Gauge[float64]:
				note(data.DataPoints[0].Attributes)
			case metricdata.Histogram[int64]:
				suffixes = []string{"_bucket", "_sum", "_count"}
				note(data.DataPoints[0].Attributes)
			case metricdata.Histogram[float64]:
				suffixes = []string{"_bucket", "_sum", "_count"}
				note(data.DataPoints[0].Attributes)
			default:
				t.Fatalf("%s is a %T", m.Name, data)
			}
			for _, suffix := range suffixes {
				names[name+suffix] = labels
			}
		}
	}
	return names
}

var (
	metricNames = regexp.MustCompile(`\bdurable_\w+(?:[{\[)]|$)`)
	groupings   = regexp.MustCompile(`by \(([^)]*)\)`)
	matchers    = regexp.MustCompile(`(\w+)=~?"`)
)

// Each expression of the Grafana dashboard uses metrics and labels that are emitted, and each metric is on the dashboard.
func TestGrafanaDashboardNamesWhatIsEmitted(t *testing.T) {
	text, err := os.ReadFile("../../docs/grafana/durable.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	names := emitted(t)
	shown := make(map[string]bool)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			var labels []string
			for _, m := range matchers.FindAllStringSubmatch(target.Expr, -1) {
				labels = append(labels, m[1])
			}
			for _, m := range groupings.FindAllStringSubmatch(target.Expr, -1) {
				labels = append(labels, strings.Split(m[1], ", ")...)
			}
			labels = slices.DeleteFunc(labels, func(label string) bool { return label == "le" })
			used := 0
			for _, name := range metricNames.FindAllString(target.Expr, -1) {
				name = strings.TrimRight(name, "{[)")
				if slices.Contains(labels, name) {
					continue // the last of a list of labels
				}
				used++
				has, ok := names[name]
				if !ok {
					t.Errorf("%s: no metric %s is emitted: %s", panel.Title, name, target.Expr)
				}
				shown[base(name)] = true
				for _, label := range labels {
					if ok && !has[label] {
						t.Errorf("%s: %s has no label %s, but %v", panel.Title, name, label, has)
					}
				}
			}
			if used == 0 {
				t.Errorf("%s: no metric was found in %s", panel.Title, target.Expr)
			}
		}
	}
	for name := range names {
		if !shown[base(name)] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// base returns the name of a metric without what a histogram adds.
func base(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
