// Package engine executes runs: it starts or claims them, replays their history,
// checkpoints new calls through the journal and renews their leases. It releases
// them when they end, when they wait, or when this process stops.
//
// The engine sees bytes only. The root package gives each workflow a WorkflowDefinition
// that decodes an input, calls the user's function and encodes its result. It gives
// each step a function of the same kind.
//
// # One run in one process
//
//	Start (slot free) ─┐
//	                   ├─► run.execute ─► workflow function ─► writeResultOrSuspension ─► journal: the run's end
//	claim loop ────────┘ (also before a slot is free: see claim_prefetch.go)
//	                                      │
//	                                      └─ Scope.Step ─► history hit: recorded result, no I/O
//	                                                   └─► miss: attempts ─► journal ─► result
//
// A run that leaves the process before its end is suspended. A suspension is final in
// this process: the run's context ends, every durable call returns ErrSuspended, and
// the engine ignores the result of the function. The cause of the suspension decides
// what is written: a park time, a release, or nothing if the lease is lost.
//
// # Who owns what
//
//   - Engine owns the clock and the waiters for results, and shares the journal with the other engines of its store. As a client, it
//     needs no goroutine of its own.
//   - worker exists from the beginning of Run to its end. It owns the loops (claim, renew, listen, takeover) and the goroutines of
//     runs.
//   - run owns its contexts, its history and its suspension.
//
// # Where things are
//
// The name of a file begins with the part of the engine to which the file belongs.
//
//   - engine: what a process does as a client: starts, signals, waits for results.
//   - worker: the loops of a process that executes runs, its leases and notifications.
//   - claim: which runs the workers take. Workers of one process that may execute the same runs claim together.
//   - run: the life of one run from its claim to its end: replay, compensations, end.
//   - call: durable calls, one file for each kind, and the attempts of steps with their
//     slots and permits.
//   - park: when a run that waits leaves memory.
//   - start_in_queue and claim_queue_rules: how runs in queues with settings are started and claimed.
//   - start_with_start_key and start_keys_due: starts with the options Singleton, Debounce and Throttle.
//   - test_hooks: what package durabletest observes and controls.
//
// Parts of the worker with a small interface are packages of their own: permits exchanges the permits of steps, queues admits runs to
// queues with settings, retention deletes runs and events that are no longer kept, and polling decides how often a worker polls.
//
// The calls with which an operator changes limits, queues and runs are in files of engine. What a worker does about such a change is
// in files of worker.
package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/coded"
	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/queues"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/results"
	"github.com/seed8ec063be/durable/internal/retention"
	"github.com/seed8ec063be/durable/internal/slots"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Config is the configuration of an engine. The root package fills in the defaults.
type Config struct {
	Definitions        []*WorkflowDefinition
	Queues             []string      // from which the worker takes runs; empty: from all
	Name               string        // the name of the worker
	Version            string        // the version of the program; empty: the build's, see package buildversion
	Concurrency        int           // runs executed at once
	StepConcurrency    int           // step functions executed at once; zero: no limit
	Lease              time.Duration // how long a worker that does not renew keeps its runs
	Poll               time.Duration // the longest wait between two claims
	Grace              time.Duration // how long running steps may continue after the end of Run's context
	ParkAfter          time.Duration // runs that wait longer than this are unloaded from memory
	MaxCrashes         int           // crashes in a row without a checkpoint after which a run is paused
	FailAtMaxCrashes   bool          // a run with MaxCrashes crashes fails and is not paused
	ClaimLimit         int           // runs that one claim takes at most
	StartedMarkerDelay time.Duration // an attempt that takes longer than this writes a started marker
	Patience           time.Duration // how long a flush is retried while the database is unavailable
	Schedules          []DeclaredSchedule
	// DeclaredQueues are the queues that the code declares. The worker records them in the database when it begins.
	DeclaredQueues []DeclaredQueue
	Retention      retention.Policy
	Codec          payload.Codec // encodes the payloads of users; nil: none
	Telemetry      *telemetry.Telemetry
}

// WorkflowDefinition is a workflow whose inputs and outputs are bytes.
type WorkflowDefinition struct {
	Name string
	// Pinned says that only workers with the version of a run execute the run, as long as such a worker lives and for PinnedGrace
	// after that. The version of a run is the version of the worker that claimed it last or, if no worker has claimed it, of the
	// process that started it.
	Pinned            bool
	PinnedGrace       time.Duration
	OnDrift           DriftPolicy
	PreviousCallNames map[string]string // for each call that was renamed, its previous name by its present name
	// RunRetryDelay returns how long a run that has failed the given number of times in a row waits before its next generation, or false if
	// the run ends. If RunRetryDelay is nil, the run ends at its first failure.
	RunRetryDelay func(failures int32) (time.Duration, bool)
	RetiredCalls  map[string]bool // recorded calls that the code does not make any more
	// UserFunction is the workflow function that the user defined, or nil if the function is unknown; see Scope.isOnOwnGoroutine.
	UserFunction any
	// IsGraph reports whether the workflow is a graph, so that each of its runs records a shape before it makes other calls.
	IsGraph bool
	// FirstCheckpoint is the first checkpoint that every run of the workflow writes. FirstCheckpoint is nil if there is no such checkpoint.
	FirstCheckpoint *FirstCheckpoint
	// UsedNameCount is how many names of calls each run of the workflow uses, if this number is known before a run is executed. Otherwise
	// UsedNameCount is zero.
	UsedNameCount int
	// CallFunction calls the workflow function and returns its output or its failure. The engine ignores the result of CallFunction once
	// the run is suspended.
	CallFunction func(s *Scope, input []byte) (output []byte, failure *record.Failure)
	// EncodeContinueAsNewInput encodes the input with which a run of the workflow continues as new. EncodeContinueAsNewInput returns an error if the value does not
	// have the type of the workflow's input.
	EncodeContinueAsNewInput func(input any) ([]byte, error)
}

// Engine lets one process use one store.
type Engine struct {
	cfg                 Config
	store               store.Store
	journal             *journal.Journal
	clock               clock.Clock
	telemetry           *telemetry.Telemetry
	workflows           map[string]*WorkflowDefinition
	claimGroup          *workerClaimGroup  // the group in which the workers of this engine claim
	claimFilter         *store.ClaimFilter // selects the workflows of cfg.Definitions in cfg.Queues
	resultWaiters       *results.Waiters
	signalTimeGenerator increasingTimeGenerator
	rootTimeGenerator   increasingTimeGenerator // used with the clock of a test
	tokenKey            atomic.Pointer[[]byte]  // nil: not read yet
	testHooks           TestHooks               // set by a test, else nil
	rawStore            store.Store             // the store itself, without the wrappers of test hooks and a codec
	codecStore          *coded.Store            // rawStore with the codec; nil: there is no codec
	awaitCallerCount    results.Count           // the number of callers of Await without a result; with test hooks, only callers outside of runs
	awaitCallers        awaitCallers            // the callers of Await, for an engine with test hooks
	counters            engineCounters
	stepSlots           *slots.StepPool // nil: no limit
	queueRows           *queues.RowCache
	queueDepths         queues.DepthCache
	pinnedWorkflows     store.PinnedWorkflows // the pinned workflows of cfg.Definitions
	startKeyLocks       startKeyLocks
	startedMarkerPool   sync.Pool // of delayedStartedMarker, whose timers are stopped

	noOlderWorkerAt atomic.Pointer[time.Time] // when the engine last found that no live worker ignores generations; nil: not known; see holdIfOlderWorkersLive

	mu               sync.Mutex
	lifetime         *workerLifetime // nil while there is no worker
	engineRunError   error           // the error with which the worker of Run had to stop
	engineRunStopped bool            // Run is stopping or has returned, and was not called again
}

// New returns an engine. New does not connect to the database.
func New(s store.Store, cfg Config) *Engine {
	cfg.ClaimLimit = cmp.Or(cfg.ClaimLimit, defaultClaimLimit)
	e := &Engine{cfg: cfg, store: s, rawStore: s, clock: new(clock.Estimate), telemetry: cfg.Telemetry, stepSlots: slots.NewStepPool(cfg.StepConcurrency), workflows: make(map[string]*WorkflowDefinition, len(cfg.Definitions)), pinnedWorkflows: make(store.PinnedWorkflows)}
	for _, d := range cfg.Definitions {
		e.workflows[d.Name] = d
		if d.Pinned {
			e.pinnedWorkflows[d.Name] = d.PinnedGrace
		}
	}
	e.claimFilter = store.NewClaimFilter(slices.Collect(maps.Keys(e.workflows)), cfg.Queues)
	e.attachTestHooks(s)
	if cfg.Codec != nil {
		s, e.codecStore = coded.New(s, cfg.Codec), coded.New(e.rawStore, cfg.Codec)
		e.store = s
	}
	e.queueRows = queues.NewRowCache(e.store)
	e.journal, e.claimGroup = e.findOrCreateJournal(), e.findOrCreateClaimGroup()
	e.resultWaiters = results.New(s, e, e.telemetry.Log)
	return e
}

// Store returns the engine's store without the wrapper of test hooks. The returned store encodes and decodes payloads with the codec.
func (e *Engine) Store() store.Store {
	if e.codecStore != nil {
		return e.codecStore
	}
	return e.rawStore
}

// RawStore returns the store that was passed to New, without the wrapper of test hooks and without the codec. The returned store
// reads and writes payloads in their stored form.
func (e *Engine) RawStore() store.Store { return e.rawStore }

// HasWorkflow reports whether this engine has a definition of the workflow.
func (e *Engine) HasWorkflow(workflow string) bool { return e.workflows[workflow] != nil }

// StartResult is the result of one StartRequest.
type StartResult struct {
	Run     store.Run // the run that was created, or the existing run
	Created bool
	Err     error // ErrIDConflict, or nil
}

// Start creates the runs in one transaction, or finds the runs that exist. If this engine executes the workflow of a new run and has a free
// slot, it begins the run at once, without a claim. Start returns its results in the order of the requests.
func (e *Engine) Start(ctx context.Context, requests []StartRequest) ([]StartResult, error) {
	if err := e.CheckOutsideTx(ctx, "a start"); err != nil {
		return nil, err
	}
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return nil, err
	}
	return e.checkNamesAndStart(ctx, userCaller, requests)
}

// checkNamesAndStart starts the runs, except for requests whose name is the UUID of another run. Those get
// an error in their result.
func (e *Engine) checkNamesAndStart(ctx context.Context, by writeOptions, requests []StartRequest) ([]StartResult, error) {
	var wrong map[int]error
	err := e.readBeforeWrite(ctx, by, func() (err error) {
		wrong, err = e.CheckNamesAgainstUUIDs(ctx, requests)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(wrong) == 0 {
		return e.createRuns(ctx, by, requests)
	}
	return e.startValidRequests(ctx, by, requests, wrong)
}

// startValidRequests starts the runs of the requests that have no error in wrong.
func (e *Engine) startValidRequests(ctx context.Context, by writeOptions, requests []StartRequest, wrong map[int]error) ([]StartResult, error) {
	startResults := make([]StartResult, len(requests))
	var fit []StartRequest
	var places []int
	for i, q := range requests {
		if startResults[i].Err = wrong[i]; wrong[i] == nil {
			fit, places = append(fit, q), append(places, i)
		}
	}
	if len(fit) == 0 {
		return startResults, nil
	}
	started, err := e.createRuns(ctx, by, fit)
	for i, s := range started {
		startResults[places[i]] = s
	}
	return startResults, err
}

// createRuns writes the runs of the requests, and executes at once those for which the worker of this process has slots.
func (e *Engine) createRuns(ctx context.Context, by writeOptions, requests []StartRequest) ([]StartResult, error) {
	if err := e.readBeforeWrite(ctx, by, func() error { return e.MarkStartsNeedingQueuePlace(ctx, requests) }); err != nil {
		return nil, err
	}
	w, free, hintsBefore := e.reserveSlotsForStarts(requests)
	defer free.Release()
	starts, spans := e.PrepareStarts(ctx, requests)
	rows := startsOfOneCall{starts: starts, localStarts: make([]*store.StartWrite, 0, free.UnassignedSlots())}
	now, nonce := starts[0].Run.CreatedAt, uint32(0)
	if free.UnassignedSlots() > 0 {
		nonce = store.NewNonce()
	}
	for _, s := range starts {
		if s.Place == nil && len(rows.localStarts) < free.UnassignedSlots() && e.claimFilter.Includes(s.Run.Queue, s.Run.Workflow) && !s.Run.WakeAt.After(now) {
			w.setOwner(&s.Run, now, nonce)
			rows.localStarts = append(rows.localStarts, s)
		}
	}
	rows.addFirstCheckpoint(e)
	outcome := store.Written // a conflict of names is reported as an error of one result
	err := e.writeWithRetry(ctx, by, func() {
		free.Release() // other starts need not wait for these slots
		rows.makeRunsClaimable()
	}, func(j journal.CommittingWriter) (*store.WriteOutcome, error) { return &outcome, rows.write(ctx, j) })
	if err != nil {
		free.Release()
		w.addUncertainStart(rows.localStarts, err)
		spans.EndFailed(err)
		return nil, err
	}
	for _, s := range rows.localStarts {
		if s.Outcome == store.Written {
			w.startExecution(&store.ClaimedRun{Run: s.Run, History: rows.history()}, 0, &free)
		}
	}
	if len(rows.localStarts) > 0 {
		w.rereadChangesOfEnteredRuns(hintsBefore)
	}
	free.Release()
	if len(rows.localStarts) < len(starts) {
		w.wakeLoops()
	}
	return e.FinishCommittedStarts(ctx, starts, &spans), nil
}

// PrepareStarts returns the rows to insert for the requests. The new runs become claimable now, after their delay, or when an admission has
// admitted them. The caller calls MarkStartsNeedingQueuePlace with the requests before PrepareStarts. Afterwards the caller passes the returned
// spans to FinishCommittedStarts, or ends the spans itself.
func (e *Engine) PrepareStarts(ctx context.Context, requests []StartRequest) ([]*store.StartWrite, StartSpans) {
	var spans StartSpans
	now := e.clock.Now()
	starts := make([]*store.StartWrite, len(requests))
	rows := make([]store.StartWrite, len(requests))
	for i, q := range requests {
		// The UUID uses the database's clock. Each UUID is a microsecond later than the one before, because
		// lists are in the order of UUIDs.
		id, name := store.NewRootIdentityAt(q.Name, e.nextRootTime(now.Add(time.Duration(i)*time.Microsecond)))
		span, trace := e.telemetry.StartSpan(ctx, q.Workflow, q.Queue)
		spans.addSpan(i, len(requests), span)
		rows[i].Run = store.Run{
			UUID: id, Name: name, Workflow: q.Workflow, Version: e.programVersion(), Queue: q.Queue, Priority: q.priority(), Status: store.Pending,
			Input: q.Input, Trace: trace, Detached: q.Detached, CreatedAt: now, WakeAt: now.Add(max(0, q.Delay)),
		}
		if q.Timeout > 0 {
			rows[i].Run.Deadline, rows[i].Timeout = rows[i].Run.WakeAt.Add(q.Timeout), q.Timeout
		}
		rows[i].Tags = q.Tags
		q.setQueuePlace(&rows[i])
		starts[i] = &rows[i]
	}
	return starts, spans
}

// nextRootTime returns the time for the UUID of a root run. Runs that are due at the same time are admitted in the order of their UUIDs. The
// clock of a test stands still between two starts, so each UUID gets a later time there, and the runs keep the order of their starts.
func (e *Engine) nextRootTime(now time.Time) time.Time {
	if !e.clock.IsManual() {
		return now
	}
	return e.rootTimeGenerator.nextTime(now, time.Time{})
}

// EnsureDatabaseClockRead reads the database's clock if this engine has not read the clock yet. Call EnsureDatabaseClockRead before
// PrepareStarts.
func (e *Engine) EnsureDatabaseClockRead(ctx context.Context) error {
	return e.clock.EnsureReading(ctx, e.store)
}

// FinishCommittedStarts returns the results of the committed starts, and ends the trace spans of these starts.
func (e *Engine) FinishCommittedStarts(ctx context.Context, starts []*store.StartWrite, spans *StartSpans) []StartResult {
	startResults := make([]StartResult, len(starts))
	for i, s := range starts {
		if s.Outcome == store.Written {
			e.telemetry.CountStart(ctx, s.Run.Workflow, s.Run.Queue)
			startResults[i] = StartResult{Run: s.Run, Created: true}
		} else {
			startResults[i] = StartResult{Run: *s.ExistingRun, Err: e.startConflictError(ctx, &s.Run, s.ExistingRun)}
		}
		spans.endSpan(i, s, startResults[i].Err)
	}
	return startResults
}

// reserveSlotsForStarts reserves slots for the requests that can begin here at once. hintsBefore is for rereadChangesOfEnteredRuns.
func (e *Engine) reserveSlotsForStarts(requests []StartRequest) (w *worker, free slots.Reservation, hintsBefore uint64) {
	want := 0
	for i := range requests {
		if q := &requests[i]; !q.hasQueueRow && q.StartBy <= 0 && e.claimFilter.Includes(q.Queue, q.Workflow) {
			want++
		}
	}
	if w = e.worker(); w == nil || want == 0 {
		return w, slots.Reservation{}, 0
	}
	return w, w.slots.Reserve(want, 0, 0), w.ownedRunChangeHints.Load()
}
