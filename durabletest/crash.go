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
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// crashedRunID is the ID of the run that CrashEverywhere starts.
const crashedRunID = "crash-everywhere"

// maxDifferences is how many differences are told in full.
const maxDifferences = 5

// CrashEverywhere executes one run of the workflow, and then again, on a fresh database
// each time, for each of its durable writes (a checkpoint, a start, a signal, an order, a
// transaction, a park, its end), with a process that dies before the write, after it, and
// after it without having had the answer. Each time a second engine carries on, on the
// same database. It fails the test unless
//
//   - the run ends as the first one did, with the same output or error,
//   - its history, and that of its children, has the same names, kinds, outputs and errors,
//   - its children have the same inputs,
//   - the functions of the same steps were executed, and none of a step whose checkpoint was
//     committed was executed again.
//
// So a workflow that is not deterministic fails it, with the first step that differs. A step
// whose function rightly answers something else each time is named with VaryingSteps. Where
// an AtMostOnce step ended as ErrOutcomeUnknown, which is what it promises, only the last
// condition holds.
//
// A choice between branches that race ([durable.Any], [durable.Quorum], [durable.AllOrCancel]) may rightly have another winner in another
// execution, and its losers then come more or less far. Name the choice with Varies: every execution goes on with the winner of
// the first one, and the steps of the losers are not compared. A report of differences names the choices.
//
// Steps are executed for real, many times: Stub those that should not. The workflow gets
// its signals by SignalAfter, and its children's workflows by With. Time passes as in New. The
// databases are temporary SQLite files, or what OnNewStores opens.
func CrashEverywhere[I, O any](t testing.TB, w *durable.Workflow[I, O], in I, opts ...Option) {
	t.Helper()
	h := &crashTest{t: t, settings: newSettings(t, "CrashEverywhere", opts), workflows: []durable.Definition{w}}
	h.start = func(ctx context.Context, e *durable.Engine) (func(context.Context) error, error) {
		run, err := w.Start(ctx, e, in, durable.ID(crashedRunID))
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

// runTimeout is the real time that one run with its crash may take.
const runTimeout = time.Minute

// crashTest crashes one workflow.
type crashTest struct {
	t         testing.TB
	settings  *settings
	workflows []durable.Definition
	start     func(ctx context.Context, e *durable.Engine) (wait func(context.Context) error, err error)
	baseline  *trace // of the run without a crash
	template  databaseTemplate

	crashPoints, runs, reruns, unknownOutcomes int
	differences                                []string
	calledSteps                                []string // by the run without a crash
}

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

// crashAtWrite crashes the run at one of its writes, in each way. It reports false if it has
// fewer.
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
		default: // concurrent writes may come in one commit or in two, so there may have been no crash
			h.checkTrace(got, where)
		}
	}
	return true
}

// checkTrace compares a run with the first one.
func (h *crashTest) checkTrace(got *trace, where string) {
	h.runs++
	for _, c := range got.reruns {
		h.reruns++
		if h.reruns <= maxDifferences {
			h.t.Errorf("durabletest: %s: step %q, whose checkpoint was committed, was executed again", where, c)
		}
	}
	if got.unknownOutcome {
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

func (h *crashTest) report() {
	h.t.Helper()
	line := fmt.Sprintf("crash everywhere: boundaries=%d runs=%d reruns=%d differences=%d", h.crashPoints, h.runs, h.reruns, len(h.differences))
	if h.unknownOutcomes > 0 {
		line += fmt.Sprintf(" unknown=%d", h.unknownOutcomes)
	}
	h.t.Log(line)
	fmt.Println(line)
	failUnused(h.t, h.settings.replacements, func() []string { return h.calledSteps })
	if len(h.differences) == 0 {
		return
	}
	h.t.Errorf("durabletest: the workflow is not deterministic, or a crash changes what it does:\n\t%s\n"+
		"What a workflow does outside of durable calls must follow from its input and their results: put clocks, randomness, map order and what is global into a step; "+
		"if a step's function rightly answers something else each time, name it in durabletest.VaryingSteps",
		strings.Join(h.differences, "\n\t"))
	for _, hint := range h.baseline.choiceHints() {
		h.t.Log("durabletest: " + hint)
	}
}

// runWithCrash executes the workflow on a fresh database, with a crash at the write, and answers
// what came of it.
func (h *crashTest) runWithCrash(at int, when crashMoment) (*trace, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	s, remove, err := h.openDatabase()
	if err != nil {
		return &trace{}, err
	}
	defer remove()
	p := newClockDriver(h.t, newClock(h.settings.startTime))
	defer p.close()
	log := &recorder{replacements: h.settings.replacements}
	if h.baseline != nil {
		log.fixedOutputs = h.baseline.fixedOutputs
	}
	f := newProcess(at, when)
	err = h.runProcess(ctx, s, p, log, f)
	if when == noCrash {
		h.calledSteps = log.calledNames()
	}
	if f.dead() {
		next := newProcess(0, noCrash)
		if err := h.expireLeases(ctx, s, next, p.clock.Now()); err != nil {
			return &trace{crashedWrite: f.crashedWrite}, err
		}
		err = h.runProcess(ctx, s, p, log, next)
	}
	if err != nil {
		return &trace{crashedWrite: f.crashedWrite}, err
	}
	got, err := h.collectTrace(ctx, s, log, f)
	if err != nil {
		return &trace{crashedWrite: f.crashedWrite}, err
	}
	return got, nil
}

// openDatabase opens a fresh database. The function returned removes it.
func (h *crashTest) openDatabase() (s store.Store, remove func() error, err error) {
	if h.settings.openStore == nil {
		return h.template.open()
	}
	own := &cleanupScope{TB: h.t}
	defer func() {
		if s == nil { // it has failed the test
			own.runCleanups()
		}
	}()
	if s = h.settings.openStore(own); s == nil {
		return nil, nil, errors.New("durabletest: the function given to OnNewStores returned no store: return what it opened")
	}
	return s, func() error { own.runCleanups(); return nil }, nil
}

// cleanupScope is a part of a test, with an end of its own.
type cleanupScope struct {
	testing.TB
	cleanups []func()
}

// Cleanup registers what is to be called at the span's end.
func (s *cleanupScope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// runCleanups calls what Cleanup registered, the last one first.
func (s *cleanupScope) runCleanups() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
	s.cleanups = nil
}

// runProcess is the life of one process: it starts the run, or finds it, and waits for its
// end, or for its own.
func (h *crashTest) runProcess(ctx context.Context, s store.Store, p *clockDriver, log *recorder, f *process) error {
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
			return fmt.Errorf("the run did not end within %v: does it wait for a signal (see SignalAfter), or for a workflow that is not registered (see Workflows)?", runTimeout)
		}
		return err
	}
	return e.cancelled(ctx, s)
}

// cancelled waits for the ends of runs beneath the one that has ended which are to be cancelled: they may
// still have to be executed, so that their compensations are.
func (e *Engine) cancelled(ctx context.Context, s store.Store) error {
	runs, err := runTree(ctx, s)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Control&store.CancelRequested == 0 || r.Status.Terminal() {
			continue
		}
		if _, err := e.probe.engine.Load().Await(ctx, r.ID); err != nil {
			return fmt.Errorf("wait for the end of the cancelled run %q: %w", engine.ShownRun(r), err)
		}
	}
	return nil
}

// scheduleSignals has the signals sent when their time comes. The function answered keeps those
// back that were not sent yet.
func (h *crashTest) scheduleSignals(ctx context.Context, e *Engine, p *clockDriver) (stop func()) {
	info, err := e.Get(ctx, crashedRunID)
	if err != nil {
		return func() {}
	}
	var mu sync.Mutex
	var stopped bool // with mu: no delivery begins while stop waits for them
	var waiting []*timer
	for i, signal := range h.settings.signals {
		key := durable.SignalKey(fmt.Sprint("durabletest-", i))
		waiting = append(waiting, p.clock.schedule(info.CreatedAt.Add(signal.after), func() {
			mu.Lock()
			defer mu.Unlock()
			if stopped {
				return
			}
			p.startDelivery(func() {
				err := e.Signal(ctx, crashedRunID, signal.name, signal.payload, key)
				if err != nil && !errors.Is(err, durable.ErrState) && ctx.Err() == nil && !e.probe.process.dead() {
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
		p.waitForDeliveries()
	}
}

// expireLeases has the runs of the process that died claimable at once, as its death would.
func (h *crashTest) expireLeases(ctx context.Context, s store.Store, next *process, now time.Time) error {
	workers, err := s.Workers(ctx)
	if err != nil {
		return err
	}
	runs, err := runTree(ctx, s)
	if err != nil {
		return err
	}
	q := store.ClaimQuery{Now: now, LeaseUntil: now.Add(2 * leaseDuration)}
	for _, r := range runs {
		if p := (store.Pair{Queue: r.Queue, Workflow: r.Workflow}); !slices.Contains(q.Pairs, p) {
			q.Pairs = append(q.Pairs, p)
		}
	}
	for _, w := range workers {
		if _, err := s.Expire(ctx, []store.ID{w.ID}, q); err != nil {
			return err
		}
	}
	return next.loadFinishedSteps(ctx, s, runs)
}
