package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// early is how long before its time a timer may seem to end: the workers' measurement of the
// database's clock is not exact.
const early = 2 * time.Millisecond

// reading is the state of the checker while it reads the ledger from its beginning.
type reading struct {
	current map[string]string           // by run: the execution of the newest epoch that began
	entered map[string]int32            // by run: the newest epoch that began
	owned   map[string]int32            // by process and run: the epoch of its latest claim; 0: it started the run itself
	acks    map[string]entry            // by run and step: what the call first returned
	epoch   map[string]int32            // by run: the newest epoch that was claimed
	tried   map[string]map[string]int32 // by process and write: the newest epoch of its run when it was first tried
	first   map[string]bool             // by run: whether the first version has claimed it
	second  map[string]int32            // by run: the lowest epoch that the second version has claimed
	once    map[string]int              // by run and step: how often an AtMostOnce function was called
	nonce   map[string]uint32           // by run and epoch: the nonce of the claim, or of the start, that was first acknowledged
}

// checkLedger checks I1, I2, I3 and I4 on the entries of the ledger, in their order.
func (e *evidence) checkLedger(f *findings) {
	r := &reading{
		current: make(map[string]string), entered: make(map[string]int32), owned: make(map[string]int32), acks: make(map[string]entry), epoch: make(map[string]int32),
		first: make(map[string]bool), second: make(map[string]int32), tried: make(map[string]map[string]int32), once: make(map[string]int), nonce: make(map[string]uint32),
	}
	for _, x := range e.entries {
		place := x.Run + "/" + x.Step
		switch x.Kind {
		case kEnter:
			r.enters(x)
			f.report.executions++
		case kBegin:
			r.begun(f, x, place)
		case kAck:
			r.acknowledged(f, x, place, e.runs[x.Run])
		case kClaim:
			for _, w := range x.Writes {
				r.owns(f, w)
				r.goesForward(f, x, w)
				r.epoch[w.Run] = max(r.epoch[w.Run], w.Epoch)
				r.owned[fmt.Sprint(x.Pid, w.Run)] = w.Epoch
			}
		case kTry:
			for _, w := range x.Writes {
				key := fmt.Sprint(x.Pid, w.Epoch, w.What)
				if r.tried[w.Run] == nil {
					r.tried[w.Run] = make(map[string]int32)
				}
				if _, again := r.tried[w.Run][key]; !again {
					r.tried[w.Run][key] = r.epoch[w.Run]
				}
			}
		case kDid:
			r.done(f, x)
		}
	}
	f.report.steps = len(r.acks)
}

// goesForward checks that the first version of the code claims no run that the second one has claimed before. A worker whose claim is
// recorded late has a lower epoch. Some worker of the second version has lived within the last minute, because the soak starts
// killed workers again.
func (r *reading) goesForward(f *findings, x entry, w write) {
	switch second, claimed := r.second[w.Run]; {
	case w.What != "": // nothing of the run is executed
	case x.Version == secondVersion && (!claimed || w.Epoch < second):
		r.second[w.Run] = w.Epoch
		if r.first[w.Run] {
			f.report.forward++
		}
	case x.Version == firstVersion:
		r.first[w.Run] = true
		if claimed && w.Epoch > second {
			f.wrong("versions: run %s was claimed by the first version at epoch %d, after the second one at epoch %d", w.Run, w.Epoch, second)
		}
	}
}

// owns checks that an epoch of a run has one nonce. Two nonces would mean that a failover has lost
// an acknowledged claim, so that its epoch was given to another owner.
func (r *reading) owns(f *findings, w write) {
	key := fmt.Sprint(w.Run, " ", w.Epoch)
	if first, known := r.nonce[key]; known && first != w.Nonce {
		f.wrong("I4: epoch %d of run %s has two owners: its nonces are %08x and %08x", w.Epoch, w.Run, first, w.Nonce)
		return
	}
	r.nonce[key] = w.Nonce
}

// enters records which execution of a run is the newest. A process that is stopped between its claim and the call
// of the function can enter after another process has claimed and entered the run.
func (r *reading) enters(x entry) {
	if epoch := r.owned[fmt.Sprint(x.Pid, x.Run)]; epoch >= r.entered[x.Run] {
		r.current[x.Run], r.entered[x.Run] = x.Exec, epoch
	}
}

// begun checks that the newest execution of a run does not call the function of a step whose outcome was
// returned before. A superseded execution can still call it: idempotency keys exist for that.
func (r *reading) begun(f *findings, x entry, place string) {
	ack, known := r.acks[place]
	switch {
	case known && r.current[x.Run] == x.Exec:
		f.wrong("I2: %s (%s) was executed again, attempt %d, after it had returned %q %s", place, x.Do, x.Attempt, ack.Value, ack.Err)
	case known:
		f.report.superseded++
	}
	if branch, _, in := strings.Cut(x.Step, "/"); in {
		choice, _, loser := strings.Cut(branch, "-loser-")
		if ack, made := r.acks[x.Run+"/"+choice]; loser && made && ack.Exec != x.Exec && r.current[x.Run] == x.Exec {
			f.wrong("I3: %s was executed in a branch that the choice %s had ended", place, choice)
		}
	}
	if x.Do == doOnce {
		if r.once[place]++; r.once[place] > 1 {
			f.wrong("AtMostOnce: %s was executed %d times", place, r.once[place])
		}
	}
}

// acknowledged checks that a call returns the same value in every execution, and that this value is
// the recorded one.
func (r *reading) acknowledged(f *findings, x entry, place string, run *known) {
	first, again := r.acks[place]
	if again {
		if first.Value != x.Value || first.Err != x.Err {
			f.wrong("I3: %s has returned %q %s, and then %q %s", place, first.Value, first.Err, x.Value, x.Err)
		}
		return
	}
	r.acks[place] = x
	if run == nil {
		f.wrong("I1: run %s is lost, whose step %s has returned", x.Run, x.Step)
		return
	}
	c, ok := run.history[x.Step]
	status := durable.CheckpointCompleted
	if x.Err != "" {
		status = durable.CheckpointFailed
	}
	switch {
	case !ok || c.Status != status:
		f.wrong("I1: %s (%s) has returned %q %s, and its checkpoint is %q", place, x.Do, x.Value, x.Err, c.Status)
	case x.Err == "" && (c.Kind == "step" || c.Kind == "tx" || c.Kind == "receive" && x.Value != nothing) && text(c.Output) != x.Value:
		f.wrong("I3: %s (%s) has returned %q, and its checkpoint holds %s", place, x.Do, x.Value, c.Output)
	case (x.Do == doSleep || x.Value == nothing) && x.At.Before(c.NextAt.Add(-early)):
		f.wrong("timer: %s (%s) was over %v too early", place, x.Do, c.NextAt.Sub(x.At))
	}
}

// done checks that no epoch has written although a newer one had been claimed before the write began. A write
// that is repeated because its result was lost counts from its first try.
func (r *reading) done(f *findings, x entry) {
	for _, w := range x.Writes {
		switch w.Outcome {
		case fenced:
			f.report.fenced++
		case written:
			r.owns(f, w)
			if newest := r.tried[w.Run][fmt.Sprint(x.Pid, w.Epoch, w.What)]; newest > w.Epoch {
				f.wrong("I4: epoch %d of run %s has written %q although epoch %d had been claimed", w.Epoch, w.Run, w.What, newest)
			}
		}
	}
}

// bounds checks I8: the number of attempts, and of the deaths of the run that kills its process.
func (e *evidence) bounds(f *findings) {
	kills, excused := 0, 0
	crashes := int32(-1) // of the run that kills its process, at its latest claim
	for _, x := range e.entries {
		if w := e.claimOfKiller(x); w != nil {
			if w.Crashes == crashes && x.Outage {
				excused++
			}
			crashes = w.Crashes
		}
		if x.Kind != kBegin {
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
		run.plan.walk(func(a act) {
			bound := 0
			switch a.Do {
			case doFailing:
				bound = a.N
			case doFlaky, doTx:
				bound = 12
			}
			if a.Name == x.Step && bound > 0 && x.Attempt > bound {
				f.wrong("I8: attempt %d of %s/%s, of at most %d", x.Attempt, x.Run, x.Step, bound)
			}
		})
	}
	// A lease that ends while the claimer has no database counts no crash.
	if kills == 0 || kills > killerCrashes+excused { // fewer if the result of a claim was lost, which can count as a crash
		f.wrong("I8: the run that kills its process did so %d times; it must be paused after %d, and %d claims counted no crash since they followed an outage", kills, killerCrashes, excused)
	}
	for _, k := range e.order {
		if k.ID == killerID && k.Status != durable.StatusCancelled {
			f.wrong("I8: the run that kills its process is %s", k.Status)
		}
	}
}

// claimOfKiller returns the claim of the run that kills its process in an entry, or nil.
func (e *evidence) claimOfKiller(x entry) *write {
	for i, w := range x.Writes {
		if k := e.runs[w.Run]; x.Kind == kClaim && k != nil && k.ID == killerID {
			return &x.Writes[i]
		}
	}
	return nil
}
