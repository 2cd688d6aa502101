package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A repair makes the next generation of a run: the row of the run starts anew with some of its checkpoints, and the other checkpoints
// and the outcome move to a SupersededGeneration. The row keeps its UUID, so references to the run remain valid. Package repair
// decides what a repair does, and the stores apply it.

// RepairStore makes new generations of runs and reads superseded ones.
type RepairStore interface {
	// FenceRun takes a live run away from its owner: the run becomes Paused with the next epoch, so that the old owner can write nothing
	// more. The run becomes paused for the repair, unless it is already paused itself or held for drift. FenceRun does not change a run
	// that has ended. FenceRun then waits until writes under way have ended, as a claim of a run with a lost lease does. After FenceRun,
	// the history of the run does not change until the next claim or repair. A repeated call of FenceRun returns the same outcome.
	FenceRun(ctx context.Context, f *FenceRequest) error

	// ExtendRepairPause records the time at which a worker resumes a run that is paused for a repair, in case the process that repairs the
	// run dies. The engine calls ExtendRepairPause before it pauses the run for a repair, and again with a later time while the repair
	// continues. ExtendRepairPause does not pause the run, and does not check whether the run is paused.
	ExtendRepairPause(ctx context.Context, run uuid.UUID, until time.Time) error

	// ExpiredRepairPauses returns up to limit runs whose pause for a repair has expired at the time now. The caller resumes the runs that
	// ExpiredRepairPauses returns with ControlRequest.ForRepair, and then calls DeleteRepairPause.
	ExpiredRepairPauses(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error)

	// DeleteRepairPause deletes the time that ExtendRepairPause has recorded for a run, unless this time is later than now.
	DeleteRepairPause(ctx context.Context, run uuid.UUID, now time.Time) error

	// ApplyRepair applies a repair in one transaction, and sets its outcome. ApplyRepair rolls the transaction back unless all runs,
	// children and checkpoints are as the RepairRequest expects. A repeated call of ApplyRepair with the same RequestID changes nothing,
	// and its outcome is Written. ApplyRepair returns ErrLocked if another transaction has locked a row.
	ApplyRepair(ctx context.Context, r *RepairRequest) error

	// FirstInputHash returns the hash of the input with which a run was started, if the run has continued as new since; the last
	// RunRepair with ContinuesAsNew has recorded it. For any other run, FirstInputHash returns nil. FirstInputHash needs no more
	// rights than a start.
	FirstInputHash(ctx context.Context, run uuid.UUID) ([]byte, error)

	// FindGenerations returns the superseded generations with the given archive IDs, in any order. It omits IDs that are no archive ID.
	FindGenerations(ctx context.Context, archives []uuid.UUID) ([]GenerationKey, error)

	// ForkRun creates, in one transaction, a root run that begins with the checkpoints in Fork.Steps, and sets the Outcome of Fork.Start.
	// If a root run with the name of the new run exists, ForkRun creates nothing.
	ForkRun(ctx context.Context, f *ForkRequest) error

	// SupersededGenerations returns those superseded generations of a run that the query selects, oldest first. The result is empty for a
	// run that has only one generation.
	SupersededGenerations(ctx context.Context, run uuid.UUID, q GenerationsQuery) ([]SupersededGeneration, error)
}

// GenerationsQuery selects some of the superseded generations of a run, beginning with the newest.
type GenerationsQuery struct {
	BeforeNumber int32 // only generations with a smaller number; zero: all
	Limit        int   // how many at most; zero: all
	// MaxBytes bounds the payloads of the returned generations, and zero means no bound. The two newest selected generations are always
	// returned. An older generation is omitted if the returned generations, without its next newer one, already have MaxBytes bytes.
	MaxBytes int64
	Payloads PayloadSelection
}

// BoundsOrMax returns the fields BeforeNumber, Limit and MaxBytes, with the largest possible number in place of each zero.
func (q *GenerationsQuery) BoundsOrMax() (before, limit int32, maxBytes int64) {
	before, limit, maxBytes = math.MaxInt32, math.MaxInt32, math.MaxInt64
	if q.MaxBytes > 0 {
		maxBytes = q.MaxBytes
	}
	if q.BeforeNumber > 0 {
		before = q.BeforeNumber
	}
	if q.Limit > 0 {
		limit = int32(min(q.Limit, math.MaxInt32))
	}
	return before, limit, maxBytes
}

// The pause of a run for a repair belongs to the process that repairs it, as a run belongs to its worker: it is leased, and the process
// extends the lease. If the process dies, workers resume the run when the lease has ended. The control bit PausedForRepair
// distinguishes this pause from a pause by a person, which ends only with a resume. If the run is resumed while its repair is in
// progress, the run no longer has the state that the repair expects, and the repair must be planned anew.

// FenceRequest takes a run away from its owner; see RepairStore.FenceRun.
type FenceRequest struct {
	Run            uuid.UUID
	StateBefore    RunState // the run as it was read
	NextEpochNonce uint32   // of the next epoch
	Now            time.Time
	Reason         string // of the pause
	Actor          string

	// Outcome is Written, or Fenced if the run is no longer in the state StateBefore. If Outcome is Fenced, RunState is the present state
	// of the run.
	Outcome  WriteOutcome
	RunState RunState
}

// EpochAfterFence returns the epoch of the run after the fence: the next epoch of a live run, or the present epoch of a run that has ended.
func (f *FenceRequest) EpochAfterFence() Epoch {
	if f.StateBefore.Status.IsTerminal() {
		return f.StateBefore.Epoch
	}
	return f.StateBefore.Epoch.Next(f.NextEpochNonce)
}

// ControlAfterFence returns the control bits of a live run after the fence. A run that is already paused itself or held for drift keeps its
// control bits.
func (f *FenceRequest) ControlAfterFence() ControlBits {
	if f.StateBefore.Control&(PausedItself|HeldForDrift) != 0 {
		return f.StateBefore.Control
	}
	return f.StateBefore.Control | PausedItself | PausedForRepair
}

// OutcomeFromState returns the outcome of a FenceRequest for which the store has changed no row.
func (f *FenceRequest) OutcomeFromState(now RunState) WriteOutcome {
	live := !f.StateBefore.Status.IsTerminal()
	switch {
	case live && now.Found && now.Status == Paused && now.Epoch == f.EpochAfterFence():
		return Written // the result of an earlier try was lost
	case !live && now == f.StateBefore:
		return Written
	}
	return Fenced
}

// RepairRequest makes the next generation of one or more runs of a tree.
type RepairRequest struct {
	RequestID uuid.UUID // identifies the repair, so that a call whose result was lost can be repeated
	Verb      string    // the kind of the repair, such as "retry"
	Actor     string
	Reason    string
	Now       time.Time
	Runs      []RunRepair        // parents before their children
	Guards    []ExpectedRunState // runs above that must not change meanwhile
	// CancelRequest cancels live children that belong only to superseded generations. CancelRequest is nil if there are no such
	// children.
	CancelRequest *ControlRequest
	// ResumeRequest resumes, as the last change of the transaction, the runs that were paused for the repair. It also resumes the detached
	// children that were paused together with a repaired run and now belong only to its superseded generation. ResumeRequest is nil if
	// there are no such runs.
	ResumeRequest *ControlRequest

	// Outcome is Written, or Fenced if a run has changed since the repair was planned. If Outcome is Fenced, the store has changed nothing.
	Outcome WriteOutcome
}

// RunRepair is the part of a RepairRequest that concerns one run.
type RunRepair struct {
	Run              uuid.UUID
	StateBefore      RunState // the run as it was read
	SupersededNumber int32    // of the generation that is superseded
	CheckpointCount  int      // how many checkpoints the run has
	FromStep         string   // the step from which it is executed anew; empty: none was given

	KeptSteps         []string    // the checkpoints that the new generation has too, in order
	FirstChangedSeq   int32       // the Seq of the first call that is dropped or changed: kept calls with a higher Seq lose SeqOwnGoroutineBit; zero: no call is dropped or changed
	NewSteps          []Step      // further checkpoints of the new generation, in the order of their names
	DetachedChildren  []uuid.UUID // children that belong to the superseded generation only
	ReleasedReceivers []string    // receivers whose signals are received anew; see ReceiveWrite
	Detail            []byte      // what the repair changes, in the engine's encoding

	// ContinuesAsNew says that the run, which is being executed, continues as new: with the Input, an empty history and its present
	// deadline. All checkpoints and children of a run that continues as new move to the superseded generation.
	ContinuesAsNew bool
	Input          []byte        // only with ContinuesAsNew
	FirstInputHash []byte        // only with ContinuesAsNew: see RepairStore.FirstInputHash
	Owner          uuid.NullUUID // the worker that executes the new generation; then Status is Running and WakeAt the end of the lease

	Epoch    Epoch // of the new generation: the epoch after StateBefore.Epoch
	Status   Status
	Control  ControlBits
	WakeAt   time.Time
	Deadline time.Time // of a run that has ended; a live run keeps its own
	Progress int       // the sum of Step.Progress of its checkpoints
}

// ReleasesHold reports whether the run was held for drift and its new generation is not. The store then deletes the divergences of the run.
func (r *RunRepair) ReleasesHold() bool { return r.StateBefore.Control&^r.Control&HeldForDrift != 0 }

// ArchiveID returns the run ID under which the store keeps the checkpoints of the superseded generation, in place of the run's own ID.
func (r *RunRepair) ArchiveID() uuid.UUID { return GenerationUUID(r.Run, r.SupersededNumber) }

// ExpectedRunState is a run that the repair does not change, and the state in which the repair has read it. The repair is applied only if the
// run is still in this state.
type ExpectedRunState struct {
	Run         uuid.UUID
	StateBefore RunState
}

// RunsInLockOrder returns the runs of the repair and its guards, in the order in which a store locks them.
func (r *RepairRequest) RunsInLockOrder() []uuid.UUID {
	runs := make([]uuid.UUID, 0, len(r.Runs)+len(r.Guards))
	for i := range r.Runs {
		runs = append(runs, r.Runs[i].Run)
	}
	for i := range r.Guards {
		runs = append(runs, r.Guards[i].Run)
	}
	slices.SortFunc(runs, CompareUUIDsByShard)
	return runs
}

// EventType returns the type of the event that records the repair.
func (r *RepairRequest) EventType() EventType {
	if r.Runs[0].ContinuesAsNew {
		return EventContinued
	}
	return EventRepaired
}

// OutcomeFromStates returns the outcome of a repair after the store has locked its runs, or zero if the repair can be applied. The argument
// states holds the present states of the runs. The argument done says whether the first run has a generation that a repair with this
// RequestID has superseded.
func (r *RepairRequest) OutcomeFromStates(states map[uuid.UUID]RunState, done bool) WriteOutcome {
	if done {
		return Written // the result of an earlier try was lost
	}
	for i := range r.Runs {
		if run := &r.Runs[i]; states[run.Run] != run.StateBefore {
			return Fenced
		}
	}
	for i := range r.Guards {
		if g := &r.Guards[i]; states[g.Run] != g.StateBefore {
			return Fenced
		}
	}
	return 0
}

// ErrRepairOutdated is used within a store when a run, a child or a checkpoint is not as the RepairRequest expects. If a
// transaction returns ErrRepairOutdated, the store rolls it back and sets the outcome of the RepairRequest to Fenced.
var ErrRepairOutdated = errors.New("a run, a child or a checkpoint is not as the repair says")

// CurrentGeneration returns the number of a run's present generation. The argument before holds the superseded generations that the store
// has kept; the newest one is always among them.
func CurrentGeneration(before []SupersededGeneration) int32 {
	if len(before) == 0 {
		return 1
	}
	return before[len(before)-1].Number + 1
}

// SupersededGeneration is a superseded generation of a run. The database stores the checkpoints of a superseded generation with
// SupersededGeneration.ArchiveID as the run ID, in place of the run's own ID.
type SupersededGeneration struct {
	Run       Run // as it was; Status is Superseded if it had not ended
	Number    int32
	ArchiveID uuid.UUID

	StoredBytes int // of the payloads, as the database has them: a codec may have changed their size

	// RequestID, Verb and the next fields tell how the generation after this one was made.
	RequestID uuid.UUID
	Verb      string
	Actor     string
	Reason    string
	FromStep  string
	At        time.Time
	Detail    []byte
}

// GenerationKey identifies a superseded generation. The children that belong to the generation have the ArchiveID as their Parent.
type GenerationKey struct {
	ArchiveID uuid.UUID
	Run       uuid.UUID
	Number    int32
}

// SeqOfKeptCall returns the Seq of a kept call in the new generation. The argument first is RunRepair.FirstChangedSeq.
func SeqOfKeptCall(seq, first int32) int32 {
	if first > 0 && seq > first {
		seq &^= SeqOwnGoroutineBit
	}
	return seq
}

// ForkRequest creates a root run that begins with a copy of another run's history.
type ForkRequest struct {
	Start *StartWrite // of a run that is Pending, with an epoch of count 1: like a run that was executed, it has a history
	Steps []Step      // its checkpoints, in the order of their names

	// Source is the run that was forked. Source and the next fields are what the event records: who made the fork, when, why, and from
	// which run.
	Source uuid.UUID
	Actor  string
	Reason string
}
