package main

import (
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

const (
	// clockSkew is how far the workers' measurements of the database's clock may be apart, and how long before the end of its lease
	// a run is surely held.
	clockSkew = 100 * time.Millisecond
	// maxChangeDelay is how long after the last entry of its process a change of a queue may take effect.
	maxChangeDelay = 10 * time.Second
)

// ownedExecution is an execution of a run's function, for as long as its process surely owned the run.
type ownedExecution struct {
	run        string
	queue, key string
	from, to   time.Time
	mayPass    bool // it may need no place, because the cancel of the run was requested
}

// ownedExecutions returns the executions of the functions of queued runs and of singletons. A process that was stopped past its lease may
// execute a function although another process owns the run: its stay ends with the lease that it knows of.
func (e *evidence) ownedExecutions() (all []*ownedExecution) {
	type owned struct {
		pid int
		run string
	}
	lease, last := make(map[owned]time.Time), make(map[int]time.Time)
	current, byExec := make(map[owned][]*ownedExecution), make(map[string]*ownedExecution)
	cancelled := make(map[string]bool)
	end := func(s *ownedExecution, at time.Time) {
		if s.to.IsZero() || s.to.After(at) {
			s.to = at
		}
	}
	ends := make(map[*ownedExecution]time.Time) // of the lease
	pids := make(map[*ownedExecution]int)
	for _, x := range e.entries {
		if x.At.After(last[x.Pid]) {
			last[x.Pid] = x.At
		}
		switch x.Kind {
		case kindClaimed, kindRenewed:
			until, err := time.Parse(time.RFC3339Nano, x.Value)
			if err != nil {
				continue
			}
			for _, w := range x.Writes {
				of := owned{x.Pid, w.Run}
				lease[of] = until.Add(-clockSkew)
				for _, s := range current[of] {
					if ends[s].After(x.At) { // otherwise another process may have owned it in between
						ends[s] = lease[of]
					}
				}
			}
		case kindVerbCalled:
			if x.Step == askCancel {
				cancelled[x.Run] = true
			}
		case kindQueuedBegun:
			of := owned{x.Pid, x.Run}
			s := &ownedExecution{run: x.Run, queue: x.Step, key: x.Value, from: x.At, mayPass: cancelled[x.Run]}
			ends[s], pids[s], byExec[x.Exec] = lease[of], x.Pid, s
			current[of] = append(current[of], s)
			all = append(all, s)
		case kindQueuedReturned:
			if s := byExec[x.Exec]; s != nil {
				end(s, x.At)
			}
		}
	}
	for _, s := range all {
		end(s, ends[s])
		end(s, last[pids[s]])
	}
	return all
}

// checkQueues checks the queues with settings.
func (e *evidence) checkQueues(f *findings) {
	all := e.ownedExecutions()
	e.checkExecuting(f, all)
	e.checkKeys(f, all)
	e.checkBeginRate(f)
	e.checkPauses(f, all)
	e.checkQueueChanges(f)
	e.checkQueuedRuns(f, all)
}

// checkExecuting checks that no more runs of queue bounded, and of each of its keys, have executed at once than its bounds allow. A run
// that was taken over from a process without a sign of life, such as one whose connections were all ended, counts once: the place is
// the run's, and its former process finds out at its next write. The lower bound holds once a run that was not executed before is
// executed.
func (e *evidence) checkExecuting(f *findings, all []*ownedExecution) {
	type change struct {
		at time.Time
		by int
		s  *ownedExecution
	}
	var changes []change
	for _, s := range all {
		if s.queue == boundedQueue && !s.mayPass && s.to.After(s.from) {
			changes = append(changes, change{s.from, 1, s}, change{s.to, -1, s})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	lower := e.queueLoad.times.Lowered.Add(boundLowered)
	whole, ofKey, processes := 0, make(map[string]int), make(map[string]int)
	begun := make(map[string]time.Time) // when the run was executed first
	newer := 0                          // how many of those that execute were executed first when the bound was lower
	for _, c := range changes {
		if processes[c.s.run] += c.by; processes[c.s.run] != max(0, c.by) {
			continue // another process executes the run, too
		}
		whole += c.by
		ofKey[c.s.key] += c.by
		if begun[c.s.run].IsZero() {
			begun[c.s.run] = c.at
		}
		if begun[c.s.run].After(lower) {
			newer += c.by
		}
		most := mostExecuting
		if newer > 0 { // otherwise all had their places before, and kept them while nobody executed them
			most = laterExecuting
		}
		if c.by > 0 && whole > most {
			f.addViolation("queue %s: %d runs executed at %v, of at most %d, the last one run %s", boundedQueue, whole, c.at, most, c.s.run)
		}
		if c.by > 0 && c.s.key != "" && ofKey[c.s.key] > mostOfKey {
			f.addViolation("queue %s: %d runs of key %s executed at %v, the last one run %s", boundedQueue, ofKey[c.s.key], c.s.key, c.at, c.s.run)
		}
	}
}

// firstExecutions returns the first execution of each run, in their order.
func firstExecutions(all []*ownedExecution) (first []*ownedExecution) {
	seen := make(map[string]bool)
	for _, s := range all { // in the order of the ledger
		if !seen[s.run] {
			seen[s.run] = true
			first = append(first, s)
		}
	}
	return first
}

// checkKeys checks that no run of a key began in queue ordered before the run of the key that had begun before it had ended, and
// likewise for singletons, and that the runs of a key of queue ordered began in the order of their starts.
func (e *evidence) checkKeys(f *findings, all []*ownedExecution) {
	open := make(map[string]*ownedExecution) // by queue and key: the run that began last
	var begun []string
	for _, s := range firstExecutions(all) {
		if s.queue != orderedQueue && s.queue != foldSingleton || s.key == "" {
			continue
		}
		begun = append(begun, s.run)
		if before := open[s.queue+"/"+s.key]; before != nil {
			if k := e.runs[before.run]; k != nil && k.EndedAt.After(s.from.Add(clockSkew)) {
				f.addViolation("%s: run %s of key %s began at %v, and run %s of the key, which had begun before, ended at %v", s.queue, s.run, s.key, s.from, before.run, k.EndedAt)
			}
		}
		open[s.queue+"/"+s.key] = s
	}
	latest := make(map[string]int) // by key: the position of the run that began last
	for _, s := range e.queueLoad.starts {
		at := slices.Index(begun, s.runID)
		if s.in.Queue != orderedQueue || !s.isUndisturbed || at < 0 {
			continue
		}
		if at < latest[s.in.Key] {
			f.addViolation("queue %s: run %s (%s) of key %s began before run %s, which was started before it", orderedQueue, s.id, s.runID, s.in.Key, begun[latest[s.in.Key]])
		}
		latest[s.in.Key] = max(latest[s.in.Key], at)
	}
}

// checkBeginRate checks the rate of queue rated with the generic cell rate algorithm, for the admissions, and for the times at which the
// runs were first claimed. A run may be claimed up to twice store.UnclaimedStopsRateAfter later than the rate counts it.
func (e *evidence) checkBeginRate(f *findings) {
	type admitted struct {
		at time.Time
		n  int
	}
	var all []admitted
	for _, x := range e.entries {
		if x.Kind != kindAdmitted || x.Step != ratedQueue {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, x.Value)
		if err != nil {
			f.addViolation("queue %s: an admission has the time %q", ratedQueue, x.Value)
		}
		all = append(all, admitted{at, x.Attempt})
	}
	var claimed []admitted
	for _, k := range e.runs {
		if k.Queue == ratedQueue && !k.StartedAt.IsZero() {
			claimed = append(claimed, admitted{k.StartedAt, 1})
		}
	}
	const interval = time.Second / ratedPerSecond
	check := func(what string, all []admitted, late time.Duration) {
		slices.SortStableFunc(all, func(a, b admitted) int { return a.at.Compare(b.at) })
		var paid time.Time // the rate is used up to this time
		for _, a := range all {
			if paid.Before(a.at) {
				paid = a.at
			}
			if paid = paid.Add(time.Duration(a.n) * interval); paid.Sub(a.at) > ratedBurst*interval+late {
				f.addViolation("queue %s: too many runs %s at %v: the rate is used up to %v", ratedQueue, what, a.at, paid)
			}
		}
	}
	check("were admitted", all, 0)
	check("began", claimed, 2*store.UnclaimedStopsRateAfter+clockSkew)
}

// queueChange is a change of a queue, which took effect between its call and the time at which its effect is certain. A process that is
// stopped records the return late.
type queueChange struct{ from, to time.Time }

// checkPauses checks that while queue bounded was surely paused, no more runs began than had been admitted before. A function that a
// stopped process calls past its lease is no beginning: its run may have ended long ago.
func (e *evidence) checkPauses(f *findings, all []*ownedExecution) {
	var pauses, resumes []queueChange
	last, returned := make(map[int]time.Time), make(map[string]time.Time)
	for _, x := range e.entries {
		last[x.Pid] = x.At
		if x.Kind == kindVerbReturned && x.Err == "" {
			returned[x.Exec] = x.At
		}
	}
	for _, x := range e.entries {
		at, done := returned[x.Exec]
		switch {
		case x.Kind != kindVerbCalled || x.Value != boundedQueue:
		case x.Step == askPause && done:
			pauses = append(pauses, queueChange{x.At, at})
		case x.Step == askResume && done:
			resumes = append(resumes, queueChange{x.At, at})
		case x.Step == askResume:
			resumes = append(resumes, queueChange{x.At, last[x.Pid].Add(maxChangeDelay)})
		}
	}
	begun := firstExecutions(all)
	for _, p := range pauses {
		from, to := p.to, e.queueLoad.resumed // by the controller, at the end
		for _, r := range resumes {
			if r.to.After(p.from) && r.from.Before(to) { // it may have taken effect after the pause
				to = r.from
			}
		}
		n := 0
		for _, s := range begun {
			if s.queue == boundedQueue && !s.mayPass && s.to.After(s.from) && s.from.After(from) && s.from.Before(to) {
				n++
			}
		}
		if n > mostExecuting {
			f.addViolation("queue %s: %d runs began while it was paused, from %v to %v", boundedQueue, n, from, to)
		}
		if to.Sub(from) > 0 {
			f.report.pauses++
		}
	}
}

// checkQueueChanges checks the changes of queues: none has failed but for the database.
func (e *evidence) checkQueueChanges(f *findings) {
	for _, x := range e.entries {
		switch {
		case x.Kind != kindVerbReturned:
		case x.Err != "":
			f.addViolation("queue %s: %s has failed: %s", x.Value, x.Step, x.Err)
		default:
			f.report.changes++
		}
	}
}

// checkQueuedRuns checks that each run of a queue that was started has ended as it may, and counts those that began.
func (e *evidence) checkQueuedRuns(f *findings, all []*ownedExecution) {
	begun := make(map[string]bool)
	for _, s := range firstExecutions(all) {
		begun[s.run] = true
		if s.queue != foldSingleton {
			f.report.queued++
		}
	}
	for _, s := range e.queueLoad.starts {
		k := e.runs[s.runID]
		switch {
		case k == nil:
			f.addViolation("I1: run %s (%s) is lost, whose start was acknowledged", s.id, s.runID)
		case k.Status == durable.StatusCompleted && begun[s.runID]:
		case k.Status == durable.StatusCancelled && s.cancelled:
		case k.Status == durable.StatusExpired && s.startBy && !begun[s.runID]:
		default:
			f.addViolation("I7: run %s (%s) of queue %s is %s, began: %v, cancelled: %v, may expire: %v: %v", s.id, s.runID, s.in.Queue, k.Status, begun[s.runID], s.cancelled, s.startBy, k.Err)
		}
	}
}
