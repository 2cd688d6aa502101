package main

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable"
)

// checkEnds checks I1, I5, I6 and I7: every run whose start was acknowledged exists, has ended, and is still as its end
// was first seen.
func (e *evidence) checkEnds(f *findings) {
	byID := make(map[string]*knownRun)
	for _, k := range e.order {
		byID[k.ID] = k
	}
	acked := func(id string) *knownRun {
		f.report.acked++
		k := byID[id]
		switch {
		case k == nil:
			f.addViolation("I1: run %s is lost, whose start was acknowledged", id)
		case !ended(k.Status):
			f.addViolation("I7: run %s is %s", id, k.Status)
		default:
			f.report.terminal++
		}
		return k
	}
	for _, o := range e.load.orders {
		if o.runID == "" {
			continue // follow has returned its error
		}
		k := acked(o.id)
		if k == nil {
			continue
		}
		if was := o.end; was != nil && (was.Status != k.Status || !was.EndedAt.Equal(k.EndedAt) || !bytes.Equal(was.Output, k.Output)) {
			f.addViolation("I5: run %s was %s at %v, and is %s at %v", o.id, was.Status, was.EndedAt, k.Status, k.EndedAt)
		}
		if o.cancelled && k.Status == durable.StatusCompleted {
			f.addViolation("I6: run %s was cancelled, and has completed", o.id)
		}
	}
	for _, to := range e.clients.all {
		if to.exists {
			acked(to.id)
		}
	}
	e.checkOutbox(f)
}

func ended(s durable.Status) bool { return state(s).ended() }

// checkOutbox checks that there is exactly one event of the end of each run, with the right status.
func (e *evidence) checkOutbox(f *findings) {
	ends := make(map[string][]string)
	for _, x := range e.events {
		if ended(durable.Status(x.Type)) {
			ends[x.RunID] = append(ends[x.RunID], string(x.Type))
		}
	}
	for _, k := range e.order {
		f.report.runs++
		if got := ends[k.RunID]; ended(k.Status) && !isRepaired(k) && k.Workflow != briefName && !slices.Equal(got, []string{string(k.Status)}) {
			f.addViolation("I5: run %s is %s, and its events are %v", k.RunID, k.Status, got)
		}
	}
}

// checkPlans checks that every run has ended as its plan says. That covers I9 and I10: a fault of one run must show
// in that run, and in no other.
func (e *evidence) checkPlans(f *findings) {
	for _, k := range e.order {
		if k.plan == nil {
			continue
		}
		switch k.Status {
		case durable.StatusCompleted:
			e.checkCompleted(f, k)
		case durable.StatusFailed:
			e.checkFailed(f, k)
		case durable.StatusExpired:
			e.checkExpired(f, k)
		case durable.StatusCancelled:
			if !k.mayEndEarly() {
				f.addViolation("run %s is cancelled, which nobody requested", k.RunID)
			}
		}
		e.checkCompensations(f, k)
		if k.losersChild {
			e.checkLosersChild(f, k)
		}
	}
}

// checkLosersChild checks that the child of a branch that a choice ended was cancelled by the choice, unless it was
// cancelled earlier.
func (e *evidence) checkLosersChild(f *findings, k *knownRun) {
	f.report.losersChildren++
	switch {
	case k.Status != durable.StatusCancelled:
		f.addViolation("run %s, whose branch a choice has ended, is %s", k.RunID, k.Status)
	// The text of the error lacks the reason if the worker could not read it: it is in the row.
	case k.parent.Status == durable.StatusCompleted && (k.Cancellation == nil || !strings.Contains(k.Cancellation.Reason, "its branch was ended by the choice")):
		f.addViolation("run %s, whose branch a choice has ended, is cancelled for another reason: %v, %+v", k.RunID, k.Err, k.Cancellation)
	}
}

// mayEndEarly reports whether a cancel, a timeout, a choice or the parent may have ended the run.
func (k *knownRun) mayEndEarly() bool {
	if k.losersChild {
		return true
	}
	if k.parent == nil {
		return k.root.requested || k.root.timeout > 0
	}
	return k.parent.Status != durable.StatusCompleted || k.parent.mayEndEarly()
}

func (k *knownRun) planHas(do op) (has bool) {
	k.plan.eachAct(func(a act) { has = has || a.Do == do })
	return has
}

// checkFailed checks that a run has failed for a reason that its plan contains.
func (e *evidence) checkFailed(f *findings, k *knownRun) {
	switch {
	case k.plan.End == endsFailed && errors.Is(k.Err, errPlanned):
	case k.plan.End == endsPanic && errors.Is(k.Err, durable.ErrPanic):
	case k.planHas(doChanged) && errors.Is(k.Err, durable.ErrDiverged):
		f.report.diverged++
		if last := k.plan.Acts[len(k.plan.Acts)-1].Name; !strings.Contains(k.Err.Message, last) {
			f.addViolation("I10: the failure of run %s does not name step %q: %s", k.RunID, last, k.Err.Message)
		}
	default:
		f.addViolation("I9: run %s, which %s, has failed: %v", k.RunID, k.plan.End, k.Err)
	}
}

// checkExpired checks that a run has expired only if it had a timeout.
func (e *evidence) checkExpired(f *findings, k *knownRun) {
	if k.parent != nil || k.root.timeout == 0 || !errors.Is(k.Err, durable.ErrTimeout) {
		f.addViolation("run %s, whose timeout is %v, has expired: %v", k.RunID, k.root.timeout, k.Err)
	}
}

// checkCompleted checks the output of a run, act by act.
func (e *evidence) checkCompleted(f *findings, k *knownRun) {
	var out []string
	if err := json.Unmarshal(k.Output, &out); err != nil || k.plan.End != endsWell || len(out) != len(k.plan.Acts) {
		f.addViolation("run %s, which %s with %d acts, has completed with %s", k.RunID, k.plan.End, len(k.plan.Acts), k.Output)
		return
	}
	for i, a := range k.plan.Acts {
		v, ok := strings.CutPrefix(out[i], a.Name+"=")
		if !ok || !e.mayReturn(a, v, k) {
			f.addViolation("I9: run %s: act %s (%s) has returned %q", k.RunID, a.Name, a.Do, out[i])
		}
	}
}

// mayReturn reports whether an act may return v.
func (e *evidence) mayReturn(a act, v string, k *knownRun) bool {
	failed := strings.HasPrefix(v, "!")
	recorded := unquote(k.history[a.Name].Output)
	switch a.Do {
	case doFailing:
		return v == "!meant" || v == "!unknown" // its process died in the last attempt
	case doNaN:
		return v == "!encode"
	case doOnce:
		return v == "!unknown" || v == recorded
	case doStep, doFlaky, doVerify, doTx:
		return !failed && v == recorded
	case doReceive, doAwait:
		return v == payloadFor(k.RunID, a.Name)
	case doWithin:
		return v == nothingReceived || v == payloadFor(k.RunID, a.Name)
	case doRace:
		return strings.HasPrefix(v, "0 ") && strings.HasSuffix(v, " "+payloadFor(k.RunID, a.Name+"-signal"))
	case doMap:
		return !failed && strings.Count(v, ",") == a.N-1
	case doChild:
		if a.Plan.End != endsWell || a.Plan.mayDiverge() {
			return v == "!child failed" || a.Plan.End == endsWell
		}
		return !failed
	}
	return !failed
}

func (p *plan) mayDiverge() (may bool) {
	p.eachAct(func(a act) { may = may || a.Do == doChanged })
	return may
}

// checkCompensations checks that the registered compensations of a run that failed or was cancelled were executed, the
// last one first, and that no others were.
func (e *evidence) checkCompensations(f *findings, k *knownRun) {
	var planned, ran []string
	k.plan.eachAct(func(a act) {
		if a.Do == doCompensate {
			planned = append(planned, a.Name)
		}
	})
	slices.Reverse(planned)
	var ends []durable.Checkpoint
	for _, name := range planned {
		if c, ok := k.history[name]; ok {
			ran, ends = append(ran, name), append(ends, c)
		}
	}
	whole := k.Status == durable.StatusFailed && (errors.Is(k.Err, errPlanned) || errors.Is(k.Err, durable.ErrPanic))
	switch {
	case k.Status == durable.StatusCompleted && len(ran) > 0:
		f.addViolation("run %s has completed, and has executed the compensations %v", k.RunID, ran)
	case whole && len(ran) != len(planned):
		f.addViolation("run %s has failed, and of the compensations %v only %v were executed", k.RunID, planned, ran)
	case len(ran) > 0 && !slices.Equal(ran, planned[len(planned)-len(ran):]):
		f.addViolation("run %s has executed the compensations %v, which are not the last ones of %v", k.RunID, ran, planned)
	}
	for i, c := range ends {
		f.report.compensations++
		if c.Status != "completed" || i > 0 && c.StartedAt.Before(ends[i-1].EndedAt) {
			f.addViolation("run %s: compensation %s is %s and began at %v, and the one before it ended at %v", k.RunID, c.Name, c.Status, c.StartedAt, ends[max(0, i-1)].EndedAt)
		}
	}
}

// checkTransactions checks I11: each transactional step has written its row exactly once if it is recorded, and never
// otherwise.
func (e *evidence) checkTransactions(f *findings) {
	rows := make(map[string][]string)
	for _, x := range e.effects {
		rows[x.run+"/"+x.step] = append(rows[x.run+"/"+x.step], x.value)
	}
	for _, k := range e.order {
		for name, c := range k.history {
			if c.Kind != "tx" || c.Status != "completed" {
				continue
			}
			f.report.transactions++
			step := k.RunID + "/" + name
			if got := rows[step]; len(got) != 1 || got[0] != unquote(c.Output) {
				f.addViolation("I11: transaction %s is recorded with %s, and has written %v", step, c.Output, got)
			}
			delete(rows, step)
		}
	}
	for step, values := range rows {
		f.addViolation("I11: transaction %s is not recorded, and has written %v", step, values)
	}
}
