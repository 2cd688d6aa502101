package durabletest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// errProcessCrashed is what a process that is dead gets of the database.
var errProcessCrashed = fmt.Errorf("durabletest: this process has crashed: %w", store.ErrUnavailable)

// crashMoment is when, at a write, the process dies.
type crashMoment uint8

const (
	noCrash           crashMoment = iota
	crashBeforeWrite              // nothing of it was written
	crashAfterCommit              // it was committed, and the process got to know
	crashWithoutReply             // it was committed, and the process did not get to know
)

// String is the word before the write.
func (m crashMoment) String() string {
	return [...]string{"not at all", "before", "after", "without an answer to"}[m]
}

// process is a process that dies at one of its durable writes. Its writes come one after
// the other. Nil is a process that lives.
type process struct {
	crashAt   int // the number of the write, from 1
	crashWhen crashMoment

	mu            sync.Mutex
	writeCount    int
	crashedWrite  string // what was written then, in words
	died          chan struct{}
	crashed       bool
	finishedSteps map[stepKey]bool // steps with an outcome in the database
}

// stepKey names one step of one run.
type stepKey struct {
	run  store.ID
	name string
}

func newProcess(at int, when crashMoment) *process {
	return &process{crashAt: at, crashWhen: when, died: make(chan struct{}), finishedSteps: make(map[stepKey]bool)}
}

func (f *process) dead() bool {
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

// write does one durable write, or dies at it. what is it in words.
func (f *process) write(what string, do func() error) error {
	if f == nil {
		return do()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
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
	f.crashed = true
	close(f.died)
	if f.crashWhen == crashAfterCommit {
		return err
	}
	return errProcessCrashed
}

// noteFinishedSteps notes the outcomes in a batch. f.mu is held.
func (f *process) noteFinishedSteps(b *store.Batch) {
	if f == nil {
		return
	}
	for _, w := range b.Steps {
		if w.Outcome == store.Written && w.Step.Status.Terminal() {
			f.finishedSteps[stepKey{w.Step.RunID, w.Step.Name}] = true
		}
	}
}

// attempt does one attempt of a step, whose commit is a durable write if it is a Tx. A dead
// process attempts nothing. again reports whether the step had its outcome already.
func (f *process) attempt(c engine.Call, next func() (engine.Output, *engine.Failure)) (out engine.Output, failure *engine.Failure, again bool) {
	if f == nil {
		out, failure = next()
		return out, failure, false
	}
	if f.dead() {
		return out, &engine.Failure{Message: errProcessCrashed.Error()}, false
	}
	key := stepKey{c.Run, c.Name}
	f.mu.Lock()
	again = f.finishedSteps[key]
	f.mu.Unlock()
	if c.Kind != store.KindTx {
		out, failure = next()
		return out, failure, again
	}
	err := f.write("the transaction of "+engine.Shown(c.Name), func() error {
		if out, failure = next(); failure == nil {
			f.finishedSteps[key] = true
		}
		return nil
	})
	if err != nil {
		return engine.Output{}, &engine.Failure{Message: err.Error()}, again
	}
	return out, failure, again
}

// loadFinishedSteps has the fault of the next process know what is in the database of the last.
func (f *process) loadFinishedSteps(ctx context.Context, s store.Store, runs []*store.Run) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range runs {
		steps, err := s.History(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, step := range steps {
			if step.Status.Terminal() {
				f.finishedSteps[stepKey{r.ID, step.Name}] = true
			}
		}
	}
	return nil
}

// describeBatch is a batch in a few words.
func describeBatch(b *store.Batch) string {
	var parts []string
	for _, w := range b.Starts {
		parts = append(parts, "the start of "+engine.ShownRun(&w.Run))
	}
	for _, w := range b.Steps {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", w.Step.Kind, engine.Shown(w.Step.Name), w.Step.Status))
	}
	for _, w := range b.Receives {
		parts = append(parts, "receive "+engine.Shown(w.Step.Name))
	}
	for _, w := range b.Signals {
		parts = append(parts, "signal "+engine.ShownSignal(w.Name))
	}
	for _, w := range b.Runs {
		parts = append(parts, "the run becoming "+w.Status.String())
	}
	return strings.Join(parts, " and ")
}
