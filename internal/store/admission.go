package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// AdmissionRequest holds the arguments and the results of one call of AdmitRuns for a queue. An admission is a transaction that decides
// which runs of the queue may begin. An admission removes the places of runs that have ended or that wait. An admission gives each due run
// a place in the queue, or adds the run to the line of runs that wait for a place.
type AdmissionRequest struct {
	Queue                    string
	Now                      time.Time
	CloseDurationAfterRewind time.Duration // how long at least no run begins after the database went back to an earlier state; see QueueState.Plan

	// WorkIsCertain reports whether a run of the queue has just ended or begun to wait. If WorkIsCertain is true, the store need not check
	// first whether the admission has work to do.
	WorkIsCertain bool

	// QueueLocked reports that another transaction has locked the queue. That other transaction does the work of this admission, and the
	// caller of AdmitRuns tries again soon.
	QueueLocked   bool
	NextPassAt    time.Time // when the next admission has work to do even if nothing else happens; zero: no time is known
	HasMoreWork   bool      // there is more to do now
	AdmittedCount int       // runs that became claimable
	AdmittedAt    time.Time // when these runs became claimable, by the queue's clock, which never goes back
}

// lockedRunsRecheckDelay is the time until the next pass over a queue whose next runs other transactions have locked.
const lockedRunsRecheckDelay = 100 * time.Millisecond

// SetResultsFromPlan copies the results of an admission's plan into the AdmissionRequest.
func (a *AdmissionRequest) SetResultsFromPlan(plan *AdmissionPlan) {
	a.HasMoreWork, a.NextPassAt, a.AdmittedCount, a.AdmittedAt = plan.HasMoreWork, plan.NextPassAt, plan.AdmittedCount, plan.AdmittedAt
	if a.HasMoreWork && len(plan.RunsToWrite) == 0 && !plan.CheckAllKeys && !plan.SearchAdvanced {
		a.HasMoreWork, a.NextPassAt = false, a.Now.Add(lockedRunsRecheckDelay)
	}
}

// QueueAdmitter decides which runs of queues with settings may begin. If a queue was deleted, and therefore has no row, all its runs may
// begin at once.
type QueueAdmitter interface {
	// AdmitRuns decides in one transaction which runs of a queue may begin, and sets the results in the request. AdmitRuns skips a run that
	// another transaction has locked; the next admission decides about that run.
	AdmitRuns(ctx context.Context, a *AdmissionRequest) error
}

const (
	// MaxAdmittedNotClaimed is how many runs of a queue may at most be admitted and not claimed yet. MaxAdmittedNotClaimed is small, so
	// that an urgent run need not wait for many admitted runs.
	MaxAdmittedNotClaimed = 256

	// MaxRunsReadPerAdmission is how many runs of each kind a store reads for one admission at most; see QueueState.AddRuns for the kinds.
	MaxRunsReadPerAdmission = 500

	// MaxRunsReadBehindKey is how many of the runs that wait behind one group key a store reads for one admission at most. The limit
	// applies separately to each WaitingRunsRange: roots that have begun, children that have begun, children that have not begun, and roots
	// that have not begun.
	MaxRunsReadBehindKey = 20

	// MaxGroupKeysRead is how many group keys a store reads at most for one admission because the CheckAt of the keys has come.
	MaxGroupKeysRead = 100

	// turnOfWeightOne is what a turn adds for a run of weight 1.
	turnOfWeightOne = 1_000_000
)

// The range of priorities.
const (
	LowestPriority  = -2
	HighestPriority = 2
)

// NumberPerPriority holds one number for each priority, beginning with the lowest priority.
type NumberPerPriority [HighestPriority - LowestPriority + 1]int64

// numberForPriority returns the number for a priority.
func (t *NumberPerPriority) numberForPriority(priority int16) *int64 {
	return &t[min(max(int(priority)-LowestPriority, 0), len(t)-1)]
}

// QueueState is the state of a queue as an admission has read it. The admission's transaction has locked the queue's row.
type QueueState struct {
	QueueRow
	Now              time.Time         // the time of the pass; it may be before the Now of an earlier pass
	Clock            time.Time         // the time to which RateUsedUntil and ClosedUntil refer: Now, but never before the Clock of an earlier pass
	RateUsedUntil    time.Time         // the rate is used up until this time
	ClosedUntil      time.Time         // nothing begins before this time
	DatabaseTimeline string            // the timeline of the database at the last admission; empty: unknown
	LatestTurns      NumberPerPriority // the turn of the run that was admitted last, for each priority
	Use              QueueUse

	RecordedSettings string // the recorded settings
	AppliedSettings  string // the recorded settings at the last admission, with the position of a search that has not ended; see SearchIdleRuns

	// A store sets HasWork, HasUnclaimed, HasRunsInLine and NextDueAt before it locks the queue, to find out whether an
	// admission would change anything. The store sets NextDueAt in each admission.
	HasWork       bool      // a run with a place has ended or waits, a run is due without a place, or entered the queue before the queue had a row; or the StartBy or the deadline of an admitted run, or the CheckAt of a key, has come
	HasUnclaimed  bool      // a run is admitted that was never executed
	HasRunsInLine [3]bool   // whether there is a run in the line of each class
	NextDueAt     time.Time // when the next run of the queue is due, or the next CheckAt of a key comes; zero: no time is known

	AdmittedNotClaimed int                 // runs that are admitted and not claimed yet
	UnclaimedByKey     map[string]int      // by key, those of them that were never executed and were admitted at least UnclaimedStopsRateAfter ago; read only if HasRate reports true
	Runs               []AdmissionRun      // see AddRuns
	FirstInLine        [3]FirstWaitingRuns // the runs in line of each class, at most MaxRunsToReadInLine
	Keys               map[string]*QueueKeyState

	seenRuns    map[uuid.UUID]struct{}
	hasMoreWork bool
	idleSearch  *idleSearch // nil: the queue needs no search
}

// AddRuns adds the runs of one kind that the store has read to the QueueState, at most MaxRunsReadPerAdmission runs. A store may add a run
// twice if the run is of two kinds. The kinds are:
//
// - runs that have ended, and runs that wait or are paused although they have a place or are in line;
//
// - runs that are due but not admitted;
//
// - runs that entered the queue before the queue had settings;
//
// - runs that are admitted but not claimed yet (see MayTakeRunsBack);
//
// - runs of a deleted queue that still have a row in table place.
func (s *QueueState) AddRuns(runs []AdmissionRun) {
	if s.seenRuns == nil {
		s.seenRuns = make(map[uuid.UUID]struct{}, len(runs))
	}
	s.hasMoreWork = s.hasMoreWork || len(runs) >= MaxRunsReadPerAdmission
	for _, r := range runs {
		if _, known := s.seenRuns[r.Run]; !known {
			s.seenRuns[r.Run] = struct{}{}
			s.Runs = append(s.Runs, r)
		}
	}
}

// HasRate reports whether the queue's settings have a rate, for all its runs or for the runs of each group key.
func (s *QueueState) HasRate() bool {
	return s.Settings.Rate.Count > 0 || s.Settings.RatePerKey.Count > 0
}

// MaxRunsToReadInLine returns how many runs of each class that wait in the queue's line an admission reads at most.
func (s *QueueState) MaxRunsToReadInLine() int {
	n := MaxAdmittedNotClaimed - s.AdmittedNotClaimed
	if s.Settings.MaxExecuting > 0 {
		room := s.Settings.MaxExecuting - s.Use.Executing
		for i := range s.Runs {
			if r := &s.Runs[i]; r.State == PlaceExecuting && r.Status != Pending && r.Status != Running {
				room++
			}
		}
		n = min(n, room)
	}
	return max(n, 0)
}

// DueRunsExecutedBefore returns the runs that were executed before, are due again, and have no place in the queue. A store calls MarkRunEnding for
// each run of DueRunsExecutedBefore that has a checkpoint named EndRecordName.
func (s *QueueState) DueRunsExecutedBefore() (ids []uuid.UUID) {
	for i := range s.Runs {
		if r := &s.Runs[i]; r.WasExecuted && r.Admission == AdmissionPending && !r.WakeAt.IsZero() && !r.WakeAt.After(s.Now) {
			ids = append(ids, r.Run)
		}
	}
	return ids
}

// MarkRunEnding marks a run as ending: the run has recorded its outcome, and only its compensations remain to be executed.
func (s *QueueState) MarkRunEnding(run uuid.UUID) {
	for i := range s.Runs {
		if s.Runs[i].Run == run {
			s.Runs[i].IsEnding = true
		}
	}
}

// KeysToRead returns the group keys whose rows the store has to read: the keys of the runs that the store has read, and the keys in
// the argument more, each once.
func (s *QueueState) KeysToRead(more []string) []string {
	s.hasMoreWork = s.hasMoreWork || len(more) >= MaxGroupKeysRead
	keys := slices.Clone(more)
	for i := range s.Runs {
		keys = append(keys, s.Runs[i].Key)
	}
	for class := range s.FirstInLine {
		for i := range s.FirstInLine[class].Runs {
			keys = append(keys, s.FirstInLine[class].Runs[i].Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// HasNothingToDo reports whether an admission of the queue would change nothing. A store calls HasNothingToDo after it has read the queue
// without a lock. The result nextPassAt is when an admission may have something to change even if no run starts, ends or becomes due until
// then.
func (s *QueueState) HasNothingToDo(timeline string) (idle bool, nextPassAt time.Time) {
	if s.HasWork || s.Deleted || s.settingsChanged() || s.HasUnclaimed && s.ExceedsBounds() || timeline != "" && s.DatabaseTimeline != timeline {
		return false, time.Time{}
	}
	last := s.Clock
	s.advanceClock()
	a := admissionPlanner{QueueState: s}
	a.scheduleNextPass(s.NextDueAt)
	if search := s.idleSearchPosition(); search != nil {
		if search.isDue(s.Clock) {
			return false, time.Time{}
		}
		a.scheduleNextPass(search.secondAt)
	}
	if s.HasUnclaimed && s.HasRate() { // see countUnclaimedTowardRates
		if !s.Clock.Before(last.Add(UnclaimedStopsRateAfter)) {
			return false, time.Time{}
		}
		a.scheduleNextPass(last.Add(UnclaimedStopsRateAfter))
	}
	if s.Settings.MaxExecuting == 0 || s.Use.Executing < s.Settings.MaxExecuting {
		for class, lined := range s.HasRunsInLine {
			if lined && a.canAdmitClass(class) {
				return false, time.Time{}
			}
		}
	}
	return true, a.plan.NextPassAt
}

// advanceClock sets the clock for this pass, and bounds the times up to which the rates are used up; see capUsedUntilAtBurst.
func (s *QueueState) advanceClock() {
	s.Clock = laterTime(s.Clock, s.Now)
	s.RateUsedUntil = s.Settings.Rate.capUsedUntilAtBurst(s.RateUsedUntil, s.Clock)
	for _, k := range s.Keys {
		k.RateUsedUntil = s.Settings.RatePerKey.capUsedUntilAtBurst(k.RateUsedUntil, s.Clock)
	}
}

// AdmissionRun is a run of a queue whose row the transaction of an admission has locked.
type AdmissionRun struct {
	QueuePlace
	HasPlace    bool // the run has a row in table place; false if the run was started by a process that did not know the queue's row
	Admission   AdmissionState
	WasExecuted bool // a worker has claimed the run, and the first execution has removed its control bit HasStartBy
	IsEnding    bool // the run has recorded how it ends, and only executes its compensations
	Status      Status
	Control     ControlBits
	WakeAt      time.Time
	Deadline    time.Time
}

// WaitsInLine reports whether the run still waits in line for a place in its queue, and none of its deadlines has passed. The result is
// false for a run in line that has left the queue or is due, because a store also reads such runs.
func (r *AdmissionRun) WaitsInLine(now time.Time) bool {
	return r.Admission == AdmissionInLine && r.Status == Pending && (r.WakeAt.IsZero() || r.WakeAt.After(now))
}

// ShouldDeletePlaceRow reports whether the admission deletes the row of the run's place, because the run has ended. A live run that gives up its
// place in a queue which is being deleted keeps the row, which holds its group key, because the queue may get settings again.
func (r *AdmissionRun) ShouldDeletePlaceRow() bool {
	return r.State == PlaceGone && r.Status.IsTerminal()
}

// The classes of runs tell which bounds apply to a run besides those on executing runs. A queue has a line for each class, so that no
// run waits behind a run to which more bounds apply.
const (
	begunClass   = 0 // runs that have begun: no other bound
	childClass   = 1 // children that have not begun: the rate
	newRootClass = 2 // roots that have not begun: the rate, and the bounds on runs in progress
)

// admissionClass returns the class of the run.
func (p *QueuePlace) admissionClass() int {
	switch {
	case p.HasBegun:
		return begunClass
	case !p.Root:
		return childClass
	}
	return newRootClass
}

// FirstWaitingRuns holds the first runs of a line of waiting runs, except runs that another transaction has locked.
type FirstWaitingRuns struct {
	Runs        []AdmissionRun
	HasMoreRuns bool // the line is longer
}

// WaitingRunsRange is a part of a line of waiting runs that a store reads with one scan of an index.
type WaitingRunsRange struct{ HasBegun, Root bool }

// WaitingRunsRanges lists the WaitingRunsRange values of all lines of waiting runs.
var WaitingRunsRanges = [...]WaitingRunsRange{{true, true}, {true, false}, {false, false}, {false, true}}

// AddRunsInLine adds the first runs of one part of the queue's line of waiting runs. The argument more says whether this part of the line
// contains further runs.
func (s *QueueState) AddRunsInLine(part WaitingRunsRange, runs []AdmissionRun, more bool) {
	s.FirstInLine[part.admissionClass()].mergeRuns(runs, more, comparePlacesInLine)
}

// AddRunsBehindKey adds the first runs of one part of the line of runs that wait behind the group key. The argument more says whether this
// part of the line contains further runs.
func (k *QueueKeyState) AddRunsBehindKey(part WaitingRunsRange, runs []AdmissionRun, more bool) {
	k.FirstBehindKey[part.admissionClass()].mergeRuns(runs, more, comparePlacesBehindKey)
}

func (p WaitingRunsRange) admissionClass() int {
	return (&QueuePlace{HasBegun: p.HasBegun, Root: p.Root}).admissionClass()
}

// mergeRuns adds the first runs of another part of the line. Of a part with more runs, only the first are known, so mergeRuns omits
// all runs that come after the last known run of such a part.
func (w *FirstWaitingRuns) mergeRuns(runs []AdmissionRun, more bool, compare func(a, b *QueuePlace) int) {
	less := func(x, y AdmissionRun) int { return compare(&x.QueuePlace, &y.QueuePlace) }
	all := slices.Concat(w.Runs, runs)
	slices.SortFunc(all, less)
	for _, part := range []FirstWaitingRuns{*w, {runs, more}} {
		if !part.HasMoreRuns {
			continue
		}
		n := 0
		if len(part.Runs) > 0 {
			last := part.Runs[len(part.Runs)-1]
			n, _ = slices.BinarySearchFunc(all, last, less)
			n = min(n+1, len(all))
		}
		all = all[:n]
	}
	w.Runs, w.HasMoreRuns = all, w.HasMoreRuns || more
}

// QueueKeyState holds the row of one group key of a queue: the counts, the used-up rate and the turns of the key.
type QueueKeyState struct {
	Key                string
	RateUsedUntil      time.Time
	CheckAt            time.Time // when an admission next checks the runs behind the key even if nothing else happens to the key; zero: never
	LatestTurns        NumberPerPriority
	Use                QueueUse            // Waiting does not count
	InLine             [3]int              // runs in the line of the queue, by class
	InLineByPriority   NumberPerPriority   // the same runs, by priority
	WaitingForKeyCount int                 // runs that wait behind the key
	FirstBehindKey     [3]FirstWaitingRuns // the first runs behind the key, by class, at most MaxRunsReadBehindKey of each WaitingRunsRange

	changed  bool
	admitted bool // a run of the key was admitted by this pass
}

// AdmissionPlan holds the changes that one admission writes.
type AdmissionPlan struct {
	RunsToWrite   []AdmissionRun // whose place, admission, status and WakeAt are written
	KeysToWrite   []QueueKeyState
	KeysToDelete  []string
	NextPassAt    time.Time // when more runs can be admitted even if nothing else happens; zero: no time is known
	HasMoreWork   bool      // there is more to do now
	AdmittedCount int       // runs that became claimable
	AdmittedAt    time.Time // when these runs became claimable
	CheckAllKeys  bool      // the settings have changed, so the next admission checks all keys behind which runs wait

	SearchAdvanced bool // the search for idle runs has read further runs; see QueueState.SearchIdleRuns
}
