package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// timerTolerance is how long before its time a timer may seem to end: the workers' measurement of the
// database's clock is not exact.
const timerTolerance = 2 * time.Millisecond

// ledgerState is the state of the checker while it reads the ledger from its beginning.
type ledgerState struct {
	currentExecution  map[string]string           // by run: the execution of the newest epoch that began
	enteredEpoch      map[string]int32            // by run: the newest epoch that began
	ownedEpoch        map[string]int32            // by process and run: the epoch of its latest claim; 0: it started the run itself
	firstReturns      map[string]entry            // by run and step: what the call first returned
	claimedEpoch      map[string]int32            // by run: the newest epoch that was claimed
	epochAtFirstTry   map[string]map[string]int32 // by process and write: the newest epoch of its run when it was first tried
	claimedByFirst    map[string]bool             // by run: whether the first version has claimed it
	lowestSecondEpoch map[string]int32            // by run: the lowest epoch that the second version has claimed
	onceCalls         map[string]int              // by run and step: how often an AtMostOnce function was called
	epochNonce        map[string]uint32           // by run and epoch: the nonce of the claim, or of the start, that was first acknowledged
}

// checkLedger checks I1, I2, I3 and I4 on the entries of the ledger, in their order.
func (e *evidence) checkLedger(f *findings) {
	r := &ledgerState{
		currentExecution: make(map[string]string), enteredEpoch: make(map[string]int32), ownedEpoch: make(map[string]int32), firstReturns: make(map[string]entry), claimedEpoch: make(map[string]int32),
		claimedByFirst: make(map[string]bool), lowestSecondEpoch: make(map[string]int32), epochAtFirstTry: make(map[string]map[string]int32), onceCalls: make(map[string]int), epochNonce: make(map[string]uint32),
	}
	for _, x := range e.entries {
		place := x.Run + "/" + x.Step
		switch x.Kind {
		case kindFunctionBegun:
			r.recordExecution(x)
			f.report.executions++
		case kindStepCalled:
			r.checkStepCall(f, x, place)
		case kindCallReturned:
			r.checkReturn(f, x, place, e.runs[x.Run])
		case kindClaimed:
			for _, w := range x.Writes {
				r.checkNonce(f, w)
				if k := e.runs[w.Run]; k == nil || k.Workflow != revisedName { // a version that fits continues a run that is held
					r.checkVersionOrder(f, x, w)
				}
				r.claimedEpoch[w.Run] = max(r.claimedEpoch[w.Run], w.Epoch)
				r.ownedEpoch[fmt.Sprint(x.Pid, w.Run)] = w.Epoch
			}
		case kindCommitting:
			for _, w := range x.Writes {
				key := fmt.Sprint(x.Pid, w.Epoch, w.What)
				if r.epochAtFirstTry[w.Run] == nil {
					r.epochAtFirstTry[w.Run] = make(map[string]int32)
				}
				if _, again := r.epochAtFirstTry[w.Run][key]; !again {
					r.epochAtFirstTry[w.Run][key] = r.claimedEpoch[w.Run]
				}
			}
		case kindCommitted:
			r.checkWrites(f, x)
		}
	}
	f.report.steps = len(r.firstReturns)
}

// checkVersionOrder checks that the first version of the code claims no run that the second one has claimed before. A worker whose claim is
// recorded late has a lower epoch. Some worker of the second version has lived within the last minute, because the soak starts
// killed workers again.
func (r *ledgerState) checkVersionOrder(f *findings, x entry, w write) {
	switch second, claimed := r.lowestSecondEpoch[w.Run]; {
	case w.What != "": // nothing of the run is executed
	case x.Version == secondVersion && (!claimed || w.Epoch < second):
		r.lowestSecondEpoch[w.Run] = w.Epoch
		if r.claimedByFirst[w.Run] {
			f.report.forward++
		}
	case x.Version == firstVersion:
		r.claimedByFirst[w.Run] = true
		if claimed && w.Epoch > second {
			f.addViolation("versions: run %s was claimed by the first version at epoch %d, after the second one at epoch %d", w.Run, w.Epoch, second)
		}
	}
}

// checkNonce checks that an epoch of a run has one nonce. Two nonces would mean that a failover has lost
// an acknowledged claim, so that its epoch was given to another owner.
func (r *ledgerState) checkNonce(f *findings, w write) {
	key := fmt.Sprint(w.Run, " ", w.Epoch)
	if first, known := r.epochNonce[key]; known && first != w.Nonce {
		f.addViolation("I4: epoch %d of run %s has two owners: its nonces are %08x and %08x", w.Epoch, w.Run, first, w.Nonce)
		return
	}
	r.epochNonce[key] = w.Nonce
}

// recordExecution records which execution of a run is the newest. A process that is stopped between its claim and the call
// of the function can enter after another process has claimed and entered the run.
func (r *ledgerState) recordExecution(x entry) {
	if epoch := r.ownedEpoch[fmt.Sprint(x.Pid, x.Run)]; epoch >= r.enteredEpoch[x.Run] {
		r.currentExecution[x.Run], r.enteredEpoch[x.Run] = x.Exec, epoch
	}
}

// checkStepCall checks that the newest execution of a run does not call the function of a step whose outcome was
// returned before. A superseded execution can still call it: idempotency keys exist for that.
func (r *ledgerState) checkStepCall(f *findings, x entry, place string) {
	ack, known := r.firstReturns[place]
	switch {
	case known && r.currentExecution[x.Run] == x.Exec:
		f.addViolation("I2: %s (%s) was executed again, attempt %d, after it had returned %q %s", place, x.Do, x.Attempt, ack.Value, ack.Err)
	case known:
		f.report.superseded++
	}
	if branch, _, in := strings.Cut(x.Step, "/"); in {
		choice, _, loser := strings.Cut(branch, "-loser-")
		if ack, made := r.firstReturns[x.Run+"/"+choice]; loser && made && ack.Exec != x.Exec && r.currentExecution[x.Run] == x.Exec {
			f.addViolation("I3: %s was executed in a branch that the choice %s had ended", place, choice)
		}
	}
	if x.Do == doOnce {
		if r.onceCalls[place]++; r.onceCalls[place] > 1 {
			f.addViolation("AtMostOnce: %s was executed %d times", place, r.onceCalls[place])
		}
	}
}

// checkReturn checks that a call returns the same value in every execution, and that this value is
// the recorded one.
func (r *ledgerState) checkReturn(f *findings, x entry, place string, run *knownRun) {
	first, again := r.firstReturns[place]
	if again {
		if first.Value != x.Value || first.Err != x.Err {
			f.addViolation("I3: %s has returned %q %s, and then %q %s", place, first.Value, first.Err, x.Value, x.Err)
		}
		return
	}
	r.firstReturns[place] = x
	if run == nil {
		f.addViolation("I1: run %s is lost, whose step %s has returned", x.Run, x.Step)
		return
	}
	c, ok := run.history[x.Step]
	status := durable.CheckpointCompleted
	if x.Err != "" {
		status = durable.CheckpointFailed
	}
	switch {
	case !ok || c.Status != status:
		f.addViolation("I1: %s (%s) has returned %q %s, and its checkpoint is %q", place, x.Do, x.Value, x.Err, c.Status)
	case x.Err == "" && (c.Kind == "step" || c.Kind == "tx" || c.Kind == "receive" && x.Value != nothingReceived) && unquote(c.Output) != x.Value:
		f.addViolation("I3: %s (%s) has returned %q, and its checkpoint holds %s", place, x.Do, x.Value, c.Output)
	case (x.Do == doSleep || x.Value == nothingReceived) && x.At.Before(c.NextAt.Add(-timerTolerance)):
		f.addViolation("timer: %s (%s) was over %v too early", place, x.Do, c.NextAt.Sub(x.At))
	}
}

// checkWrites checks that no epoch has written although a newer one had been claimed before the write began. A write
// that is repeated because its result was lost counts from its first try.
func (r *ledgerState) checkWrites(f *findings, x entry) {
	for _, w := range x.Writes {
		switch w.Outcome {
		case fenced:
			f.report.fenced++
		case written:
			r.checkNonce(f, w)
			if newest := r.epochAtFirstTry[w.Run][fmt.Sprint(x.Pid, w.Epoch, w.What)]; newest > w.Epoch {
				f.addViolation("I4: epoch %d of run %s has written %q although epoch %d had been claimed", w.Epoch, w.Run, w.What, newest)
			}
		}
	}
}

// checkAttemptBounds checks I8: the number of attempts, and of the deaths of the run that kills its process.
func (e *evidence) checkAttemptBounds(f *findings) {
	kills, excused := 0, 0
	crashes := int32(-1) // of the run that kills its process, at its latest claim
	for _, x := range e.entries {
		if w := e.claimOfKiller(x); w != nil {
			if w.Crashes == crashes && x.Outage {
				excused++
			}
			crashes = w.Crashes
		}
		if x.Kind != kindStepCalled {
			continue
		}
		if x.Step == "kill" {
			kills++
			continue
		}
		run := e.runs[x.Run]
		if run == nil || run.plan == nil {
			continue
		}
		run.plan.eachAct(func(a act) {
			bound := 0
			switch a.Do {
			case doFailing:
				bound = a.N
			case doFlaky, doTx:
				bound = 12
			}
			if a.Name == x.Step && bound > 0 && x.Attempt > bound {
				f.addViolation("I8: attempt %d of %s/%s, of at most %d", x.Attempt, x.Run, x.Step, bound)
			}
		})
	}
	// A lease that ends while the claimer has no database counts no crash.
	if kills == 0 || kills > killerCrashes+excused { // fewer if the result of a claim was lost, which can count as a crash
		f.addViolation("I8: the run that kills its process did so %d times; it must be paused after %d, and %d claims counted no crash since they followed an outage", kills, killerCrashes, excused)
	}
	for _, k := range e.order {
		if k.ID == killerID && k.Status != durable.StatusCancelled {
			f.addViolation("I8: the run that kills its process is %s", k.Status)
		}
	}
}

// claimOfKiller returns the claim of the run that kills its process in an entry, or nil.
func (e *evidence) claimOfKiller(x entry) *write {
	for i, w := range x.Writes {
		if k := e.runs[w.Run]; x.Kind == kindClaimed && k != nil && k.ID == killerID {
			return &x.Writes[i]
		}
	}
	return nil
}
