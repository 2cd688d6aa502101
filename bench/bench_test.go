package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/bench/result"
)

// The test binary is also the processes that help.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(work(job))
	}
	os.Exit(m.Run())
}

// benchmark runs the command, which must succeed, and returns what it wrote.
func benchmark(t *testing.T, args ...string) *result.Report {
	t.Helper()
	t.Parallel()
	name := filepath.Join(t.TempDir(), "bench.json")
	var out, complaints bytes.Buffer
	if code := command(t.Context(), append(args, "-quick", "-json", name), &out, &complaints); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &complaints)
	}
	t.Log("\n" + out.String())
	r, err := result.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if !strings.Contains(out.String(), row.Line()+"\n") {
			t.Errorf("the line is not printed: %s", row.Line())
		}
	}
	return r
}

// known fails the test if one of the figures was not measured, or is zero.
func known(t *testing.T, r *result.Row, figures ...string) {
	t.Helper()
	for _, name := range figures {
		if v := r.Get(name); !(v > 0) {
			t.Errorf("%s: %s is %v", r.Line(), name, v)
		}
	}
}

// Every mode comes to an end, and to figures, on one store at least: the commands are as short as
// they can be beside the race detector.
func TestEveryModeOfTheBenchmark(t *testing.T) {
	for store, modes := range map[string]map[string][]string{
		"postgres": {
			"default":  {"xacts_per_wf", "bytes_per_step", "batch", "flush_ms"},
			"dispatch": {"runs", "p50_ms", "p99_ms", "start_p50_ms"},
			"idle":     {"workers", "conns_each", "dispatch_p50_ms", "takeover_p99_ms"},
			"fleet":    {"engines", "wf_per_s"},
			"live":     {"sleeping", "dispatch_p50_ms", "signal_p50_ms", "late_p50_ms", "cancel_ms", "blocked_max_ms"},
			"replay":   {"steps", "p50_ms", "claim_p50_ms", "first_run_ms"},
			"aged":     {"aged_runs", "p99_ms", "young_p99_ms"},
			"sweep":    {"old_runs", "p99_ms", "idle_p99_ms"},
			"ui":       nil, // its rows differ
			"soak":     {"runs"},
		},
		"sqlite-full": {
			"default":   {"xacts_per_wf", "batch", "flush_ms"},
			"takeover":  {"kills", "p50_ms", "p99_ms"},
			"sleepers":  {"started_per_s", "db_bytes_per_run", "claim_p50_ms", "late_p50_ms"},
			"aged":      {"aged_runs", "p99_ms", "young_p99_ms"},
			"fanout":    {"items_per_s", "batch"},
			"queues":    nil, // its rows differ
			"preflight": {"runs", "steps", "runs_per_s"},
			"payload":   {"payload_bytes", "mb_per_s", "steps_per_s"},
			"codec":     {"wf_per_s", "plain_wf_per_s", "plain_ratio"},
		},
	} {
		t.Run(store, func(t *testing.T) {
			r := benchmark(t, "-store", store, "-mode", strings.Join(slices.Sorted(maps.Keys(modes)), ","))
			var measured []string
			seen, queuePathsSeen := make(map[string]bool), make(map[string]bool)
			for _, row := range r.Rows {
				seen[row.Mode] = true
				figures := modes[row.Mode]
				if row.Mode == result.Default {
					measured = append(measured, row.Path)
					known(t, row, "wf_per_s", "steps_per_s", "p50_ms", "p99_ms", "ceiling_ratio", "naive_ratio", "local_ratio")
					if row.Path != pathLocal && row.Path != pathClaimed {
						figures = nil
					}
				}
				known(t, row, figures...)
				if row.Mode == modeQueues {
					known(t, row, queueFigures[row.Path]...)
					queuePathsSeen[row.Path] = true
				}
			}
			for path := range queueFigures {
				if _, measured := modes[modeQueues]; measured && !queuePathsSeen[path] {
					t.Errorf("mode queues has no line of path %s", path)
				}
			}
			if !slices.Equal(measured, paths) {
				t.Errorf("measured %v, want %v", measured, paths)
			}
			for name := range modes {
				if !seen[name] {
					t.Errorf("mode %s has no line", name)
				}
			}
			if r.Settings[store] == "" {
				t.Error("the settings are not stated")
			}
		})
	}
}

// queueFigures are figures of the rows of mode queues, by path.
var queueFigures = map[string][]string{
	pathFree:            {"wf_per_s", "free_ratio", "p50_ms", "p99_ms"},
	"bound":             {"wf_per_s", "free_ratio"},
	"full":              {"wf_per_s", "free_ratio"},
	"keys":              {"wf_per_s", "free_ratio"},
	"rate":              {"wf_per_s", "free_ratio"},
	"lanes":             {"wf_per_s", "free_ratio"},
	"priorities":        {"wf_per_s", "free_ratio"},
	"other-queue":       {"backlog", "p99_ms", "p99_ratio"},
	"other-bound":       {"backlog", "p99_ms", "p99_ratio"},
	"urgent":            {"backlog", "p99_ms", "p99_ratio"},
	"steps-unlimited":   {"permits_per_s", "unlimited_ratio"},
	"steps-concurrent":  {"permits_per_s", "unlimited_ratio"},
	"steps-rate":        {"permits_per_s", "unlimited_ratio"},
	"steps-waiting":     {"permits_per_s", "unlimited_ratio"},
	"steps-handoff":     {"permits_per_s", "unlimited_ratio"},
	"steps-handoff-2":   {"permits_per_s", "unlimited_ratio"},
	"idle-schedule":     nil, // it may cost less than /proc tells
	"schedules-at-once": {"schedules", "all_ms", "fired_per_s"},
	"backfill":          {"times", "started_ms", "all_ms"},
	"registered":        {"workflows", "queues", "one_ratio", "claim_ratio"},
}

// Impossible arguments are refused clearly, with exit code 2, before anything is started.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-store mysql", "-store=mysql is not known: use sqlite, postgres, sqlite-full, sqlite-normal"},
		{"-mode fast", "-mode=fast is not known: use all, default, dispatch"},
		{"-path remote", "-path=remote is not known: use ceiling, naive, local, claimed"},
		{"-part all", "-part=all is not known: use claimed, backlog, permits, schedules, registered"},
		{"-c 0", "-c=0: write numbers from 1"},
		{"-engines 0", "-engines=0: write numbers from 1"},
		{"-engines 2000", "-engines=2000: it must be at most 1600"},
		{"-c many", "-c=many: write numbers"},
		{"-rounds 0", "-rounds=0: it must be at least 1"},
		{"-payload 1", "-payload=1: it must be at least 40"},
		{"-seconds -1", "-seconds: it must be above 0"},
		{"-steps ten", "invalid value"},
		{"-what", "not defined: -what"},
		{"postgres", `"postgres" is not a flag`},
	} {
		var out, complaints bytes.Buffer
		if code := command(t.Context(), strings.Fields(c.args), &out, &complaints); code != 2 || !strings.Contains(complaints.String(), c.says) {
			t.Errorf("%s: exit code %d, %q; want 2 and %q", c.args, code, &complaints, c.says)
		}
		if out.Len() > 0 {
			t.Errorf("%s: it began: %q", c.args, &out)
		}
	}
	var out, help bytes.Buffer
	if code := command(t.Context(), []string{"-h"}, &out, &help); code != 0 || !strings.Contains(help.String(), "-rounds") {
		t.Errorf("-h: exit code %d, %q", code, &help)
	}
}

func TestFigures(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(100 - i)
	}
	for q, want := range map[float64]result.Number{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(values, q); got != want {
			t.Errorf("the %v quantile of 1 to 100 is %v, want %v", q, got, want)
		}
	}
	if quantile(nil, 0.5).Known() || median(nil).Known() || median([]result.Number{result.Unknown}).Known() {
		t.Error("nothing has a quantile")
	}
	if m := median([]result.Number{9, result.Unknown, 1, 5}); m != 5 {
		t.Errorf("the median is %v, want 5", m)
	}
	if m := median([]result.Number{1, 2}); m != 1.5 {
		t.Errorf("the median is %v, want 1.5", m)
	}
	for _, n := range []int{smallest, 60, 4096} {
		if got := len(newReceipt(n).encode()); got != n {
			t.Errorf("a receipt of %d bytes has %d", n, got)
		}
	}
}
