package engine

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// Sleep calls the function due with the current time, and waits until the time that due returns. Sleep records the end of the wait before
// it waits, so every process that continues the run waits until the same time. A sleep writes one row. During a long sleep the run leaves
// memory.
func (s *Scope) Sleep(name string, site uintptr, due func(now time.Time) time.Time) error {
	r := s.r
	full := s.fullName(name)
	known, err := s.beginCall(full, store.KindSleep, site)
	if err != nil {
		return err
	}
	recorded := known
	if recorded == nil {
		if err := naming.Check("sleep", name); err != nil {
			return err
		}
		if s.isInsideCall() {
			return nestedCallError(r, full)
		}
		if err := s.checkMayExecuteCall(full, store.KindSleep, nil); err != nil {
			return err
		}
		if recorded, err = s.recordSleep(full, due); err != nil {
			return err
		}
	}
	if known != nil && !s.isInEndedBranch() {
		if err := s.checkOpenSleep(full, known); err != nil {
			return err
		}
	}
	if !s.isInEndedBranch() && r.e.clock.Until(recorded.NextAt) > 0 && !r.hasSleepEndedInHistory(recorded) {
		if err := s.refuseInPreflight(full, store.KindSleep); err != nil {
			return err
		}
		r.notePastReplay() // the calls after this sleep were not executed before
		if err := r.idleTracker.waitUntilDueOrNotified(s, recorded.NextAt, nil); err != nil && !s.isInEndedBranch() {
			return err
		}
	}
	return s.checkSleepEndedBeforeChoice(recorded.NextAt)
}

// hasSleepEndedInHistory reports whether a sleep was over in an earlier execution: a later call of the run then began when the sleep
// was due or afterwards. Such a sleep stays over, even if the database's clock is behind now, for example after a failover.
func (r *run) hasSleepEndedInHistory(sleep *store.Step) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasCallBegunSince(sleep.Seq, sleep.NextAt)
}

// isInEndedBranch reports whether a choice has ended the branch of the scope, or a branch around it.
func (s *Scope) isInEndedBranch() bool {
	if s.branch == nil {
		return false
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return !s.branch.earliestEndOfBranchOrAncestor().IsZero()
}

// checkBranchOpen returns the result of checkOpen if a choice has ended the branch, and nil otherwise.
func (s *Scope) checkBranchOpen() error {
	if !s.isInEndedBranch() {
		return nil
	}
	return s.checkOpen()
}

// checkSleepEndedBeforeChoice returns nil if a sleep has ended by itself, and an error if a choice has ended the branch before the
// sleep was due. It compares the sleep's due time with the time of the choice, because in every later replay both are in the past.
func (s *Scope) checkSleepEndedBeforeChoice(due time.Time) error {
	if s.branch == nil {
		return nil
	}
	s.branch.preventEndByChoice()
	defer s.branch.allowEndByChoice()
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := s.branch.earliestEndOfBranchOrAncestor(); !at.IsZero() && due.After(at) {
		return s.checkOpenLocked()
	}
	if due.After(r.latestSleepEnd) {
		r.latestSleepEnd = due
	}
	return nil
}

func (s *Scope) recordSleep(full string, due func(time.Time) time.Time) (*store.Step, error) {
	r := s.r
	r.idleTracker.beginBusy()
	defer r.idleTracker.endBusy()
	t := &stepTask{r: r, scope: s, spec: &CallSpec{Kind: store.KindSleep}, name: full, attempt: 1, firstBegan: r.e.clock.Now()}
	w := t.newStepWrite(store.StepCompleted, nil, nil)
	w.Step.NextAt = due(t.firstBegan).Truncate(time.Microsecond)
	if _, _, err := t.commitRow(w); err != nil {
		return nil, err
	}
	if w.Outcome == store.AlreadyRecorded {
		return w.RecordedStep, nil
	}
	return &w.Step, nil
}

func nestedCallError(r *run, full string) error {
	return fmt.Errorf("%w: %q in run %q: return from the outer step first, and call this one from the workflow function",
		ErrNestedStep, naming.Display(full), r.row.NameOrUUID())
}
