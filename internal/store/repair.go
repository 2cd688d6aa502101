package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
)

// A repair makes the next generation of a run: the row of the run starts anew with some of its checkpoints, and what
// is over moves to a Generation. The row keeps its UUID, so all that refers to the run goes on to be right. Package
// repair decides what a repair does, and the stores apply it.

// RepairStore makes and reads generations.
type RepairStore interface {
	// FenceRun takes a run away from its owner, if it is live: it becomes Paused with the next epoch, so that nothing
	// more of the old epoch is written. It becomes paused for the repair, unless it is paused itself or held for drift. A run that
	// has ended does not change. In both cases Fence then waits for writes under way, as a claim of a lost lease does. After that,
	// the history of the run stays as it is until the next claim or repair. A repeated call returns the same outcome.
	FenceRun(ctx context.Context, f *FenceRequest) error

	// ExtendRepairPause records the time at which a worker resumes a run that is paused for a repair, in case the process that repairs
	// the run dies. The engine calls it before it pauses the run, and again with a later time while the repair continues. It does
	// not pause the run, and does not check whether the run is paused.
	ExtendRepairPause(ctx context.Context, run uuid.UUID, until time.Time) error

	// ExpiredRepairPauses returns up to limit runs whose pause for a repair has ended by itself at the time now.
	// The caller resumes them with ControlRequest.ForRepair, and then calls DeleteRepairPause.
	ExpiredRepairPauses(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error)

	// DeleteRepairPause deletes what ExtendRepairPause has recorded of a run, unless it was extended beyond the time now.
	DeleteRepairPause(ctx context.Context, run uuid.UUID, now time.Time) error

	// ApplyRepair applies a repair in one transaction, and sets its outcome. The database rolls the transaction back
	// unless all runs, children and checkpoints are as the repair says. A repeated call with the same Request changes
	// nothing, and its outcome is Written. It returns ErrLocked if another transaction has locked a row.
	ApplyRepair(ctx context.Context, r *RepairRequest) error

	// ForkRun creates a root run with checkpoints in one transaction, and sets the outcome of the start. If the name is taken, it
	// creates nothing.
	ForkRun(ctx context.Context, f *Fork) error

	// SupersededGenerations returns the superseded generations of a run that the query selects, the oldest first, and none for a
	// run that was never repaired.
	SupersededGenerations(ctx context.Context, run uuid.UUID, q GenerationsQuery) ([]Generation, error)
}

// GenerationsQuery selects the newest of the superseded generations of a run.
type GenerationsQuery struct {
	Before int32 // only generations with a smaller number; zero: all
	Limit  int   // how many at most; zero: all
	// MaxBytes bounds the payloads of the generations: a generation is left out if those after the next newer one have as many bytes. So there are
	// always two. Zero: no bound.
	MaxBytes int64
	With     PayloadSelection
}

// BoundsOrMax returns Before, Limit and MaxBytes, with the largest numbers instead of zero.
func (q *GenerationsQuery) BoundsOrMax() (before, limit int32, maxBytes int64) {
	before, limit, maxBytes = math.MaxInt32, math.MaxInt32, math.MaxInt64
	if q.MaxBytes > 0 {
		maxBytes = q.MaxBytes
	}
	if q.Before > 0 {
		before = q.Before
	}
	if q.Limit > 0 {
		limit = int32(min(q.Limit, math.MaxInt32))
	}
	return before, limit, maxBytes
}

// The pause of a run for a repair belongs to the process that repairs it, as a run belongs to its worker: it is leased, and the process
// extends the lease. If the process dies, workers resume the run when the lease has ended. The control bit PausedForRepair tells that
// pause from a person's, which ends only by a resume. A run that was resumed while its repair still goes on is not as the repair says
// any more, so the repair has to be planned anew.

// FenceRequest takes a run away from its owner; see RepairStore.
type FenceRequest struct {
	Run    uuid.UUID
	Before RunState // the run as it was read
	Nonce  uint32   // of the next epoch
	Now    time.Time
	Reason string // of the pause
	Actor  string

	// Outcome is Written; or Fenced if the run is not as Before says. Then RunState is the present state of the run.
	Outcome  WriteOutcome
	RunState RunState
}

// EpochAfterFence returns the next epoch of the run, or its present epoch if the run has ended.
func (f *FenceRequest) EpochAfterFence() Epoch {
	if f.Before.Status.IsTerminal() {
		return f.Before.Epoch
	}
	return f.Before.Epoch.Next(f.Nonce)
}

// ControlAfterFence returns the control bits of a live run after the fence. A run that is paused or held for drift stands still already.
func (f *FenceRequest) ControlAfterFence() ControlBits {
	if f.Before.Control&(PausedItself|HeldForDrift) != 0 {
		return f.Before.Control
	}
	return f.Before.Control | PausedItself | PausedForRepair
}

// OutcomeFromState returns the outcome of a fence that changed no row.
func (f *FenceRequest) OutcomeFromState(now RunState) WriteOutcome {
	live := !f.Before.Status.IsTerminal()
	switch {
	case live && now.Found && now.Status == Paused && now.Epoch == f.EpochAfterFence():
		return Written // the result of an earlier try was lost
	case !live && now == f.Before:
		return Written
	}
	return Fenced
}

// RepairRequest makes the next generation of one or more runs of a tree.
type RepairRequest struct {
	Request uuid.UUID // identifies the repair, so that a call whose result was lost can be repeated
	Verb    string    // how the generations come to be, such as "retry"
	Actor   string
	Reason  string
	Now     time.Time
	Runs    []RunRepair // parents before their children
	Guards  []RunGuard  // runs above that must not change meanwhile
	// Cancel cancels live children that belong to the superseded generations only. Nil means there are none.
	Cancel *ControlRequest
	// Resume resumes runs that were paused for the repair, after all else. Nil means there are none.
	Resume *ControlRequest

	// Outcome is Written, or Fenced if a run has changed since the repair was planned. If it is Fenced, nothing was changed.
	Outcome WriteOutcome
}

// RunRepair is the part of a Repair that concerns one run.
type RunRepair struct {
	Run         uuid.UUID
	Before      RunState // the run as it was read
	Number      int32    // of the generation that is superseded
	Checkpoints int      // how many checkpoints the run has
	From        string   // the step from which it is executed anew; empty: none was given

	KeptSteps         []string    // the checkpoints that the new generation has too, in order
	FirstChange       int32       // the Seq of the first call that is dropped or changed: kept ones with a higher Seq lose SeqOwnGoroutine. Zero: there is none
	NewSteps          []Step      // further checkpoints of the new generation, in the order of their names
	DetachedChildren  []uuid.UUID // children that belong to the superseded generation only
	ReleasedReceivers []string    // receivers whose signals are received anew; see ReceiveWrite
	Detail            []byte      // what the repair changes, in the engine's encoding

	// ContinuesAsNew says that a run that is executed goes on with Input, an empty history and its deadline. Its checkpoints and children,
	// however many there are, move to the superseded generation.
	ContinuesAsNew bool
	Input          []byte        // only with Continues
	Owner          uuid.NullUUID // the worker that executes the new generation; then Status is Running and WakeAt the end of the lease

	Epoch         Epoch // of the new generation: the one after Before.Epoch
	Status        Status
	Control       ControlBits
	WakeAt        time.Time
	Deadline      time.Time // if the run has ended; a live one keeps its own
	TerminalSteps int       // the number of its terminal checkpoints
}

// ArchiveID returns the ID under which the checkpoints of the superseded generation are kept. They have this ID in place of the run's ID.
func (r *RunRepair) ArchiveID() uuid.UUID { return GenerationUUID(r.Run, r.Number) }

// RunGuard is a run that is not repaired, and its state as it was read.
type RunGuard struct {
	Run    uuid.UUID
	Before RunState
}

// RunsInLockOrder returns the runs of the repair and its guards, in the order in which they are locked.
func (r *RepairRequest) RunsInLockOrder() []uuid.UUID {
	runs := make([]uuid.UUID, 0, len(r.Runs)+len(r.Guards))
	for i := range r.Runs {
		runs = append(runs, r.Runs[i].Run)
	}
	for i := range r.Guards {
		runs = append(runs, r.Guards[i].Run)
	}
	slices.SortFunc(runs, CompareUUIDs)
	return runs
}

// EventType returns the type of the event that records the repair.
func (r *RepairRequest) EventType() EventType {
	if r.Runs[0].ContinuesAsNew {
		return EventContinued
	}
	return EventRepaired
}

// OutcomeFromStates returns the outcome of a repair that has locked its runs. states are the runs as they are, and done reports
// whether the first of them has a generation that was superseded by this Request. Decide returns zero if the repair
// can be applied.
func (r *RepairRequest) OutcomeFromStates(states map[uuid.UUID]RunState, done bool) WriteOutcome {
	if done {
		return Written // the result of an earlier try was lost
	}
	for i := range r.Runs {
		if run := &r.Runs[i]; states[run.Run] != run.Before {
			return Fenced
		}
	}
	for i := range r.Guards {
		if g := &r.Guards[i]; states[g.Run] != g.Before {
			return Fenced
		}
	}
	return 0
}

// ErrRepairOutdated is returned within a store when a run, a child or a checkpoint is not as the RepairRequest expects it. The store rolls the
// transaction back and sets the outcome Fenced.
var ErrRepairOutdated = errors.New("a run, a child or a checkpoint is not as the repair says")

// CurrentGeneration returns the number of a run's present generation. before has the superseded ones that are kept, which
// include the newest one.
func CurrentGeneration(before []Generation) int32 {
	if len(before) == 0 {
		return 1
	}
	return before[len(before)-1].Number + 1
}

// Generation is a superseded generation of a run. Its checkpoints are stored with Archive as the run ID, in place of the ID of the run.
type Generation struct {
	Run     Run // as it was; Status is Superseded if it had not ended
	Number  int32
	Archive uuid.UUID

	StoredBytes int // of the payloads, as the database has them: a codec may have changed their size

	// How the generation after it came to be.
	Request uuid.UUID
	Verb    string
	Actor   string
	Reason  string
	From    string
	At      time.Time
	Detail  []byte
}

// SeqOfKeptCall returns the sequence number of a kept call, where first is the RunRepair.FirstChange of the repair.
func SeqOfKeptCall(seq, first int32) int32 {
	if first > 0 && seq > first {
		seq &^= SeqOwnGoroutine
	}
	return seq
}

// Fork creates a root run that begins with a copy of another run's history.
type Fork struct {
	Start *StartWrite // of a run that is Pending, with an epoch of count 1: like a run that was executed, it has a history
	Steps []Step      // its checkpoints, in the order of their names

	// The event tells who made it, when, why, and from which run.
	Source uuid.UUID
	Actor  string
	Reason string
}
