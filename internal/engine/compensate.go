package engine

import (
	"context"
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Compensations undo what a run did, if it fails or is cancelled (H. Garcia-Molina and K. Salem, Sagas,
// 1987). Registering a compensation writes no row: after a crash, the next execution registers it again.
// Each compensation is executed as a step of its own, the last registered first.

// compensation is a registered compensation.
type compensation struct {
	spec *Spec
	name string // including the prefix of its scope
}

// Compensate registers spec as a compensation. It may be called when the run must already end, because the
// effect that it undoes has happened.
func (s *Scope) Compensate(spec *Spec) error {
	if err := CheckName("compensation", spec.Name); err != nil {
		return err
	}
	r := s.r
	name := s.prefix + spec.Name
	if s.nested() {
		return nestedError(r, name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.use(name, spec.Site); err != nil {
		return err
	}
	if recorded := r.history[name]; recorded != nil && recorded.Kind != store.KindCompensation {
		return divergedKind(&r.row, name, recorded.Kind, store.KindCompensation)
	}
	spec.Kind = store.KindCompensation
	r.compensations = append(r.compensations, compensation{spec, name})
	return nil
}

// compensate executes the registered compensations. It reports false if the run was suspended meanwhile.
// If a compensation fails finally, compensate notes that and executes the others all the same.
func (r *run) compensate() bool {
	ctx, end := context.WithCancelCause(r.hard)
	defer end(errEnded)
	r.mu.Lock()
	r.endUndo = end
	if r.suspended != nil {
		end(r.suspended.cause)
	}
	r.mu.Unlock()
	s := &Scope{r: r, ctx: ctx, work: r.hard, undo: true}
	for {
		r.mu.Lock()
		last := len(r.compensations) - 1
		if last < 0 {
			r.mu.Unlock()
			return true
		}
		u := r.compensations[last]
		recorded := r.history[u.name]
		r.live.Store(true)
		r.mu.Unlock()

		res := Result{}
		if recorded != nil && recorded.Status.Terminal() {
			res = resultOf(recorded)
		} else {
			var err error
			if res, err = s.execute(u.spec, u.name, recorded); err != nil {
				if s.left() != nil {
					return false
				}
				res.Failure = &Failure{Message: err.Error()}
				r.logger().Error("a compensation failed", telemetry.KeyStep, DisplayName(u.name), telemetry.KeyError, err)
			}
		}
		r.mu.Lock()
		if res.Failure != nil {
			r.noteFailedCompensation(u.name, res.Failure)
		}
		r.compensations = r.compensations[:last]
		r.mu.Unlock()
	}
}

// withUndone returns the run's failure with the failed compensations added.
func (r *run) withUndone(failure *Failure) *Failure {
	if len(r.failedCompensations) == 0 {
		return failure
	}
	f := *failure
	f.Codes = append(slices.Clone(f.Codes), CodeCompensation)
	for _, text := range r.failedCompensations {
		f.Message += "; " + text
	}
	return &f
}
