package main

import (
	"cmp"
	"encoding/json/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// foldStart is a start that folds, as the ledger has it.
type foldStart struct {
	kind, key, mode string
	n               int       // its input
	begunAt         time.Time // when it was first made
	outcomeKnownAt  time.Time // when its outcome was first known; zero: never
	run             string    // what it led to
	outcome         string    // live, skipped or rolled back; else empty
}

// before reports whether the start was over when another began.
func (s *foldStart) before(other *foldStart) bool {
	return !s.outcomeKnownAt.IsZero() && s.outcomeKnownAt.Before(other.begunAt)
}

// ledToRun reports whether the start is known to have led to a run.
func (s *foldStart) ledToRun() bool { return !s.outcomeKnownAt.IsZero() && s.outcome == "" }

// foldStarts returns the starts that fold, in the order in which they began. It checks that a start of a step that is executed again
// leads to the same run.
func (e *evidence) foldStarts(f *findings) (all []*foldStart) {
	byID := make(map[string]*foldStart)
	for _, x := range e.entries {
		s := byID[x.Exec]
		switch {
		case x.Kind == kindFoldBegun && s == nil:
			s = &foldStart{mode: x.Value, n: x.Attempt, begunAt: x.At}
			s.kind, s.key, _ = strings.Cut(x.Step, "/")
			byID[x.Exec] = s
			all = append(all, s)
		case x.Kind == kindFoldEnded && s.outcomeKnownAt.IsZero():
			s.outcomeKnownAt, s.run, s.outcome = x.At, x.Run, x.Err
			f.report.folds++
		case x.Kind == kindFoldEnded && s.run != x.Run:
			f.addViolation("fold: the start of %s in the step of run %s led to run %s, and to run %s when the step was executed again", x.Step, x.Exec, s.run, x.Run)
		}
	}
	slices.SortStableFunc(all, func(a, b *foldStart) int { return a.begunAt.Compare(b.begunAt) })
	return all
}

// checkFolds checks the starts that fold. That at most one singleton executes is checked with the queues.
func (e *evidence) checkFolds(f *findings) {
	byKey := make(map[string][]*foldStart)
	for _, s := range e.foldStarts(f) {
		byKey[s.kind+"/"+s.key] = append(byKey[s.kind+"/"+s.key], s)
		if s.run != "" && e.runs[s.run] == nil {
			f.addViolation("I1: run %s is lost, to which a start of %s/%s led", s.run, s.kind, s.key)
		}
	}
	for _, k := range e.order {
		if k.Workflow == "feeding" && k.Status != durable.StatusCompleted {
			f.addViolation("fold: run %s, whose step makes a start, is %s: %v", k.RunID, k.Status, k.Err)
		}
	}
	for name, starts := range byKey {
		switch kind, key, _ := strings.Cut(name, "/"); kind {
		case foldSingleton:
			e.checkSingletons(f, starts)
		case foldDebounce:
			e.checkDebounced(f, key, starts)
		case foldThrottle:
			e.checkThrottles(f, key, starts)
		}
	}
}

// checkSingletons checks that a start that joined a run or was refused for it did so while the run was live, and that a run was
// cancelled only for a newer start.
func (e *evidence) checkSingletons(f *findings, starts []*foldStart) {
	over := make(map[string]time.Time) // by run: when its end was surely written
	for _, x := range e.entries {
		for _, w := range x.Writes {
			if x.Kind == kindCommitted && ended(durable.Status(w.What)) && w.Outcome == written && over[w.Run].IsZero() {
				over[w.Run] = x.At
			}
		}
	}
	for _, s := range starts {
		k := e.runs[s.run]
		if k == nil {
			continue
		}
		switch at := over[s.run]; {
		case !at.IsZero() && at.Before(s.begunAt):
			f.addViolation("singleton: a start of key %s at %v led to run %s (%s), which had ended at %v", s.key, s.begunAt, s.run, cmp.Or(s.outcome, s.mode), at)
		case k.CreatedAt.After(s.outcomeKnownAt.Add(clockSkew)):
			f.addViolation("singleton: a start of key %s until %v led to run %s, which was created at %v", s.key, s.outcomeKnownAt, s.run, k.CreatedAt)
		case s.outcome == "rolled back" || k.Status == durable.StatusCompleted:
		case k.Status != durable.StatusCancelled || k.Cancellation == nil || !strings.Contains(k.Cancellation.Reason, "replaces it"):
			f.addViolation("singleton: run %s of key %s is %s: %v", s.run, s.key, k.Status, k.Err)
		default:
			if !slices.ContainsFunc(starts, func(other *foldStart) bool {
				return other.mode == string(durable.SingletonReplace) && other.run != s.run && other.outcome != "rolled back" && (other.outcomeKnownAt.IsZero() || other.outcomeKnownAt.After(k.CreatedAt.Add(-clockSkew)))
			}) {
				f.addViolation("singleton: run %s of key %s was cancelled, and no newer start replaces it", s.run, s.key)
			}
		}
	}
}

// checkDebounced checks that no input was overwritten by an older one, that no start was lost, and that no run began before its time.
func (e *evidence) checkDebounced(f *findings, key string, starts []*foldStart) {
	byInput := make(map[int]*foldStart)
	for _, s := range starts {
		byInput[s.n] = s
	}
	ran, at := make(map[string]int), make(map[string]time.Time)
	for _, x := range e.entries {
		if x.Kind != kindDebounceRan || x.Step != key {
			continue
		}
		n, err := strconv.Atoi(x.Value)
		if before, again := ran[x.Run]; err != nil || again && before != n {
			f.addViolation("debounce: run %s was executed with the inputs %d and %s", x.Run, before, x.Value)
		}
		if at[x.Run].IsZero() {
			ran[x.Run], at[x.Run] = n, x.At
		}
	}
	for run, n := range ran {
		if used := byInput[n]; used == nil || used.outcome == "rolled back" {
			f.addViolation("debounce: run %s was executed with the input %d, which no start of key %s has, or one that was rolled back", run, n, key)
		}
	}
	for _, s := range starts {
		k := e.runs[s.run]
		if k == nil || !s.ledToRun() {
			continue
		}
		n, executed := ran[s.run]
		used := byInput[n]
		if !executed || k.Status != durable.StatusCompleted || used == nil {
			f.addViolation("debounce: run %s, to which the start with input %d of key %s led, is %s, and was executed: %v", s.run, s.n, key, k.Status, executed)
			continue
		}
		if used.before(s) {
			f.addViolation("debounce: run %s was executed with the input %d, and the start with input %d, which led to it, began after that one was over", s.run, n, s.n)
		}
		due := s.begunAt.Add(quiet)
		if latest := k.CreatedAt.Add(atMost); due.After(latest) {
			due = latest
		}
		if at[s.run].Before(due.Add(-clockSkew)) {
			f.addViolation("debounce: run %s was executed at %v, and a start at %v delays it until %v", s.run, at[s.run], s.begunAt, due)
		}
	}
}

// checkThrottles checks that no more starts came through than the throttle allows, and that none was skipped without need.
func (e *evidence) checkThrottles(f *findings, key string, starts []*foldStart) {
	var through []*foldStart
	for _, s := range starts {
		if s.ledToRun() {
			through = append(through, s)
		}
	}
	for i := throttleCount; i < len(through); i++ {
		last := time.Time{}
		for _, s := range through[i-throttleCount : i+1] {
			if s.outcomeKnownAt.After(last) {
				last = s.outcomeKnownAt
			}
		}
		if took := last.Sub(through[i-throttleCount].begunAt); took < throttlePeriod {
			f.addViolation("throttle: %d starts of key %s came through in %v", throttleCount+1, key, took)
		}
	}
	over := make(map[string]time.Time) // by run: when the start that created it was over
	for _, s := range through {
		over[s.run] = s.outcomeKnownAt
	}
	for _, s := range starts {
		if s.outcome != "skipped" {
			continue
		}
		n := 0
		for _, k := range e.order {
			var in foldInput
			if k.Workflow != "some" || json.Unmarshal(k.Input, &in) != nil || in.Key != key {
				continue
			}
			counted, known := over[k.RunID] // at the latest
			if !known {
				counted = k.CreatedAt.Add(unknownStartDelay)
			}
			if counted.After(s.begunAt.Add(-throttlePeriod-clockSkew)) && k.CreatedAt.Before(s.outcomeKnownAt.Add(clockSkew)) {
				n++
			}
		}
		if n < throttleCount {
			f.addViolation("throttle: a start of key %s was skipped at %v, after %d others", key, s.outcomeKnownAt, n)
		}
	}
}

// unknownStartDelay is how long after the creation of its run a start whose outcome is unknown may be counted by its throttle: it waits for the
// database.
const unknownStartDelay = 30 * time.Second
