package main

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed8ec063be/durable"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// good returns the evidence of one order without a violation, for tests to add one.
func good() *evidence {
	p := &plan{End: endsWell, Acts: []act{{Do: doStep, Name: "a0"}, {Do: doTx, Name: "a1"}, {Do: doSleep, Name: "a2", Ms: 10}, {Do: doOnce, Name: "a3"}, {Do: doCompensate, Name: "a4"}}}
	o := &order{id: "order-0", runID: "R", plan: p}
	k := &knownRun{
		RunInfo: &durable.RunInfo{ID: o.id, RunID: "R", Status: durable.StatusCompleted, EndedAt: noon, Output: jsontext.Value(`["a0=x","a1=y","a2=","a3=z","a4="]`)},
		history: map[string]durable.Checkpoint{
			"a0": {Name: "a0", Kind: "step", Status: "completed", Output: jsontext.Value(`"x"`)},
			"a1": {Name: "a1", Kind: "tx", Status: "completed", Output: jsontext.Value(`"y"`)},
			"a2": {Name: "a2", Kind: "sleep", Status: "completed", NextAt: noon},
			"a3": {Name: "a3", Kind: "step", Status: "completed", Output: jsontext.Value(`"z"`)},
		},
		plan: p, root: o,
	}
	end := *k.RunInfo
	o.end = &end
	kill := &knownRun{RunInfo: &durable.RunInfo{ID: killerID, RunID: "K", Status: durable.StatusCancelled}}
	e := &evidence{
		load: &load{orders: []*order{o}}, clients: &clients{},
		runs: map[string]*knownRun{"R": k, "K": kill}, order: []*knownRun{kill, k},
		effects: []effect{{"R", "a1", "y"}},
		events:  []durable.Event{{RunID: "R", Type: durable.EventCompleted}, {RunID: "K", Type: durable.EventCancelled}},
		entries: []entry{
			{Kind: kindClaimed, Writes: []write{{Run: "R", Epoch: 1}}},
			{Kind: kindFunctionBegun, Run: "R", Exec: "1"},
			{Kind: kindStepCalled, Run: "R", Exec: "1", Step: "a0", Do: doStep, Attempt: 1},
			{Kind: kindCommitting, Pid: 1, Writes: []write{{Run: "R", Epoch: 1, What: "a0 completed 1"}}},
			{Kind: kindCommitted, Pid: 1, Writes: []write{{Run: "R", Epoch: 1, What: "a0 completed 1", Outcome: written}}},
			{Kind: kindCallReturned, Run: "R", Exec: "1", Step: "a0", Do: doStep, Value: "x"},
			{Kind: kindStepCalled, Run: "R", Exec: "1", Step: "a1", Do: doTx, Attempt: 1},
			{Kind: kindCallReturned, Run: "R", Exec: "1", Step: "a1", Do: doTx, Value: "y"},
			{Kind: kindCallReturned, Run: "R", Exec: "1", Step: "a2", Do: doSleep, At: noon},
			{Kind: kindStepCalled, Run: "R", Exec: "1", Step: "a3", Do: doOnce, Attempt: 1},
			{Kind: kindCallReturned, Run: "R", Exec: "1", Step: "a3", Do: doOnce, Value: "z"},
		},
	}
	for range killerCrashes {
		e.entries = append(e.entries, entry{Kind: kindStepCalled, Run: "K", Step: "kill"})
	}
	return e
}

func (e *evidence) judged() *findings {
	f := &findings{}
	e.checkLedger(f)
	e.checkEnds(f)
	e.checkPlans(f)
	e.checkTransactions(f)
	e.checkAttemptBounds(f)
	return f
}

// The checker finds no violation in good evidence, and finds each violation that is added to it.
func TestChecker(t *testing.T) {
	t.Parallel()
	add := func(some ...entry) func(*evidence) {
		return func(e *evidence) { e.entries = append(e.entries, some...) }
	}
	run := func(change func(*knownRun)) func(*evidence) { return func(e *evidence) { change(e.runs["R"]) } }
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string // empty: no violation
	}{
		"nothing": {func(*evidence) {}, ""},
		"a start is lost": {func(e *evidence) {
			e.order = e.order[:1]
			delete(e.runs, "R")
		}, "I1: run order-0 is lost"},
		"a checkpoint is lost":    {run(func(k *knownRun) { delete(k.history, "a0") }), "I1: R/a0"},
		"a step runs again":       {add(entry{Kind: kindStepCalled, Run: "R", Exec: "1", Step: "a0"}), "I2: R/a0"},
		"a new execution runs it": {add(entry{Kind: kindFunctionBegun, Run: "R", Exec: "2"}, entry{Kind: kindStepCalled, Run: "R", Exec: "2", Step: "a0"}), "I2: R/a0"},
		"a superseded one does":   {add(entry{Kind: kindFunctionBegun, Run: "R", Exec: "2"}, entry{Kind: kindStepCalled, Run: "R", Exec: "1", Step: "a0"}), ""},
		"one that enters late does": {add(
			entry{Kind: kindClaimed, Pid: 2, Writes: []write{{Run: "R", Epoch: 2}}}, entry{Kind: kindClaimed, Pid: 3, Writes: []write{{Run: "R", Epoch: 3}}},
			entry{Kind: kindFunctionBegun, Pid: 3, Run: "R", Exec: "3"}, entry{Kind: kindFunctionBegun, Pid: 2, Run: "R", Exec: "2"},
			entry{Kind: kindStepCalled, Pid: 2, Run: "R", Exec: "2", Step: "a0"}), ""},
		"once is twice":         {add(entry{Kind: kindFunctionBegun, Run: "R", Exec: "2"}, entry{Kind: kindStepCalled, Run: "R", Exec: "1", Step: "a3", Do: doOnce}), "AtMostOnce: R/a3"},
		"two values":            {add(entry{Kind: kindCallReturned, Run: "R", Exec: "1", Step: "a0", Value: "other"}), "I3: R/a0"},
		"a value and a failure": {add(entry{Kind: kindCallReturned, Run: "R", Exec: "1", Step: "a0", Err: "meant"}), "I3: R/a0"},
		"another value is recorded": {run(func(k *knownRun) {
			k.history["a0"] = durable.Checkpoint{Kind: "step", Status: "completed", Output: jsontext.Value(`"w"`)}
		}), "I3: R/a0"},
		"an old epoch writes":             {func(e *evidence) { e.entries[0].Writes[0].Epoch = 2 }, "I4: epoch 1 of run R"},
		"a second owner of an epoch":      {add(entry{Kind: kindClaimed, Writes: []write{{Run: "R", Epoch: 1, Nonce: 7}}}), "I4: epoch 1 of run R has two owners"},
		"an old epoch is fenced":          {func(e *evidence) { e.entries[0].Writes[0].Epoch, e.entries[4].Writes[0].Outcome = 2, fenced }, ""},
		"an old write is repeated":        {add(entry{Kind: kindClaimed, Writes: []write{{Run: "R", Epoch: 2}}}, entry{Kind: kindCommitting, Pid: 1, Writes: []write{{Run: "R", Epoch: 1, What: "a0 completed 1"}}}, entry{Kind: kindCommitted, Pid: 1, Writes: []write{{Run: "R", Epoch: 1, What: "a0 completed 1", Outcome: written}}}), ""},
		"a run goes back":                 {add(entry{Kind: kindClaimed, Version: secondVersion, Writes: []write{{Run: "R", Epoch: 2}}}, entry{Kind: kindClaimed, Version: firstVersion, Writes: []write{{Run: "R", Epoch: 3}}}), "versions: run R"},
		"a run goes forward":              {add(entry{Kind: kindClaimed, Version: firstVersion, Writes: []write{{Run: "R", Epoch: 2}}}, entry{Kind: kindClaimed, Version: secondVersion, Writes: []write{{Run: "R", Epoch: 3}}}), ""},
		"an end changes":                  {run(func(k *knownRun) { k.Status = durable.StatusFailed }), "I5: run order-0 was completed"},
		"two events of an end":            {func(e *evidence) { e.events = append(e.events, e.events[0]) }, "I5: run R"},
		"no event of an end":              {func(e *evidence) { e.events = e.events[1:] }, "I5: run R"},
		"a cancel is forgotten":           {func(e *evidence) { e.load.orders[0].cancelled = true }, "I6: run order-0"},
		"a run is stuck":                  {run(func(k *knownRun) { k.Status = durable.StatusWaiting }), "I7: run order-0"},
		"an attempt too many":             {add(entry{Kind: kindStepCalled, Run: "R", Exec: "1", Step: "a1", Attempt: 13}), "I8: attempt 13"},
		"the killer goes on":              {add(entry{Kind: kindStepCalled, Run: "K", Step: "kill"}), "I8: the run that kills"},
		"an excused claim counted":        {add(entry{Kind: kindClaimed, Outage: true, Writes: []write{{Run: "K", Epoch: 1, Crashes: 1}}}, entry{Kind: kindStepCalled, Run: "K", Step: "kill"}), "I8: the run that kills"},
		"the killer was excused":          {add(entry{Kind: kindClaimed, Writes: []write{{Run: "K", Epoch: 1}}}, entry{Kind: kindClaimed, Outage: true, Writes: []write{{Run: "K", Epoch: 2}}}, entry{Kind: kindStepCalled, Run: "K", Step: "kill"}), ""},
		"the killer never ran":            {func(e *evidence) { e.entries = e.entries[:len(e.entries)-killerCrashes] }, "I8: the run that kills"},
		"a run fails for no reason":       {run(func(k *knownRun) { k.Status, k.Err = durable.StatusFailed, &durable.RunError{Message: "no luck"} }), "I9: run R"},
		"an output is wrong":              {run(func(k *knownRun) { k.Output = jsontext.Value(`["a0=w","a1=y","a2=","a3=z","a4="]`) }), "I9: run R"},
		"an output is short":              {run(func(k *knownRun) { k.Output = jsontext.Value(`["a0=x"]`) }), "run R, which completed with 5 acts"},
		"a transaction wrote twice":       {func(e *evidence) { e.effects = append(e.effects, e.effects[0]) }, "I11: transaction R/a1"},
		"a transaction wrote nothing":     {func(e *evidence) { e.effects = nil }, "I11: transaction R/a1"},
		"a stray transaction":             {func(e *evidence) { e.effects = append(e.effects, effect{"R", "a7", "v"}) }, "I11: transaction R/a7"},
		"a timer is early":                {func(e *evidence) { e.entries[8].At = noon.Add(-time.Second) }, "timer: R/a2"},
		"a compensation without a reason": {run(func(k *knownRun) { k.history["a4"] = durable.Checkpoint{Status: "completed"} }), "run R has completed, and has executed the compensations"},
		"cancelled without a request":     {run(func(k *knownRun) { k.Status = durable.StatusCancelled }), "which nobody requested"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := good()
			c.spoil(e)
			got := e.judged().violations
			found := slices.ContainsFunc(got, func(v string) bool { return strings.Contains(v, c.want) })
			if c.want == "" && len(got) > 0 || c.want != "" && !found {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A violation is printed with the entries of the ledger for its run.
func TestTraces(t *testing.T) {
	t.Parallel()
	e := good()
	got := e.traces([]string{"I2: R/a0 (step) was executed again", "I3: R/a1", "there is no run in this"})
	if len(got) != len(e.entries)-killerCrashes || !strings.Contains(got[0], "claim epoch 1") || !strings.Contains(got[4], "did epoch 1: a0 completed 1 written") {
		t.Errorf("%d lines of %d entries: %q", len(got), len(e.entries), got)
	}
}

// The model accepts possible responses of a target, in the order of its operations, and no others.
func TestModel(t *testing.T) {
	t.Parallel()
	type exchange struct {
		q request
		a response
	}
	yes, no := response{Result: resultOK}, func(s durable.Status) response { return response{Result: resultRefused, Status: state(s)} }
	get := func(s durable.Status, words string) exchange {
		return exchange{request{Verb: verbGet}, response{Result: resultOK, Status: state(s), Words: words}}
	}
	do := func(v verb) exchange { return exchange{request{Verb: v}, yes} }
	word := func(w string) exchange { return exchange{request{Verb: verbSignal, Word: w}, yes} }
	begun := []exchange{do(verbStart)}
	enough := slices.Clone(begun)
	for i := range wantedSignals {
		enough = append(enough, word(fmt.Sprint(i)))
	}
	all := "[0 1 2 3 4 5]"
	for name, c := range map[string]struct {
		history []exchange
		legal   bool
	}{
		"completes":                        {append(enough[:wantedSignals+1:wantedSignals+1], get(durable.StatusCompleted, all)), true},
		"in another order":                 {append(enough[:wantedSignals+1:wantedSignals+1], get(durable.StatusCompleted, "[1 0 2 3 4 5]")), false},
		"too soon":                         {append(enough[:wantedSignals:wantedSignals], get(durable.StatusCompleted, "")), false},
		"one word twice":                   {append(enough[:wantedSignals:wantedSignals], word("0"), get(durable.StatusCompleted, "")), false},
		"absent after a start":             {append(begun[:1:1], exchange{request{Verb: verbGet}, response{Result: resultNotFound}}), false},
		"completes though cancelled":       {append(enough[:wantedSignals+1:wantedSignals+1], do(verbCancel), get(durable.StatusCompleted, all)), false},
		"cancelled":                        {append(begun[:1:1], do(verbCancel), get(durable.StatusCancelled, "")), true},
		"cancelled without a request":      {append(begun[:1:1], get(durable.StatusCancelled, "")), false},
		"lives again":                      {append(begun[:1:1], do(verbCancel), get(durable.StatusCancelled, ""), get(durable.StatusWaiting, "")), false},
		"ends twice":                       {append(enough[:wantedSignals+1:wantedSignals+1], get(durable.StatusCompleted, all), exchange{request{Verb: verbPause}, no(durable.StatusCancelled)}), false},
		"waits while paused":               {append(begun[:1:1], do(verbPause), get(durable.StatusWaiting, "")), false},
		"paused":                           {append(begun[:1:1], do(verbPause), get(durable.StatusPaused, ""), do(verbResume), get(durable.StatusWaiting, "")), true},
		"paused by nobody":                 {append(begun[:1:1], get(durable.StatusPaused, "")), false},
		"resumed and still paused":         {append(begun[:1:1], do(verbPause), do(verbResume), get(durable.StatusPaused, "")), false},
		"resumed though not paused":        {append(begun[:1:1], do(verbResume)), false},
		"a signal to what has ended":       {append(begun[:1:1], do(verbCancel), get(durable.StatusCancelled, ""), word("late")), false},
		"a signal sent before, once ended": {append(enough[:wantedSignals+1:wantedSignals+1], get(durable.StatusCompleted, all), word("1")), true},
	} {
		var history []porcupine.Operation
		for i, h := range c.history {
			history = append(history, porcupine.Operation{Input: h.q, Output: h.a, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if got := porcupine.CheckOperations(model, history); got != c.legal {
			t.Errorf("%s: legal is %v, want %v", name, got, c.legal)
		}
	}
}

// An entry that a kill has torn is skipped, and its neighbours are read.
func TestTornLedger(t *testing.T) {
	t.Parallel()
	l, err := openLedger(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.add(entry{Kind: kindFunctionBegun, Run: "1"})
	if _, err := l.file.WriteString("\n" + `{"k":`); err != nil {
		t.Fatal(err)
	}
	l.add(entry{Kind: kindFunctionBegun, Run: "2"})
	all, err := l.read()
	if err != nil || len(all) != 2 || all[0].Run != "1" || all[1].Run != "2" || all[1].Pid != os.Getpid() {
		t.Errorf("got %+v, %v", all, err)
	}
}

// A soak in which a fault did not occur is an error, since it proves nothing.
func TestFaultsMustOccur(t *testing.T) {
	t.Parallel()
	full := report{failovers: 1, away: 1, open: 1, kill9: 1, sigstop: 1, immediate: 1, terminated: 1, fenced: 1, operations: 1, transactions: 1, compensations: 1, losersChildren: 1, aroundDeadline: 1, permits: 1, fires: 1, replacedShifts: 1, triggers: 1, backfilled: 1, deleted: 1, retired: 1, held: 1, queued: 1, pauses: 1, counted: 1, folds: 1, repairs: 1, forward: 1, linear: "ok"}
	set := settings{store: "postgres", seconds: longSoak}
	if err := full.print(set); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*report){
		"kill -9": func(r *report) { r.kill9 = 0 }, "SIGSTOP": func(r *report) { r.sigstop = 0 }, "immediate": func(r *report) { r.immediate = 0 },
		"fenced": func(r *report) { r.fenced = 0 }, "failover": func(r *report) { r.failovers = 0 }, "absence": func(r *report) { r.away = 0 }, "open transaction": func(r *report) { r.open = 0 },
		"permit": func(r *report) { r.permits = 0 }, "run of a schedule": func(r *report) { r.fires = 0 },
		"next time of its schedule": func(r *report) { r.replacedShifts = 0 }, "trigger": func(r *report) { r.triggers = 0 }, "backfilled": func(r *report) { r.backfilled = 0 },
		"hold of a run": func(r *report) { r.held = 0 }, "second version": func(r *report) { r.forward = 0 }, "around a deadline": func(r *report) { r.aroundDeadline = 0 },
		"a client deleted": func(r *report) { r.deleted = 0 }, "the retention deleted": func(r *report) { r.retired = 0 },
		"run in a queue": func(r *report) { r.queued = 0 }, "pause of a queue": func(r *report) { r.pauses = 0 }, "comparison": func(r *report) { r.counted = 0 },
		"start that folds": func(r *report) { r.folds = 0 }, "repair": func(r *report) { r.repairs = 0 },
		"1 violations": func(r *report) { r.violations = []string{"x"} },
	} {
		r := full
		spoil(&r)
		if err := r.print(set); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	short := full
	if short.retired, short.aroundDeadline, short.forward = 0, 0, 0; short.print(settings{store: "postgres", seconds: longSoak - 1}) != nil {
		t.Error("a short soak must have played what is rare")
	}
	if err := errors.Join(settings{store: "mysql", seconds: 60}.check(nil), settings{store: "sqlite", seconds: 1}.check(nil),
		settings{store: "sqlite", seconds: 60, keep: "no folder"}.check(nil)); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("wrong settings: %v", err)
	}
}
