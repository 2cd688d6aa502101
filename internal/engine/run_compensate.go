package engine

import (
	"context"
	"slices"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Compensations undo what a run did, if it fails or is cancelled (H. Garcia-Molina and K. Salem, Sagas,
// 1987). Registering a compensation writes no row: after a crash, the next execution registers it again.
// Each compensation is executed as a step of its own, the last registered first.

// compensation is a registered compensation.
type compensation struct {
	spec *CallSpec
	name string // including the prefix of its scope
	// compensatedSteps has the names of the steps that the compensation undoes, as users see them; nil if the code does not name them
	compensatedSteps []string
}

// compensations are the compensations of a run. run.mu guards notExecuted and recordedEnd. Only the goroutine that executes the run
// uses the other fields.
type compensations struct {
	notExecuted   []compensation          // those that are not executed yet, in the order of their registration
	cancelContext context.CancelCauseFunc // ends the context of the compensations, whose parent is run.ownedCtx; nil: none has begun
	failureTexts  []string                // what to add to the run's error about compensations that failed
	recordedEnd   *record.Ending          // how the run ends, as an earlier execution recorded it; nil: none did
}

// nextToExecute returns the compensation to execute next, or false if there is none.
func (c *compensations) nextToExecute() (compensation, bool) {
	if len(c.notExecuted) == 0 {
		return compensation{}, false
	}
	return c.notExecuted[len(c.notExecuted)-1], true
}

// removeLast removes the compensation that nextToExecute has returned.
func (c *compensations) removeLast() { c.notExecuted = c.notExecuted[:len(c.notExecuted)-1] }

// noteFailed notes a compensation that has finally failed.
func (c *compensations) noteFailed(name string, f *record.Failure) {
	c.failureTexts = append(c.failureTexts, "compensation "+naming.Display(name)+" failed: "+f.Message)
}

// addFailuresTo returns the run's failure with the failed compensations added.
func (c *compensations) addFailuresTo(failure *record.Failure) *record.Failure {
	if len(c.failureTexts) == 0 {
		return failure
	}
	f := *failure
	f.Codes = append(slices.Clone(f.Codes), record.CodeCompensation)
	for _, text := range c.failureTexts {
		f.Message += "; " + text
	}
	return &f
}

// RegisterCompensation registers the compensation that spec describes. RegisterCompensation also works when the run must already end,
// because the effect to undo has already happened.
func (s *Scope) RegisterCompensation(spec *CallSpec) error {
	if err := naming.Check("compensation", spec.Name); err != nil {
		return err
	}
	r := s.r
	name := s.namePrefix + spec.Name
	if s.isInsideCall() {
		return nestedCallError(r, name)
	}
	var undoes []string
	for _, step := range spec.CompensatedSteps {
		undoes = append(undoes, s.DisplayName(step))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.reserveNameLocked(name, spec.CallSite); err != nil {
		return err
	}
	if recorded := r.history[name]; recorded != nil && recorded.Kind != store.KindCompensation {
		return kindMismatchError(&r.row, name, recorded.Kind, store.KindCompensation)
	}
	spec.Kind = store.KindCompensation
	r.compensations.notExecuted = append(r.compensations.notExecuted, compensation{spec, name, undoes})
	return nil
}

// executeCompensations executes the registered compensations. It reports false if the run was suspended meanwhile.
// If a compensation fails finally, executeCompensations notes the failure and still executes the others.
func (r *run) executeCompensations() bool {
	ctx, end := context.WithCancelCause(r.ownedCtx)
	defer end(errFunctionReturned)
	r.mu.Lock()
	r.compensations.cancelContext = end
	if r.suspension != nil {
		end(r.suspension.cause)
	}
	r.mu.Unlock()
	r.idleTracker.noteCompensationsBegin()
	s := &Scope{r: r, ctx: ctx, stepsCtx: r.ownedCtx, compensating: true}
	for {
		r.mu.Lock()
		u, more := r.compensations.nextToExecute()
		if !more {
			r.mu.Unlock()
			return true
		}
		recorded := r.history[u.name]
		r.pastReplay.Store(true)
		r.mu.Unlock()

		res := CallResult{}
		if recorded != nil && recorded.Status.IsTerminal() {
			res = recordedResult(recorded)
		} else {
			var err error
			if res, err = s.executeCall(u.spec, u.name, recorded); err != nil {
				if s.checkOpen() != nil {
					return false
				}
				res.Failure = &record.Failure{Message: err.Error()}
				r.logger().Error("a compensation failed", telemetry.KeyStep, naming.Display(u.name), telemetry.KeyError, err)
			}
		}
		r.mu.Lock()
		if res.Failure != nil {
			r.compensations.noteFailed(u.name, res.Failure)
		}
		r.compensations.removeLast()
		r.mu.Unlock()
	}
}
