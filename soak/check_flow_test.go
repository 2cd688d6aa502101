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
	for i := range e.entries {
		if x := &e.entries[i]; x.Kind == kindPermitHeld {
			x.Step = few.Name()
		}
	}
	// Four may execute from 20 s on, until two may, and thirty a second are granted.
	for _, c := range []struct {
		ms   int
		kind kind
		few  int
	}{{20_000, kindLimitChanging, 4}, {20_100, kindLimitChanged, 4}, {30_000, kindLimitChanging, 2}, {30_100, kindLimitChanged, 2}} {
		e.entries = append(e.entries, entry{Kind: c.kind, Step: few.Name(), Attempt: c.few, At: at(c.ms)}, entry{Kind: c.kind, Step: paced.Name(), Attempt: 10 * c.few, At: at(c.ms)})
	}
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

// addHolds adds n functions that execute for ten milliseconds at the same time.
func (e *evidence) addHolds(limitKey string, ms, n int) {
	begin := noon.Add(time.Duration(ms) * time.Millisecond)
	for i := range n {
		x := entry{Kind: kindPermitHeld, Pid: 4, Exec: fmt.Sprint(limitKey, ms, i), Step: limitKey, At: begin}
		y := x
		y.Kind, y.At = kindPermitFreed, begin.Add(10*time.Millisecond)
		e.entries = append(e.entries, x, y)
	}
}

// addGrants adds grants at the times.
func (e *evidence) addGrants(limitKey string, times ...int) {
	for _, ms := range times {
		e.entries = append(e.entries, entry{Kind: kindPermitGranted, Step: limitKey, Value: noon.Add(time.Duration(ms) * time.Millisecond).Format(time.RFC3339Nano)})
	}
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
			e.addHolds(few.Name(), 5, 1)
		}, "limit: 4 functions"},
		"four at once when four may":              {func(e *evidence) { e.addHolds(few.Name(), 20_001, 4) }, ""},
		"five at once when four may":              {func(e *evidence) { e.addHolds(few.Name(), 25_000, 5) }, "limit: 5 functions"},
		"four at once just after two may":         {func(e *evidence) { e.addHolds(few.Name(), 33_000, 4) }, ""},
		"three at once when two may":              {func(e *evidence) { e.addHolds(few.Name(), 35_000, 3) }, "limit: 3 functions"},
		"two of each key at once":                 {func(e *evidence) { e.addHolds("keyed/0", 0, 2); e.addHolds("keyed/1", 0, 2) }, ""},
		"three of one key at once":                {func(e *evidence) { e.addHolds("keyed/1", 0, 3) }, "limit: 3 functions under limit keyed/1"},
		"more grants when the rate is raised":     {func(e *evidence) { e.addGrants(paced.Name(), 25_000, 25_000, 25_025, 25_050) }, ""},
		"more grants than the raised rate allows": {func(e *evidence) { e.addGrants(paced.Name(), 25_000, 25_000, 25_025, 25_040) }, "rate: limit paced granted too much"},
		"more grants than the lowered rate":       {func(e *evidence) { e.addGrants(paced.Name(), 35_000, 35_000, 35_040) }, "rate: limit paced granted too much"},
		"three grants of one key at once":         {func(e *evidence) { e.addGrants("keyed/2", 0, 0, 0) }, "rate: limit keyed/2 granted too much"},
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
