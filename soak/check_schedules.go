package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// pauseSlack is how long before a pause a scheduled time may be that the pause leaves undecided.
const pauseSlack = 10 * time.Second

// checkSchedules checks the schedules with overlap policies: which times they decided and how, their runs, and the triggers and
// backfills.
func (e *evidence) checkSchedules(f *findings) {
	runs := make(map[string]map[time.Time]*knownRun) // by schedule and time
	for name := range shiftSchedules {
		runs[name] = make(map[time.Time]*knownRun)
	}
	for _, k := range e.order {
		if k.Workflow != shiftName {
			continue
		}
		name, at, err := parseShift(k.ID)
		if of := runs[name]; err != nil || of == nil || of[at] != nil {
			f.addViolation("schedule: run %s (%s) has a time that is none, or that another run has: %v", k.ID, k.RunID, err)
			continue
		}
		runs[name][at] = k
		f.report.shifts++
	}
	visible := e.endsVisible()
	for _, name := range slices.Sorted(maps.Keys(shiftSchedules)) {
		s := &scheduleChecker{evidence: e, findings: f, name: name, overlap: shiftSchedules[name], runs: runs[name], fires: make(map[time.Time]durable.ScheduleFire), endVisible: visible}
		s.check()
	}
	for _, x := range e.entries {
		if x.Kind != kindShiftBegun {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, x.Value)
		if k := runs[x.Step][at]; err != nil || k == nil || k.RunID != x.Run {
			f.addViolation("schedule %s: run %s was executed for %s, which has another run, or none", x.Step, x.Run, x.Value)
		}
	}
	e.checkTriggers(f)
	e.checkBackfills(f, runs)
}

// endsVisible returns when the ends of runs were visible at the latest, by UUID. The worker sets EndedAt before the commit, which may wait for
// the database. A worker that was killed after the commit has not recorded it.
func (e *evidence) endsVisible() map[string]time.Time {
	visible := make(map[string]time.Time)
	for _, k := range e.order {
		visible[k.RunID] = k.EndedAt.Add(unknownStartDelay)
	}
	for _, x := range e.entries {
		if x.Kind != kindCommitted {
			continue
		}
		for _, w := range x.Writes {
			if k := e.runs[w.Run]; k != nil && w.Outcome == written && w.What == string(k.Status) {
				visible[w.Run] = x.At
			}
		}
	}
	return visible
}

// scheduleChecker checks one schedule.
type scheduleChecker struct {
	*evidence
	*findings
	name       string
	overlap    durable.Overlap
	runs       map[time.Time]*knownRun            // by their times
	fires      map[time.Time]durable.ScheduleFire // by their times
	oldest     time.Time                          // the fires from this time on are kept
	times      []time.Time                        // of the fires that are no triggers, in order
	regular    []*knownRun                        // the runs that the schedule itself has started, in the order of their creation
	endVisible map[string]time.Time               // by UUID; see endsVisible
}

func (s *scheduleChecker) check() {
	all := s.scheduleFires[s.name]
	if len(all) >= keptFires {
		s.oldest = all[len(all)-1].At.Add(time.Minute)
	}
	for _, x := range all {
		if _, twice := s.fires[x.At]; twice {
			s.addViolation("schedule %s: time %v has two fires", s.name, x.At)
		}
		s.fires[x.At] = x
		if x.Kind != durable.FireTriggered {
			s.times = append(s.times, x.At)
		}
	}
	slices.SortFunc(s.times, time.Time.Compare)
	for at, k := range s.runs {
		x := s.fires[at]
		if x.Outcome == "" && !at.Before(s.oldest) {
			s.addViolation("schedule %s: time %v has run %s, and no fire", s.name, at, k.RunID)
		}
		if x.Outcome == durable.FireStarted && x.Kind == durable.FireScheduled {
			s.regular = append(s.regular, k)
		}
	}
	slices.SortFunc(s.regular, func(a, b *knownRun) int { return strings.Compare(a.ID, b.ID) }) // by their times, which are whole seconds
	for at, x := range s.fires {
		if !at.Before(s.oldest) {
			s.checkOutcome(x)
		}
	}
	s.checkNoneMissing()
	s.checkOneAtATime()
	for at, k := range s.runs {
		if !at.Before(s.oldest) {
			s.checkRun(at, k)
		}
	}
}

// keptFires is how many fires of a schedule the library keeps in full.
const keptFires = 1000

// checkOutcome checks that the overlap policy and the other runs allow what happened at a time.
func (s *scheduleChecker) checkOutcome(x durable.ScheduleFire) {
	k := s.runs[x.At]
	if (k != nil) != (x.Outcome == durable.FireStarted) {
		s.addViolation("schedule %s: the outcome of %v is %s, and its run is %v", s.name, x.At, x.Outcome, k != nil)
	}
	newer := slices.ContainsFunc(s.times, x.At.Before)
	switch x.Outcome {
	case durable.FireStarted:
		if k != nil && x.ID != k.ID {
			s.addViolation("schedule %s: the fire of %v has the ID %s of run %s", s.name, x.At, x.ID, k.ID)
		}
		return
	case durable.FireWaiting:
		if s.overlap != durable.OverlapSkip && !newer {
			return // the schedule was paused before the previous run had ended
		}
	case durable.FireSkipped:
		if s.overlap == durable.OverlapSkip && s.earlierRunLasted(x.At, x.FiredAt) {
			return
		}
	case durable.FireReplaced:
		// A newer time had come, and the previous run had not ended when this one was due.
		if s.overlap != durable.OverlapSkip && newer && !x.FiredAt.Add(clockSkew).Before(x.At.Add(shiftEvery)) && (s.overlap == durable.OverlapCancel || s.earlierRunLasted(x.At, x.At)) {
			return
		}
	}
	s.addViolation("schedule %s: the outcome of %v is %s, decided at %v, without need", s.name, x.At, x.Outcome, x.FiredAt)
}

// earlierRunLasted reports whether the run that the schedule itself had started for an earlier scheduled time may have been live until a
// moment. The schedule decides its times in order, at their FiredAt or later.
func (s *scheduleChecker) earlierRunLasted(scheduled, moment time.Time) bool {
	return slices.ContainsFunc(s.regular, func(k *knownRun) bool {
		return k.ID < shiftRunID(s.name, scheduled) && !s.endVisible[k.RunID].Before(moment.Add(-clockSkew))
	})
}

// checkNoneMissing checks that each time from the first to the last was decided, except in a pause.
func (s *scheduleChecker) checkNoneMissing() {
	for i, at := range s.times {
		if i == 0 || at.Before(s.oldest) {
			continue
		}
		for missing := s.times[i-1].Add(shiftEvery); missing.Before(at); missing = missing.Add(shiftEvery) {
			paused := s.name == pausedSchedule && slices.ContainsFunc(s.scheduleLoad.pauses, func(p changePeriod) bool {
				return !missing.Before(p.from.Add(-pauseSlack)) && !missing.After(p.to)
			})
			mayPrecede := missing.Before(s.scheduleLoad.setAt[s.name]) // the schedule, when a backfill decided a time before
			if !paused && !mayPrecede {
				s.addViolation("schedule %s: time %v was not decided", s.name, missing)
			}
		}
	}
}

// checkOneAtATime checks that the schedule started the run of no time before the runs of the earlier times had ended.
func (s *scheduleChecker) checkOneAtATime() {
	for i, k := range s.regular {
		if i == 0 {
			continue
		}
		before := s.regular[i-1]
		if before.EndedAt.After(k.CreatedAt.Add(clockSkew)) {
			s.addViolation("schedule %s: run %s was started at %v, and run %s ended at %v", s.name, k.ID, k.CreatedAt, before.ID, before.EndedAt)
		}
	}
}

// checkRun checks how the run of a time ended: a cancelled one was cancelled by the next time of schedule canceling, and compensated.
func (s *scheduleChecker) checkRun(at time.Time, k *knownRun) {
	endless := isEndless(s.name, at)
	switch {
	case k.Status == durable.StatusCompleted && !endless:
		if _, undone := k.history[shiftUndoStep]; undone {
			s.addViolation("schedule %s: run %s has completed, and has compensated", s.name, k.ID)
		}
		return
	case k.Status != durable.StatusCancelled || s.overlap != durable.OverlapCancel || s.fires[at].Kind != durable.FireScheduled:
		s.addViolation("schedule %s: run %s is %s", s.name, k.ID, k.Status)
		return
	}
	s.report.replacedShifts++
	bySchedule := k.Cancellation != nil && k.Cancellation.Actor == "durable" && strings.Contains(k.Cancellation.Reason, `schedule "`+s.name+`"`)
	switch {
	case s.scheduleLoad.ended[k.ID]:
	case !bySchedule:
		s.addViolation("schedule %s: run %s was cancelled for another reason: %+v", s.name, k.ID, k.Cancellation)
	case k.EndedAt.Add(clockSkew).Before(at.Add(shiftEvery)):
		s.addViolation("schedule %s: run %s was cancelled at %v, before the next time", s.name, k.ID, k.EndedAt)
	}
	if _, slept := k.history["work"]; slept && k.history[shiftUndoStep].Status != "completed" { // the compensation is registered before the sleep
		s.addViolation("schedule %s: run %s was cancelled, and its compensation is %q", s.name, k.ID, k.history[shiftUndoStep].Status)
	}
}

// checkTriggers checks that each trigger that was acknowledged started the run that it returned, and that every other one started at
// most one.
func (e *evidence) checkTriggers(f *findings) {
	started := make(map[string][]durable.Event) // by reason
	for _, x := range e.events {
		if x.Type == durable.EventTriggered {
			started[x.Reason] = append(started[x.Reason], x)
		}
	}
	for _, t := range e.scheduleLoad.triggers {
		runs := started[t.reason]
		delete(started, t.reason)
		f.report.triggers += len(runs)
		switch {
		case len(runs) > 1, len(runs) == 0 && !t.failed:
			f.addViolation("trigger: call %s for schedule %s, which returned %q, started %d runs", t.reason, t.schedule, t.id, len(runs))
		case len(runs) == 0:
		case runs[0].New != t.schedule || runs[0].Actor != scheduleActor || !t.failed && runs[0].ID != t.id || e.runs[runs[0].RunID] == nil:
			f.addViolation("trigger: call %s for schedule %s, which returned %q, started another run: %+v", t.reason, t.schedule, t.id, runs[0])
		}
	}
	for reason := range started {
		f.addViolation("trigger: call %q was never made, and has started a run", reason)
	}
	for name, fires := range e.scheduleFires {
		for _, x := range fires {
			if x.Kind == durable.FireTriggered && !slices.ContainsFunc(e.events, func(v durable.Event) bool { return v.Type == durable.EventTriggered && v.ID == x.ID }) {
				f.addViolation("trigger: schedule %s has a fire at %v, and its run has no event", name, x.At)
			}
		}
	}
}

// checkBackfills checks that each backfill that was acknowledged left no time of its range without a run, and that it started as many
// runs as it returned, all of them in its range.
func (e *evidence) checkBackfills(f *findings, runs map[string]map[time.Time]*knownRun) {
	started := make(map[string][]durable.Event) // by reason
	for _, x := range e.events {
		if x.Type == durable.EventBackfilled {
			started[x.Reason] = append(started[x.Reason], x)
		}
	}
	waited := make(map[string]bool) // IDs of the times without a run that have waited for one
	for name, fires := range e.scheduleFires {
		for _, x := range fires {
			if x.Outcome == durable.FireReplaced || x.Outcome == durable.FireWaiting {
				waited[shiftRunID(name, x.At)] = true
			}
		}
	}
	for _, b := range e.scheduleLoad.backfills {
		own := started[b.reason]
		f.report.backfilled += len(own)
		for _, x := range own {
			name, at, err := parseShift(x.ID)
			if err != nil || name != b.schedule || at.Before(b.from) || !at.Before(b.to) || x.New != b.schedule || x.Actor != scheduleActor || runs[name][at] == nil || runs[name][at].RunID != x.RunID {
				f.addViolation("backfill: call %s of schedule %s from %v to %v started %+v", b.reason, b.schedule, b.from, b.to, x)
			}
		}
		if b.failed {
			if len(own) < b.result.Started {
				f.addViolation("backfill: call %s returned an error and %+v, and started %d runs", b.reason, b.result, len(own))
			}
			continue
		}
		least, most := 0, 0
		for at := b.from.Add(shiftEvery - 1).Truncate(shiftEvery); at.Before(b.to); at = at.Add(shiftEvery) {
			most++
			if at.After(b.decided) {
				continue
			}
			least++
			// Only the newest time may have waited at the time of the call: a newer one replaces it. FiredAt does not tell when, since a
			// process may be stopped between the decision and its commit.
			waiting := at.Equal(b.decided) && waited[shiftRunID(b.schedule, at)]
			if runs[b.schedule][at] == nil && !waiting {
				f.addViolation("backfill: call %s of schedule %s from %v to %v left %v without a run", b.reason, b.schedule, b.from, b.to, at)
			}
		}
		if n := b.result.Started + b.result.AlreadyFired; len(own) != b.result.Started || b.result.IDTaken != 0 || n < least || n > most {
			f.addViolation("backfill: call %s of schedule %s from %v to %v returned %+v for %d to %d times, and started %d runs", b.reason, b.schedule, b.from, b.to, b.result, least, most, len(own))
		}
	}
}
