package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// goodFlow returns the evidence of three functions at once, of a used up rate, and of a schedule that fired five times. A fourth
// function begins when the process of the first has died, and a fifth when that of the second was stopped past its lease.
func goodFlow() *evidence {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	e := &evidence{entries: []entry{
		{Kind: kindPermitHeld, Pid: 1, Exec: "1", At: at(0)},
		{Kind: kindPermitHeld, Pid: 2, Exec: "2", At: at(1)},
		{Kind: kindPermitHeld, Pid: 3, Exec: "3", At: at(2)},
		{Kind: kindScheduled, Pid: 1, At: at(10), Run: "T0", Value: noon.Format(time.RFC3339)}, // the last entry of process 1
		{Kind: kindPermitHeld, Pid: 3, Exec: "4", At: at(20)},
		{Kind: kindPermitFreed, Pid: 3, Exec: "4", At: at(30)},
		{Kind: kindPermitHeld, Pid: 3, Exec: "5", At: at(1400)},
		{Kind: kindPermitHeld, Pid: 3, Exec: "6", At: at(1500)},
		{Kind: kindPermitFreed, Pid: 2, Exec: "2", At: at(2000)},
	}}
	for _, ms := range []int{0, 0, 50, 100, 150, 1000} {
		e.entries = append(e.entries, entry{Kind: kindPermitGranted, Pid: 1, At: at(0), Step: paced.Name(), Value: at(ms).Format(time.RFC3339Nano)})
	}
	for i := range 5 {
		e.order = append(e.order, &knownRun{RunInfo: &durable.RunInfo{
			ID: tickName + "@" + noon.Add(time.Duration(i)*time.Second).Format(time.RFC3339), RunID: fmt.Sprint("T", i), Status: durable.StatusCompleted,
		}})
	}
	return e
}

// The checker finds no violation in good evidence of limits and a schedule, and finds each that is added to it.
func TestFlowChecker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string // empty: no violation
	}{
		"nothing": {func(*evidence) {}, ""},
		"four at once": {func(e *evidence) {
			e.entries = append(e.entries, entry{Kind: kindPermitHeld, Pid: 4, Exec: "7", At: noon.Add(5 * time.Millisecond)}, entry{Kind: kindPermitFreed, Pid: 4, Exec: "7", At: noon.Add(15 * time.Millisecond)})
		}, "limit: 4 functions"},
		"a rate is exceeded": {func(e *evidence) {
			e.entries = append(e.entries, entry{Kind: kindPermitGranted, Step: paced.Name(), Value: noon.Add(120 * time.Millisecond).Format(time.RFC3339Nano)})
		}, "rate: limit paced granted too much"},
		"a time is missed":                   {func(e *evidence) { e.order = append(e.order[:2], e.order[3:]...) }, "schedule: no run was started for"},
		"a time has two runs":                {func(e *evidence) { e.order = append(e.order, e.order[1]) }, "schedule: run tick@"},
		"a run has not ended":                {func(e *evidence) { e.order[1].Status = durable.StatusRunning }, "schedule: run tick@"},
		"a run that is gone was executed":    {func(e *evidence) { e.entries[3].Run = "T9" }, "schedule: run T9 was executed"},
		"a time of no schedule was executed": {func(e *evidence) { e.entries[3].Value = "2001-01-01T00:00:00Z" }, "schedule: run T0 was executed"},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := goodFlow(), &findings{}
			c.spoil(e)
			e.checkFlow(f)
			switch got := strings.Join(f.violations, "\n"); {
			case c.want == "" && got != "", c.want != "" && !strings.Contains(got, c.want):
				t.Errorf("violations: %q, want %q", got, c.want)
			}
		})
	}
}
