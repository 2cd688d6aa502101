package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// stayed returns the entries of an execution that its process surely owns from its begin to its end.
func stayed(pid int, run, queue, key string, from, to int) []entry {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	exec := strconv.Itoa(pid) + run
	return []entry{
		{Kind: kindClaimed, Pid: pid, At: at(from), Value: at(from).Add(lease).Format(time.RFC3339Nano), Writes: []write{{Run: run}}},
		{Kind: kindQueuedBegun, Pid: pid, At: at(from), Run: run, Exec: exec, Step: queue, Value: key},
		{Kind: kindQueuedReturned, Pid: pid, At: at(to), Run: run, Exec: exec, Step: queue, Value: key},
	}
}

// goodQueues returns evidence without a violation: four runs of queue bounded at once, two runs of a key one after the other, a rate
// that is used up, and a pause.
func goodQueues() *evidence {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	e := &evidence{runs: make(map[string]*knownRun), queueLoad: &queueLoad{times: queueTimes{Lowered: at(20_000)}, resumed: at(60_000)}}
	add := func(id, queue, key string, from, to int) {
		e.entries = append(e.entries, stayed(len(e.runs), id, queue, key, from, to)...)
		e.runs[id] = &knownRun{RunInfo: &durable.RunInfo{RunID: id, Status: durable.StatusCompleted, CreatedAt: at(from), EndedAt: at(to)}}
		if queue != foldSingleton {
			e.queueLoad.starts = append(e.queueLoad.starts, &queueStart{id: id, runID: id, in: queuedRun{Queue: queue, Key: key}, isUndisturbed: true})
		}
	}
	for i := range mostExecuting {
		add("B"+strconv.Itoa(i), boundedQueue, "b"+strconv.Itoa(i/mostOfKey), 100+i, 200)
	}
	add("O0", orderedQueue, "o", 300, 400)
	add("O1", orderedQueue, "o", 401, 500)
	add("S0", foldSingleton, "k", 300, 400)
	add("S1", foldSingleton, "k", 401, 500)
	for _, ms := range []int{0, 0, 100, 1000} {
		e.entries = append(e.entries, entry{Kind: kindAdmitted, Step: ratedQueue, Attempt: 1, Value: at(ms).Format(time.RFC3339Nano)})
	}
	for i, verb := range []string{askPause, askResume} {
		x := entry{Kind: kindVerbCalled, Pid: 99, At: at(1000 + 1000*i), Exec: verb, Step: verb, Value: boundedQueue}
		e.entries = append(e.entries, x)
		x.Kind, x.At = kindVerbReturned, x.At.Add(time.Millisecond)
		e.entries = append(e.entries, x)
	}
	return e
}

// The checker finds no violation in good evidence of queues, and finds each that is added to it.
func TestQueueChecker(t *testing.T) {
	t.Parallel()
	add := func(some ...entry) func(*evidence) {
		return func(e *evidence) { e.entries = append(e.entries, some...) }
	}
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string // empty: no violation
	}{
		"nothing":             {func(*evidence) {}, ""},
		"five at once":        {add(stayed(50, "B9", boundedQueue, "b9", 110, 150)...), "queue bounded: 5 runs executed"},
		"a run is taken over": {add(stayed(50, "B0", boundedQueue, "b0", 110, 150)...), ""},
		"three of a key at once": {func(e *evidence) {
			e.entries = append(e.entries[3*mostExecuting:], append(append(stayed(1, "B7", boundedQueue, "b0", 1, 9), stayed(2, "B8", boundedQueue, "b0", 2, 9)...), stayed(3, "B9", boundedQueue, "b0", 3, 9)...)...)
		}, "3 runs of key b0"},
		"the lower bound": {add(append(append(stayed(1, "B7", boundedQueue, "x", 40_000, 40_010), stayed(2, "B8", boundedQueue, "y", 40_001, 40_010)...), stayed(3, "B9", boundedQueue, "z", 40_002, 40_010)...)...), "3 runs executed"},
		"the lower bound, of runs that had their places before": {func(e *evidence) {
			for i := range 3 {
				add(stayed(60+i, "B"+strconv.Itoa(i), boundedQueue, "b"+strconv.Itoa(i/mostOfKey), 40_000+i, 40_010)...)(e)
			}
		}, ""},
		"the lower bound, of a run that had its place before": {func(e *evidence) {
			add(append(append(stayed(60, "B7", boundedQueue, "x", 40_000, 40_010), stayed(61, "B8", boundedQueue, "y", 40_001, 40_010)...), stayed(62, "B0", boundedQueue, "b0", 40_002, 40_010)...)...)(e)
		}, "3 runs executed"},
		"a fifth past the lease": {func(e *evidence) {
			e.entries[2].At = noon.Add(time.Hour)
			add(stayed(50, "B9", boundedQueue, "b9", 1700, 1750)...)(e)
		}, ""},
		"two of a key":   {func(e *evidence) { e.runs["O0"].EndedAt = noon.Add(time.Second) }, "ordered: run O1 of key o began"},
		"two singletons": {func(e *evidence) { e.runs["S0"].EndedAt = noon.Add(time.Second) }, "singleton: run S1 of key k began"},
		"a run passes another": {func(e *evidence) {
			s := e.queueLoad.starts
			s[mostExecuting], s[mostExecuting+1] = s[mostExecuting+1], s[mostExecuting]
		}, "began before run"},
		"runs begin together": {func(e *evidence) {
			for i := range 20 {
				id := fmt.Sprint("late", i)
				e.runs[id] = &knownRun{RunInfo: &durable.RunInfo{RunID: id, Queue: ratedQueue, StartedAt: noon}}
			}
		}, "queue rated: too many runs began"},
		"a rate is exceeded":      {add(entry{Kind: kindAdmitted, Step: ratedQueue, Attempt: 1, Value: noon.Add(20 * time.Millisecond).Format(time.RFC3339Nano)}), "queue rated: too many"},
		"a change fails":          {add(entry{Kind: kindVerbReturned, Step: askSet, Err: "broken"}), "set has failed"},
		"a run is lost":           {func(e *evidence) { delete(e.runs, "O0") }, "I1: run O0"},
		"a run never ends":        {func(e *evidence) { e.runs["O0"].Status = durable.StatusPending }, "I7: run O0"},
		"a run begins in a pause": {add(stayed(50, "B9", boundedQueue, "b9", 1500, 1501)...), ""}, // it had been admitted before
		"many runs begin in a pause": {func(e *evidence) {
			for i := range mostExecuting + 1 {
				add(stayed(50, "C"+strconv.Itoa(i), boundedQueue, "b9", 1500+2*i, 1501+2*i)...)(e)
			}
		}, "began while it was paused"},
		"many runs begin after a resume, and before a stopped process records the pause": {func(e *evidence) {
			for i := range e.entries {
				if x := &e.entries[i]; x.Kind == kindVerbReturned && x.Step == askPause {
					x.At = noon.Add(2100 * time.Millisecond)
				}
			}
			for i := range mostExecuting + 1 {
				add(stayed(50, "C"+strconv.Itoa(i), boundedQueue, "b9", 2200+2*i, 2201+2*i)...)(e)
			}
		}, ""},
		"a stopped process calls many functions past its lease in a pause": {func(e *evidence) {
			for i := range mostExecuting + 1 {
				some := stayed(50, "C"+strconv.Itoa(i), boundedQueue, "b9", 1500+2*i, 1501+2*i)
				some[0].Value = noon.Add(1400 * time.Millisecond).Format(time.RFC3339Nano)
				add(some...)(e)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := goodQueues(), &findings{}
			c.spoil(e)
			e.checkQueues(f)
			switch got := strings.Join(f.violations, "\n"); {
			case c.want == "" && got != "", c.want != "" && !strings.Contains(got, c.want):
				t.Errorf("violations: %q, want %q", got, c.want)
			}
		})
	}
}

// goodFolds returns evidence without a violation: a singleton that replaces another, two debounced starts, and a throttle.
func goodFolds() *evidence {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	e := &evidence{runs: make(map[string]*knownRun)}
	run := func(id, workflow string, from, to int) *knownRun {
		k := &knownRun{RunInfo: &durable.RunInfo{RunID: id, Workflow: workflow, Status: durable.StatusCompleted, CreatedAt: at(from), EndedAt: at(to), Input: []byte(`{"key":"k","n":1}`)}}
		e.runs[id], e.order = k, append(e.order, k)
		return k
	}
	start := func(id, step, mode string, n, from, to int, led, outcome string) {
		x := entry{Kind: kindFoldBegun, Exec: id, Step: step, Value: mode, Attempt: n, At: at(from)}
		e.entries = append(e.entries, x)
		x.Kind, x.Run, x.Err, x.At = kindFoldEnded, led, outcome, at(to)
		e.entries = append(e.entries, x)
	}
	old := run("S0", "single", 0, 700)
	old.Status, old.Cancellation = durable.StatusCancelled, &durable.Cancellation{Reason: `a newer start with the key "k" replaces it`}
	run("S1", "single", 600, 900)
	start("s0", "singleton/k", "join", 1, 0, 10, "S0", "")
	start("s1", "singleton/k", "refuse", 2, 500, 510, "S0", "live")
	start("s2", "singleton/k", "replace", 3, 600, 610, "S1", "")
	run("D0", "latest", 0, 1000)
	start("d0", "debounce/k", "", 11, 0, 10, "D0", "")
	start("d1", "debounce/k", "", 12, 100, 110, "D0", "")
	start("d2", "debounce/k", "", 13, 120, 500, "", "rolled back")
	e.entries = append(e.entries, entry{Kind: kindDebounceRan, Run: "D0", Step: "k", Value: "12", At: at(500)})
	for i := range throttleCount {
		id := "P" + strconv.Itoa(i)
		run(id, "some", i, 1000)
		start("p"+strconv.Itoa(i), "throttle/k", "", 20+i, i, i+1, id, "")
	}
	start("p9", "throttle/k", "", 29, 50, 60, "", "skipped")
	return e
}

// The checker finds no violation in good evidence of starts that fold, and finds each that is added to it.
func TestFoldChecker(t *testing.T) {
	t.Parallel()
	ran := func(change func(*entry)) func(*evidence) {
		return func(e *evidence) {
			for i := range e.entries {
				if e.entries[i].Kind == kindDebounceRan {
					change(&e.entries[i])
				}
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string // empty: no violation
	}{
		"nothing":                   {func(*evidence) {}, ""},
		"an older input overwrites": {ran(func(x *entry) { x.Value = "11" }), "began after that one was over"},
		"a start was rolled back":   {ran(func(x *entry) { x.Value = "13" }), "one that was rolled back"},
		"a start is lost":           {ran(func(x *entry) { x.Kind = kindFunctionBegun }), "led, is completed, and was executed: false"},
		"it does not wait":          {ran(func(x *entry) { x.At = noon.Add(200 * time.Millisecond) }), "delays it until"},
		"two inputs": {func(e *evidence) {
			e.entries = append(e.entries, entry{Kind: kindDebounceRan, Run: "D0", Step: "k", Value: "11"})
		}, "with the inputs 12 and 11"},
		"a start joins what has ended": {func(e *evidence) {
			e.entries = append(e.entries, entry{Kind: kindCommitted, At: noon.Add(300 * time.Millisecond), Writes: []write{{Run: "S0", What: "cancelled", Outcome: written}}})
		}, "which had ended"},
		"nobody replaces it": {func(e *evidence) {
			e.runs["S1"].Status, e.runs["S1"].Cancellation = e.runs["S0"].Status, e.runs["S0"].Cancellation
		}, "no newer start replaces it"},
		"a singleton fails": {func(e *evidence) { e.runs["S1"].Status = durable.StatusFailed }, "is failed"},
		"a repeated start leads astray": {func(e *evidence) {
			e.entries = append(e.entries, entry{Kind: kindFoldEnded, Exec: "d0", Run: "D9", At: noon})
		}, "and to run D9"},
		"a run is lost":                 {func(e *evidence) { delete(e.runs, "D0") }, "I1: run D0"},
		"too many starts":               {func(e *evidence) { e.entries[len(e.entries)-1].Err, e.entries[len(e.entries)-1].Run = "", "P0" }, "4 starts of key k"},
		"a start is skipped needlessly": {func(e *evidence) { e.order = e.order[:len(e.order)-1] }, "was skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := goodFolds(), &findings{}
			c.spoil(e)
			e.checkFolds(f)
			switch got := strings.Join(f.violations, "\n"); {
			case c.want == "" && got != "", c.want != "" && !strings.Contains(got, c.want):
				t.Errorf("violations: %q, want %q", got, c.want)
			}
		})
	}
}
