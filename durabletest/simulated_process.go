package durabletest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// errProcessCrashed is what each database call of a process returns after its crash.
var errProcessCrashed = fmt.Errorf("durabletest: this process has crashed: %w", store.ErrUnavailable)

// crashMoment is the moment, relative to a write, at which the process dies.
type crashMoment uint8

const (
	noCrash           crashMoment = iota
	crashBeforeWrite              // nothing was written
	crashAfterCommit              // the write was committed, and the process received the reply
	crashWithoutReply             // the write was committed, and the process did not receive the reply
)

// String returns the words that stand before "write" in messages.
func (m crashMoment) String() string {
	return [...]string{"not at all", "before", "after", "without a reply to"}[m]
}

// simulatedProcess simulates a process that dies at one of its durable writes. It executes one write at a time. A nil process
// never dies.
type simulatedProcess struct {
	crashAt   int // number of the write at which the process dies, counted from 1
	crashWhen crashMoment

	mu            sync.Mutex
	writeCount    int
	crashedWrite  string // describes the write at which the process died
	died          chan struct{}
	hasCrashed    bool
	finishedSteps map[stepKey]bool // steps that have an outcome in the database
}

// stepKey identifies a step of a run.
type stepKey struct {
	run  store.UUID
	name string
}

func newSimulatedProcess(at int, when crashMoment) *simulatedProcess {
	return &simulatedProcess{crashAt: at, crashWhen: when, died: make(chan struct{}), finishedSteps: make(map[stepKey]bool)}
}

func (f *simulatedProcess) isDead() bool {
	if f == nil {
		return false
	}
	select {
	case <-f.died:
		return true
	default:
		return false
	}
}

// executeWrite executes one durable write, unless the process dies before it. The text what describes the write in messages.
func (f *simulatedProcess) executeWrite(what string, do func() error) error {
	if f == nil {
		return do()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hasCrashed {
		return errProcessCrashed
	}
	f.writeCount++
	if f.writeCount != f.crashAt || f.crashWhen == noCrash {
		return do()
	}
	f.crashedWrite = what
	var err error
	if f.crashWhen != crashBeforeWrite {
		err = do()
	}
	f.hasCrashed = true
	close(f.died)
	if f.crashWhen == crashAfterCommit {
		return err
	}
	return errProcessCrashed
}

// noteFinishedSteps records which steps the batch has finished. The caller holds f.mu.
func (f *simulatedProcess) noteFinishedSteps(b *store.Batch) {
	if f == nil {
		return
	}
	for _, w := range b.Steps {
		if w.Outcome == store.Written && w.Step.Status.IsTerminal() {
			f.finishedSteps[stepKey{w.Step.Run, w.Step.Name}] = true
		}
	}
}

// forgetStepsDroppedByRepair records that a repair, or a run that continued as new, dropped steps. The caller holds f.mu.
func (f *simulatedProcess) forgetStepsDroppedByRepair(r *store.RepairRequest) {
	if f == nil || r.Outcome != store.Written {
		return
	}
	for i := range r.Runs {
		for key := range f.finishedSteps {
			if key.run == r.Runs[i].Run && !slices.Contains(r.Runs[i].KeptSteps, key.name) {
				delete(f.finishedSteps, key)
			}
		}
	}
}

// executeAttempt executes one attempt of a step. The commit of a Tx step counts as a durable write. A dead process executes
// nothing. The result named again reports whether the step already had an outcome.
func (f *simulatedProcess) executeAttempt(c engine.HookedCall, next func() (engine.AttemptOutput, *record.Failure)) (out engine.AttemptOutput, failure *record.Failure, again bool) {
	if f == nil {
		out, failure = next()
		return out, failure, false
	}
	if f.isDead() {
		return out, &record.Failure{Message: errProcessCrashed.Error()}, false
	}
	key := stepKey{c.Run, c.Name}
	f.mu.Lock()
	again = f.finishedSteps[key]
	f.mu.Unlock()
	if c.Kind != store.KindTx {
		out, failure = next()
		return out, failure, again
	}
	err := f.executeWrite("the transaction of "+naming.Display(c.Name), func() error {
		if out, failure = next(); failure == nil {
			f.finishedSteps[key] = true
		}
		return nil
	})
	if err != nil {
		return engine.AttemptOutput{}, &record.Failure{Message: err.Error()}, again
	}
	return out, failure, again
}

// loadFinishedSteps reads from the database which steps have an outcome.
func (f *simulatedProcess) loadFinishedSteps(ctx context.Context, s store.Store, runs []*store.Run) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range runs {
		steps, err := s.History(ctx, r.UUID)
		if err != nil {
			return err
		}
		for _, step := range steps {
			if step.Status.IsTerminal() {
				f.finishedSteps[stepKey{r.UUID, step.Name}] = true
			}
		}
	}
	return nil
}

// describeBatch describes the writes of a batch in a few words.
func describeBatch(b *store.Batch) string {
	var parts []string
	for _, w := range b.Starts {
		parts = append(parts, "the start of "+naming.DisplayRun(&w.Run))
	}
	for _, w := range b.Steps {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", w.Step.Kind, naming.Display(w.Step.Name), w.Step.Status))
	}
	for _, w := range b.Receives {
		parts = append(parts, "receive "+naming.Display(w.Step.Name))
	}
	for _, w := range b.Signals {
		parts = append(parts, "signal "+naming.DisplaySignal(w.Name))
	}
	for _, w := range b.OwnershipEnds {
		parts = append(parts, "the run becoming "+w.Status.String())
	}
	return strings.Join(parts, " and ")
}
