package durabletest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// crashedID is the ID of the run that CrashEverywhere starts.
const crashedID = "crash-everywhere"

// maxDifferences is the number of differences after which CrashEverywhere stops.
const maxDifferences = 5

// CrashEverywhere executes a run of the workflow once without a crash. Afterwards CrashEverywhere repeats the run, on a fresh
// database each time, and kills the process at one durable write. A durable write is a checkpoint, a start, a signal, a pause,
// a resume, a cancel, a transaction, the parking of the run, or its end. For each write, CrashEverywhere kills the process in
// three ways: before the write, after the write, and after the write was committed but before the process received the reply.
// After each crash a second engine continues on the same database. CrashEverywhere fails the test unless
//
//   - the run ends with the same status and the same output or error as without a crash,
//   - the history of the run and of its children has the same names, kinds, outputs and errors,
//   - the children have the same inputs,
//   - the functions of the same steps were executed, and no step was executed again after its checkpoint was committed.
//
// If the run has ended and a detached child has not, CrashEverywhere compares the child when the child only waits.
//
// A workflow that is not deterministic therefore fails the test, and the message names the first step that differs. Name steps
// whose functions may return another result each time with [VaryingSteps]. If the crash makes an AtMostOnce step end with
// ErrOutcomeUnknown, CrashEverywhere checks only that no step was executed again after its checkpoint was committed.
//
// A choice between branches that race ([durable.Any], [durable.Quorum], [durable.AllOrCancel]) may have another winner in
// another execution, and the losing branches may then make more or fewer calls. Name a choice between branches that race with
// [VaryingSteps]: every execution continues with the winner of the first execution, and the steps of the losers are not
// compared. If the test finds a difference, the log of the test names the choices between branches that race.
//
// CrashEverywhere executes the functions of steps many times: use [Stub] for steps whose functions must not be executed. Send
// signals to the workflow with [SignalAfter], and register the workflows of its children with [Workflows]. CrashEverywhere uses
// the clock of [New]. The databases are temporary SQLite files, or the databases that [OnNewStores] opens.
func CrashEverywhere[I, O any](t testing.TB, w *durable.Workflow[I, O], in I, opts ...Option) {
	t.Helper()
	h := &crashTest{t: t, settings: newSettings(t, "CrashEverywhere", opts), workflows: []durable.Definition{w}, foundVaryingSteps: make(map[string]bool)}
	h.start = func(ctx context.Context, e *durable.Engine) (func(context.Context) error, error) {
		run, err := w.Start(ctx, e, in, durable.ID(crashedID))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := run.Result(ctx)
			return err
		}, nil
	}
	h.crashAtEachWrite()
}

// runTimeout is the real time that a run and its crash may take.
const runTimeout = time.Minute

// crashTest is one call of CrashEverywhere.
type crashTest struct {
	t         testing.TB
	settings  *testSettings
	workflows []durable.Definition
	start     func(ctx context.Context, e *durable.Engine) (wait func(context.Context) error, err error)
	baseline  *treeTrace // of the run without a crash; nil while that run executes
	template  databaseTemplate

	crashPoints, runs, reruns, unknownOutcomes int
	differences                                []string
	calledSteps                                []string        // names of the calls of the run without a crash
	foundVaryingSteps                          map[string]bool // the names given to VaryingSteps that a call of some run has
}

// crashAtEachWrite executes the run without a crash, and then with a crash at each of its writes.
func (h *crashTest) crashAtEachWrite() {
	h.t.Helper()
	first, err := h.runWithCrash(0, noCrash)
	if err != nil {
		h.t.Fatalf("durabletest: the run without a crash: %v", err)
	}
	h.checkTrace(first, "the run without a crash")
	h.baseline = first
	for at := 1; len(h.differences) < maxDifferences && h.crashAtWrite(at); at++ {
		h.crashPoints++
	}
	h.report()
}

// crashAtWrite executes the run three times, with a crash before, after and without a reply to the write with the given
// number, counted from 1. It returns false if the run has fewer writes.
func (h *crashTest) crashAtWrite(at int) bool {
	for _, when := range []crashMoment{crashBeforeWrite, crashAfterCommit, crashWithoutReply} {
		got, err := h.runWithCrash(at, when)
		where := fmt.Sprintf("crashed %v write %d (%s)", when, at, got.crashedWrite)
		switch {
		case err != nil:
			h.runs++
			h.differences = append(h.differences, fmt.Sprintf("%s: %v", where, err))
		case got.crashedWrite == "" && when == crashBeforeWrite:
			return false
		default: // concurrent writes share a commit or not, so this run may have had fewer writes and no crash
			h.checkTrace(got, where)
		}
	}
	return true
}

// checkTrace compares a run with the one without a crash, and counts the steps that were executed again.
func (h *crashTest) checkTrace(got *treeTrace, where string) {
	h.runs++
	for _, c := range got.rerunSteps {
		h.reruns++
		if h.reruns <= maxDifferences {
			h.t.Errorf("durabletest: %s: step %q, whose checkpoint was committed, was executed again", where, c)
		}
	}
	if got.hasUnknownOutcome {
		h.unknownOutcomes++
		return
	}
	first := h.baseline
	if first == nil {
		first = got
	}
	if diff := compareTraces(first, got); diff != "" {
		h.differences = append(h.differences, where+": "+diff)
	}
}

// report logs the counts of the test and fails the test if there are differences.
func (h *crashTest) report() {
	h.t.Helper()
	line := fmt.Sprintf("crash everywhere: boundaries=%d runs=%d reruns=%d differences=%d", h.crashPoints, h.runs, h.reruns, len(h.differences))
	if h.unknownOutcomes > 0 {
		line += fmt.Sprintf(" unknown=%d", h.unknownOutcomes)
	}
	h.t.Log(line)
	fmt.Println(line)
	failOnUnusedReplacements(h.t, h.settings.replacements, func() []string { return h.calledSteps })
	h.failOnUnusedVaryingSteps()
	if len(h.differences) == 0 {
		return
	}
	h.t.Errorf("durabletest: the workflow is not deterministic, or a crash changes its result:\n\t%s\n"+
		"Outside of durable calls a workflow must depend only on its input and on their results: put clocks, randomness, map order and global state into a step; "+
		"if a step's function may return another result each time, name the step in durabletest.VaryingSteps",
		strings.Join(h.differences, "\n\t"))
	for _, hint := range h.baseline.suggestVaryingSteps() {
		h.t.Log("durabletest: " + hint)
	}
}

// isVaryingStep reports whether VaryingSteps names the step.
func (h *crashTest) isVaryingStep(step string) (varies bool) {
	for _, name := range h.settings.varyingSteps {
		if matchesName(name, step) {
			h.foundVaryingSteps[name], varies = true, true
		}
	}
	return varies
}

// failOnUnusedVaryingSteps fails the test for each name given to VaryingSteps that no call of any run had: it may be misspelled.
func (h *crashTest) failOnUnusedVaryingSteps() {
	h.t.Helper()
	for _, name := range h.settings.varyingSteps {
		if !h.foundVaryingSteps[name] {
			h.t.Errorf("durabletest: VaryingSteps names %q, which no run has called; the calls were %s: correct the name", name, quotedList(h.calledSteps))
		}
	}
}

// runWithCrash executes the workflow on a fresh database, crashes the process at the given write, and returns the trace
// of the run.
func (h *crashTest) runWithCrash(at int, when crashMoment) (*treeTrace, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	s, remove, err := h.openDatabase()
	if err != nil {
		return &treeTrace{}, err
	}
	defer remove()
	p := newClockDriver(h.t, newClock(h.settings.startTime))
	defer p.close()
	log := &testRecorder{replacements: h.settings.replacements}
	if h.baseline != nil {
		log.fixedOutputs = h.baseline.fixedOutputs
	}
	f := newSimulatedProcess(at, when)
	err = h.runProcess(ctx, s, p, log, f)
	if when == noCrash {
		h.calledSteps = log.calledNames()
	}
	if f.isDead() {
		next := newSimulatedProcess(0, noCrash)
		if err := h.expireLeases(ctx, s, next, p.clock.Now()); err != nil {
			return &treeTrace{crashedWrite: f.crashedWrite}, err
		}
		err = h.runProcess(ctx, s, p, log, next)
	}
	if err != nil {
		return &treeTrace{crashedWrite: f.crashedWrite}, err
	}
	got, err := h.readTreeTrace(ctx, s, log, f)
	if err != nil {
		return &treeTrace{crashedWrite: f.crashedWrite}, err
	}
	return got, nil
}

// openDatabase opens a fresh database. The returned function closes and removes it.
func (h *crashTest) openDatabase() (s store.Store, remove func() error, err error) {
	if h.settings.openStore == nil {
		return h.template.openCopy()
	}
	own := &cleanupScope{TB: h.t}
	defer func() {
		if s == nil { // openStore ended or failed the test
			own.runCleanups()
		}
	}()
	if s = h.settings.openStore(own); s == nil {
		return nil, nil, errors.New("durabletest: the function given to OnNewStores returned a nil store: return the store that it opened")
	}
	return s, func() error { own.runCleanups(); return nil }, nil
}

// cleanupScope is a testing.TB whose cleanups are called before the end of the test.
type cleanupScope struct {
	testing.TB
	cleanups []func()
}

// Cleanup registers a function that runCleanups calls.
func (s *cleanupScope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// runCleanups calls the registered functions, the last one first.
func (s *cleanupScope) runCleanups() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
	s.cleanups = nil
}

// runProcess is the life of one process. It starts the run, which does nothing if the run exists already, and waits
// until the run ends or the process dies.
func (h *crashTest) runProcess(ctx context.Context, s store.Store, p *clockDriver, log *testRecorder, f *simulatedProcess) error {
	e := startEngine(h.t, s, p, log, f, h.settings, h.workflows)
	defer e.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-f.died:
			cancel()
		case <-ctx.Done():
		}
	}()
	wait, err := h.start(ctx, e.Engine)
	if err != nil {
		return fmt.Errorf("start the run: %w", err)
	}
	sent := h.scheduleSignals(ctx, e, p)
	defer sent()
	var ended *durable.RunError
	if err := wait(ctx); err != nil && !errors.As(err, &ended) {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the run did not end within %v: if it waits for a signal, send it with SignalAfter; if it waits for a child, register the child's workflow with Workflows", runTimeout)
		}
		return err
	}
	if err := e.awaitCancelledDescendants(ctx, s); err != nil {
		return err
	}
	return e.settleLiveDescendants(ctx, s)
}

// settleLiveDescendants waits, at the present time of the clock, until the descendants that have not ended, such as detached children, only
// wait. So all runs of the test are compared at the same point.
func (e *Engine) settleLiveDescendants(ctx context.Context, s store.Store) error {
	runs, err := readRunTree(ctx, s)
	if err != nil || !slices.ContainsFunc(runs, isExecutedLater) {
		return err
	}
	settled := make(chan error, 1)
	go func() { settled <- e.driver.waitForTime(e.driver.clock.Now(), nil) }()
	select {
	case err := <-settled:
		return err
	case <-ctx.Done(): // the next process ends the wait
		return ctx.Err()
	}
}

// awaitCancelledDescendants waits until the descendants that are being cancelled have ended, since they may still have to execute their
// compensations.
func (e *Engine) awaitCancelledDescendants(ctx context.Context, s store.Store) error {
	runs, err := readRunTree(ctx, s)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Control&store.CancelRequested == 0 || r.Status.IsTerminal() {
			continue
		}
		if _, err := e.hooks.engine.Load().Await(ctx, r.UUID); err != nil {
			return fmt.Errorf("wait for the end of the cancelled run %q: %w", naming.DisplayRun(r), err)
		}
	}
	return nil
}

// scheduleSignals sends the signals of SignalAfter at their times. The returned function cancels those that were not
// sent yet.
func (h *crashTest) scheduleSignals(ctx context.Context, e *Engine, p *clockDriver) (stop func()) {
	info, err := e.Get(ctx, crashedID)
	if err != nil {
		return func() {}
	}
	var mu sync.Mutex
	var stopped bool // guarded by mu, so that no delivery begins after stop has returned
	var waiting []*clockTimer
	for i, signal := range h.settings.signals {
		key := durable.SignalKey(fmt.Sprint("durabletest-", i))
		waiting = append(waiting, p.clock.schedule(info.CreatedAt.Add(signal.after), func() {
			mu.Lock()
			defer mu.Unlock()
			if stopped {
				return
			}
			p.startSignalDelivery(func() {
				err := e.Signal(ctx, crashedID, signal.name, signal.payload, key)
				if err != nil && !errors.Is(err, durable.ErrState) && ctx.Err() == nil && !e.hooks.process.isDead() {
					h.t.Errorf("durabletest: send signal %q: %v", signal.name, err)
				}
			})
		}))
	}
	return func() {
		mu.Lock()
		stopped = true
		mu.Unlock()
		for _, t := range waiting {
			t.Stop()
		}
		p.waitForSignalDeliveries()
	}
}

// expireLeases expires the leases of the process that died, so that its runs can be claimed at once.
func (h *crashTest) expireLeases(ctx context.Context, s store.Store, next *simulatedProcess, now time.Time) error {
	workers, err := s.Workers(ctx)
	if err != nil {
		return err
	}
	runs, err := readRunTree(ctx, s)
	if err != nil {
		return err
	}
	q := store.ClaimQuery{Now: now, LeaseUntil: now.Add(2 * leaseDuration)}
	for _, w := range workers {
		if _, err := s.EndLeases(ctx, []store.UUID{w.ID}, q); err != nil {
			return err
		}
	}
	return next.loadFinishedSteps(ctx, s, runs)
}
