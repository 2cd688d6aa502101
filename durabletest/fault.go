package durabletest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// errCrashed is what a process that is dead gets of the database.
var errCrashed = fmt.Errorf("durabletest: this process has crashed: %w", store.ErrUnavailable)

// moment is when, at a write, the process dies.
type moment uint8

const (
	never     moment = iota
	before           // nothing of it was written
	after            // it was committed, and the process got to know
	lostReply        // it was committed, and the process did not get to know
)

// String is the word before the write.
func (m moment) String() string {
	return [...]string{"not at all", "before", "after", "without an answer to"}[m]
}

// fault is a process that dies at one of its durable writes. Its writes come one after
// the other. Nil is a process that lives.
type fault struct {
	at   int // the number of the write, from 1
	when moment

	mu      sync.Mutex
	count   int
	place   string // what was written then, in words
	died    chan struct{}
	gone    bool
	settled map[checkpoint]bool // steps with an outcome in the database
}

// checkpoint names one step of one run.
type checkpoint struct {
	run  store.ID
	name string
}

func newFault(at int, when moment) *fault {
	return &fault{at: at, when: when, died: make(chan struct{}), settled: make(map[checkpoint]bool)}
}

func (f *fault) dead() bool {
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
func (f *fault) write(what string, do func() error) error {
	if f == nil {
		return do()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return errCrashed
	}
	f.count++
	if f.count != f.at || f.when == never {
		return do()
	}
	f.place = what
	var err error
	if f.when != before {
		err = do()
	}
	f.gone = true
	close(f.died)
	if f.when == after {
		return err
	}
	return errCrashed
}

// committed notes the outcomes in a batch. f.mu is held.
func (f *fault) committed(b *store.Batch) {
	if f == nil {
		return
	}
	for _, w := range b.Steps {
		if w.Outcome == store.Written && w.Step.Status.Terminal() {
			f.settled[checkpoint{w.Step.RunID, w.Step.Name}] = true
		}
	}
}

// attempt does one attempt of a step, whose commit is a durable write if it is a Tx. A dead
// process attempts nothing. again reports whether the step had its outcome already.
func (f *fault) attempt(c engine.Call, next func() (engine.Output, *engine.Failure)) (out engine.Output, failure *engine.Failure, again bool) {
	if f == nil {
		out, failure = next()
		return out, failure, false
	}
	if f.dead() {
		return out, &engine.Failure{Message: errCrashed.Error()}, false
	}
	key := checkpoint{c.Run, c.Name}
	f.mu.Lock()
	again = f.settled[key]
	f.mu.Unlock()
	if c.Kind != store.KindTx {
		out, failure = next()
		return out, failure, again
	}
	err := f.write("the transaction of "+engine.Shown(c.Name), func() error {
		if out, failure = next(); failure == nil {
			f.settled[key] = true
		}
		return nil
	})
	if err != nil {
		return engine.Output{}, &engine.Failure{Message: err.Error()}, again
	}
	return out, failure, again
}

// known has the fault of the next process know what is in the database of the last.
func (f *fault) known(ctx context.Context, s store.Store, runs []*store.Run) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range runs {
		steps, err := s.History(ctx, r.ID)
		if err != nil {
			return err
		}
		for _, step := range steps {
			if step.Status.Terminal() {
				f.settled[checkpoint{r.ID, step.Name}] = true
			}
		}
	}
	return nil
}

// describe is a batch in a few words.
func describe(b *store.Batch) string {
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
