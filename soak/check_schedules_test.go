package main

import (
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// evening is a time whose seconds divisible by endlessEvery begin at zero.
var evening = noon.Add(8 * time.Hour)

// goodSchedules returns evidence without a violation: of schedule skipping, a run whose time the second one was skipped for and then
// backfilled, and a trigger; of schedule canceling, a run that the next time ended.
func goodSchedules() *evidence {
	e := &evidence{
		runs: make(map[string]*knownRun), scheduleFires: make(map[string][]durable.ScheduleFire),
		scheduleLoad: &scheduleLoad{began: evening, setAt: map[string]time.Time{skippingSchedule: evening, waitingSchedule: evening, cancelingSchedule: evening, pausedSchedule: evening}, ended: make(map[string]bool)},
	}
	add := func(name string, ms, from, to int, kind durable.FireKind, outcome durable.FireOutcome) *knownRun {
		at := evening.Add(time.Duration(ms) * time.Millisecond)
		x := durable.ScheduleFire{At: at, FiredAt: evening.Add(time.Duration(from) * time.Millisecond), Kind: kind, Outcome: outcome}
		id := shiftRunID(name, at)
		if outcome == durable.FireStarted {
			x.ID = id
			k := &knownRun{history: make(map[string]durable.Checkpoint), RunInfo: &durable.RunInfo{
				ID: id, RunID: "R" + id, Workflow: shiftName, Status: durable.StatusCompleted, CreatedAt: x.FiredAt, EndedAt: evening.Add(time.Duration(to) * time.Millisecond),
			}}
			e.runs[k.RunID], e.order = k, append(e.order, k)
			e.entries = append(e.entries, entry{Kind: kindShiftBegun, Run: k.RunID, Step: name, Value: at.Format(time.RFC3339Nano)})
		}
		e.scheduleFires[name] = append(e.scheduleFires[name], x)
		return e.runs["R"+id]
	}
	add(skippingSchedule, 0, 0, 1500, durable.FireScheduled, durable.FireStarted)
	late := add(skippingSchedule, 1000, 5000, 6000, durable.FireBackfill, durable.FireStarted)
	add(skippingSchedule, 2000, 2000, 5000, durable.FireScheduled, durable.FireStarted)
	add(skippingSchedule, 3000, 3000, 0, durable.FireScheduled, durable.FireSkipped)
	now := add(skippingSchedule, 3500, 3500, 3600, durable.FireTriggered, durable.FireStarted)
	cancelled := add(cancelingSchedule, 0, 0, 1200, durable.FireScheduled, durable.FireStarted)
	cancelled.Status, cancelled.Cancellation = durable.StatusCancelled, &durable.Cancellation{Actor: "durable", Reason: `the next time of schedule "canceling" has come`}
	cancelled.history["work"] = durable.Checkpoint{}
	cancelled.history[shiftUndoStep] = durable.Checkpoint{Status: "completed"}
	add(cancelingSchedule, 1000, 1200, 1300, durable.FireScheduled, durable.FireStarted)
	add(waitingSchedule, 0, 0, 2500, durable.FireScheduled, durable.FireStarted)
	add(waitingSchedule, 1000, 2000, 0, durable.FireScheduled, durable.FireReplaced)
	add(waitingSchedule, 2000, 2500, 2600, durable.FireScheduled, durable.FireStarted)
	e.events = []durable.Event{
		{Type: durable.EventTriggered, ID: now.ID, RunID: now.RunID, Actor: scheduleActor, Reason: "t", New: skippingSchedule},
		{Type: durable.EventBackfilled, ID: late.ID, RunID: late.RunID, Actor: scheduleActor, Reason: "b", New: skippingSchedule},
	}
	e.scheduleLoad.triggers = []*triggerCall{{schedule: skippingSchedule, reason: "t", id: now.ID}, {schedule: skippingSchedule, reason: "u", failed: true}}
	e.scheduleLoad.backfills = []*backfillCall{{
		schedule: skippingSchedule, reason: "b", from: evening, to: evening.Add(3 * time.Second), decided: evening.Add(2 * time.Second),
		result: durable.BackfillResult{Started: 1, AlreadyFired: 2},
	}}
	return e
}

// The checker finds no violation in good evidence of schedules, and finds each that is added to it.
func TestScheduleChecker(t *testing.T) {
	t.Parallel()
	run := func(e *evidence, name string, ms int) *knownRun {
		return e.runs["R"+shiftRunID(name, evening.Add(time.Duration(ms)*time.Millisecond))]
	}
	for name, c := range map[string]struct {
		spoil func(*evidence)
		want  string // empty: no violation
	}{
		"nothing":     {func(*evidence) {}, ""},
		"two at once": {func(e *evidence) { run(e, skippingSchedule, 0).EndedAt = evening.Add(2500 * time.Millisecond) }, "schedule skipping: run skipping@2030-01-01T20:00:02Z was started"},
		"two at once, before the cancelled one has ended": {func(e *evidence) { run(e, cancelingSchedule, 0).EndedAt = evening.Add(1400 * time.Millisecond) }, "schedule canceling: run"},
		"a time is skipped without need":                  {func(e *evidence) { run(e, skippingSchedule, 2000).EndedAt = evening.Add(2700 * time.Millisecond) }, "is skipped, decided"},
		"a time is replaced without need": {func(e *evidence) {
			run(e, waitingSchedule, 0).EndedAt = evening.Add(700 * time.Millisecond)
		}, "is replaced, decided"},
		"a time is replaced by no newer one": {func(e *evidence) {
			fires := e.scheduleFires[waitingSchedule]
			fires[1].FiredAt = evening.Add(1500 * time.Millisecond)
		}, "is replaced, decided"},
		"a time is missed":      {func(e *evidence) { e.scheduleFires[waitingSchedule][1].Outcome = durable.FireMissed }, "is missed"},
		"a time waits for ever": {func(e *evidence) { e.scheduleFires[waitingSchedule][1].Outcome = durable.FireWaiting }, "is waiting"},
		"a time is not decided": {func(e *evidence) {
			e.scheduleFires[waitingSchedule] = append(e.scheduleFires[waitingSchedule][:1], e.scheduleFires[waitingSchedule][2])
		}, "was not decided"},
		"a run is lost":                       {func(e *evidence) { e.order = e.order[1:] }, "its run is false"},
		"a run has no fire":                   {func(e *evidence) { e.scheduleFires[cancelingSchedule] = e.scheduleFires[cancelingSchedule][:1] }, "and no fire"},
		"a time has two runs":                 {func(e *evidence) { e.order = append(e.order, e.order[0]) }, "or that another run has"},
		"a time is executed twice":            {func(e *evidence) { e.entries[0].Run = "X" }, "run X was executed"},
		"an endless run completes":            {func(e *evidence) { run(e, cancelingSchedule, 0).Status = durable.StatusCompleted }, "run canceling@2030-01-01T20:00:00Z is completed"},
		"a waiting run is cancelled":          {func(e *evidence) { run(e, waitingSchedule, 0).Status = durable.StatusCancelled }, "run waiting@2030-01-01T20:00:00Z is cancelled"},
		"a cancel has another reason":         {func(e *evidence) { run(e, cancelingSchedule, 0).Cancellation.Actor = "ann" }, "for another reason"},
		"a cancelled run does not compensate": {func(e *evidence) { delete(run(e, cancelingSchedule, 0).history, shiftUndoStep) }, "its compensation is"},
		"a completed run compensates": {func(e *evidence) {
			run(e, waitingSchedule, 0).history[shiftUndoStep] = durable.Checkpoint{Status: "completed"}
		}, "and has compensated"},
		"a trigger starts nothing":    {func(e *evidence) { e.events = e.events[1:] }, "started 0 runs"},
		"a trigger starts two runs":   {func(e *evidence) { e.events = append(e.events, e.events[0]) }, "started 2 runs"},
		"a trigger has another actor": {func(e *evidence) { e.events[0].Actor = "ann" }, "started another run"},
		"a trigger of nobody":         {func(e *evidence) { e.scheduleLoad.triggers = e.scheduleLoad.triggers[1:] }, "was never made"},
		"a backfill leaves a time": {func(e *evidence) {
			e.scheduleLoad.backfills[0].to, e.scheduleLoad.backfills[0].decided = evening.Add(4*time.Second), evening.Add(4*time.Second)
		}, "without a run"},
		"a backfill starts too few":      {func(e *evidence) { e.events = e.events[:1] }, "and started 0 runs"},
		"a backfill counts wrong":        {func(e *evidence) { e.scheduleLoad.backfills[0].result.AlreadyFired = 1 }, "for 3 to 3 times"},
		"a backfill starts another time": {func(e *evidence) { e.scheduleLoad.backfills[0].from = evening.Add(1500 * time.Millisecond) }, "started {"},
		"a backfill leaves what waits, and is replaced later": {func(e *evidence) {
			e.scheduleLoad.backfills = append(e.scheduleLoad.backfills, &backfillCall{
				schedule: waitingSchedule, reason: "c", from: evening, to: evening.Add(2 * time.Second), decided: evening.Add(time.Second), result: durable.BackfillResult{AlreadyFired: 2},
			})
		}, ""},
		"a backfill leaves what was replaced before": {func(e *evidence) {
			e.scheduleLoad.backfills = append(e.scheduleLoad.backfills, &backfillCall{
				schedule: waitingSchedule, reason: "c", from: evening, to: evening.Add(2 * time.Second), decided: evening.Add(2 * time.Second), result: durable.BackfillResult{AlreadyFired: 2},
			})
		}, "without a run"},
	} {
		t.Run(name, func(t *testing.T) {
			e, f := goodSchedules(), &findings{}
			c.spoil(e)
			for id, k := range e.runs {
				e.entries = append(e.entries, entry{Kind: kindCommitted, At: k.EndedAt, Writes: []write{{Run: id, What: string(k.Status), Outcome: written}}})
			}
			e.checkSchedules(f)
			switch got := strings.Join(f.violations, "\n"); {
			case c.want == "" && got != "", c.want != "" && !strings.Contains(got, c.want):
				t.Errorf("violations: %q, want %q", got, c.want)
			}
		})
	}
}
