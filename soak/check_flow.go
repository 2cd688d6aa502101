package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// checkFlow checks the limits and the schedule: no limit and no rate was exceeded, and each time started exactly one run.
func (e *evidence) checkFlow(f *findings) {
	e.checkLimits(f)
	e.checkRate(f, paced.Name(), pacedBurst, e.boundPeriods(paced.Name(), pacedRate))
	for key := range keyedKeys {
		name := limitKeyName(keyed.Name(), strconv.Itoa(key))
		e.checkRate(f, name, keyedBurst, e.boundPeriods(name, keyedRate))
	}
	e.checkFires(f)
}

// surelyHeld is how long after the begin of a function its permit is surely held: a process that is stopped may lose its lease
// after that, and its function still be executing when another has the permit. A lease is renewed when a quarter of it is over,
// and then at most three eighths of it later.
const surelyHeld = lease / 3

// checkLimits checks that no more functions than the limit allows have executed at once. The function of a process that was killed
// has ended with the last entry of its process at the earliest.
func (e *evidence) checkLimits(f *findings) {
	last, freed := make(map[int]time.Time), make(map[string]time.Time)
	for _, x := range e.entries {
		if x.At.After(last[x.Pid]) {
			last[x.Pid] = x.At
		}
		if x.Kind == kindPermitFreed {
			freed[x.Exec] = x.At
		}
	}
	type change struct {
		at time.Time
		by int
		x  entry
	}
	var changes []change
	for _, x := range e.entries {
		if x.Kind != kindPermitHeld {
			continue
		}
		end, ended := freed[x.Exec]
		if !ended {
			end = last[x.Pid]
		}
		if latest := x.At.Add(surelyHeld); end.After(latest) {
			end = latest
		}
		f.report.permits++
		if !end.After(x.At) {
			continue // its process was killed at once
		}
		changes = append(changes, change{x.At, 1, x}, change{end, -1, x})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	held, periods := make(map[string]int), e.boundPeriods(few.Name(), fewAtOnce)
	for _, c := range changes {
		most := keyedAtOnce
		if c.x.Step == few.Name() {
			most = largestBound(periods, c.at)
		}
		if held[c.x.Step] += c.by; held[c.x.Step] > most && c.by > 0 {
			f.addViolation("limit: %d functions under limit %s executed at %v, and %d may, the last one of run %s in process %d", held[c.x.Step], c.x.Step, c.at, most, c.x.Run, c.x.Pid)
		}
	}
}

// checkRate checks the times of the grants with the generic cell rate algorithm, as long as one bound applies.
func (e *evidence) checkRate(f *findings, name string, burst int, periods []boundPeriod) {
	var grants []time.Time
	for _, x := range e.entries {
		if x.Kind != kindPermitGranted || x.Step != name {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, x.Value)
		if err != nil {
			f.addViolation("rate: a grant has the time %q", x.Value)
		}
		grants = append(grants, at)
	}
	slices.SortFunc(grants, time.Time.Compare)
	for _, p := range periods {
		interval := time.Second / time.Duration(p.bound)
		var paid time.Time // the rate is used up to this time
		for _, at := range grants {
			if at.Before(p.alone) || !at.Before(p.ends) {
				continue
			}
			if paid.Before(at) {
				paid = at
			}
			if paid = paid.Add(interval); paid.Sub(at) > time.Duration(burst)*interval {
				f.addViolation("rate: limit %s granted too much at %v: the rate is used up to %v", name, at, paid)
			}
		}
	}
	f.report.permits += len(grants)
}

// checkFires checks that there is exactly one run for each second, from the first to the last, that it has completed, and that no other
// run was executed for that time.
func (e *evidence) checkFires(f *findings) {
	runs := make(map[time.Time]*knownRun)
	var first, last time.Time
	for _, k := range e.order {
		text, ok := strings.CutPrefix(k.ID, tickName+"@")
		if !ok {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		switch {
		case err != nil || runs[at] != nil:
			f.addViolation("schedule: run %s (%s) has a time that is none, or that another run has: %v", k.ID, k.RunID, err)
		case k.Status != durable.StatusCompleted:
			f.addViolation("schedule: run %s is %s", k.ID, k.Status)
		}
		runs[at] = k
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	for at := first; !first.IsZero() && at.Before(last); at = at.Add(tickEvery) {
		if runs[at] == nil {
			f.addViolation("schedule: no run was started for %v", at)
		}
	}
	for _, x := range e.entries {
		if x.Kind != kindScheduled {
			continue
		}
		at, err := time.Parse(time.RFC3339, x.Value)
		if k := runs[at]; err != nil || k == nil || k.RunID != x.Run {
			f.addViolation("schedule: run %s was executed for %s, which has another run, or none", x.Run, x.Value)
		}
	}
	f.report.fires = len(runs)
}
