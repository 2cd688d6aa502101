package repair

import (
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// PlanOverride decides how the value of a call that succeeded is replaced. It drops all calls that began after the call, because they
// may depend on the value; in a graph it drops only calls that depend on it. With FromEnd, it keeps these calls.
func PlanOverride(s *RunToRepair, q *Request, step string, value []byte) (*Result, error) {
	p, row, err := newStepPlan(s, q, step)
	switch {
	case err != nil:
		return nil, err
	case !takesValue(row):
		return nil, p.noValueError(row)
	case row.Status == store.StepFailed:
		return nil, stateError("its step %q has failed: use Skip", row)
	case row.Status != store.StepCompleted:
		return nil, stateError("its step %q has no value yet: use Skip", row)
	}
	if err := p.setValue(row, value); err != nil {
		return nil, err
	}
	if !q.FromEnd {
		p.dropAfter(row)
	}
	return p.finishPlan(), nil
}

// PlanSkip decides how a call that has not succeeded gets a value. It keeps the calls that began after that call, as PlanRetry does.
// In a graph, the nodes that depend on the failure of the call are executed again.
func PlanSkip(s *RunToRepair, q *Request, step string, value []byte) (*Result, error) {
	p, row, err := newStepPlan(s, q, step)
	if err != nil {
		return nil, err
	}
	if row.Kind == store.KindSleep {
		if err := p.endSleep(row, value); err != nil {
			return nil, err
		}
		return p.finishPlan(), nil
	}
	switch {
	case !takesValue(row):
		return nil, p.noValueError(row)
	case row.Status == store.StepCompleted:
		return nil, stateError("its step %q has succeeded: use Override", row)
	}
	if err := p.setValue(row, value); err != nil {
		return nil, err
	}
	if row.Status == store.StepFailed {
		p.dropAffectedNodes(row)
	}
	return p.finishPlan(), nil
}

// PlanRerun decides how one call is executed once more. All other calls are kept.
func PlanRerun(s *RunToRepair, q *Request, step string) (*Result, error) {
	p, row, err := newStepPlan(s, q, step)
	if err != nil {
		return nil, err
	}
	if row.Kind == store.KindChoice || row.Kind == store.KindMap {
		return nil, fmt.Errorf("%w: %q is a %s: execute its steps again, one by one, or fork the run from it", ErrNoStep, naming.Display(step), row.Kind)
	}
	if recordsTheCode(row) {
		return nil, fmt.Errorf("%w: %q records how the code continues the run, and is no step", ErrNoStep, naming.Display(step))
	}
	if row.Status == store.StepFailed {
		p.dropChoicesDecidedBy(row)
	}
	if choice := p.choiceThatEnded(row.Name); choice != nil {
		return nil, &StateError{fmt.Sprintf("the choice %q has ended the branch of its step %q, which executes nothing more: fork the run from %q, which makes the choice again",
			naming.Display(choice.Name), naming.Display(step), naming.Display(step))}
	}
	if p.mapOfItem(row) != nil {
		p.rerunItem = naming.Display(row.Name)
	}
	p.dropCheckpoint(row)
	return p.finishPlan(), nil
}

// endSleep ends a sleep.
func (p *plan) endSleep(row *store.Step, value []byte) error {
	now := p.request.Now
	if !row.NextAt.After(now) {
		return stateError("its sleep %q is over", row)
	}
	if jsontext.Value(value).Kind() != jsontext.KindNull {
		return fmt.Errorf("%w: %q is a sleep, which has no value: pass nil", ErrValueType, naming.Display(row.Name))
	}
	over := *row
	over.NextAt = now
	if paused := p.Run.PausedAt; !p.Run.Status.IsTerminal() && !paused.IsZero() && paused.Before(now) {
		over.NextAt = paused // a resume with ShiftTimers moves only timers that end after the beginning of the pause
	}
	p.callsWithValue[row.Name] = over
	return nil
}

// recordsTheCode reports whether the checkpoint records how the code continues the run, and not a call.
func recordsTheCode(row *store.Step) bool {
	return row.Kind == store.KindGraph && graph.ShapeRevision(row.Name) > 0 || row.Kind == store.KindPatch
}

// newStepPlan returns a plan for a repair of one call, and that call. The plan drops the calls that executed compensations have
// undone.
func newStepPlan(s *RunToRepair, q *Request, step string) (*plan, *store.Step, error) {
	p := newPlan(s, q)
	row, err := p.findCall(step)
	if err == nil {
		err = p.checkNotCompensating()
	}
	if err == nil {
		err = p.dropUndone()
	}
	return p, row, err
}

// checkNotCompensating returns a StateError for a live run that executes its compensations.
func (p *plan) checkNotCompensating() error {
	if !p.Run.Status.IsTerminal() && p.historyByName[store.EndRecordName] != nil {
		return &StateError{"executes its compensations: wait until it has ended"}
	}
	return nil
}

// setValue makes a call succeed with the value. It returns ErrValueType for a value of another JSON type than the recorded one.
func (p *plan) setValue(row *store.Step, value []byte) error {
	if !takesValue(row) {
		return p.noValueError(row)
	}
	if err := p.checkValueType(row, value); err != nil {
		return err
	}
	if row.Status == store.StepFailed {
		p.dropChoicesDecidedBy(row)
	}
	set := *row
	set.Status, set.Output, set.Error, set.EndedAt, set.NextAt = store.StepCompleted, value, nil, p.request.Now, time.Time{}
	if row.Kind != store.KindChild { // the Failures of a child's call hold the child's workflow
		set.Failures = nil
	}
	p.callsWithValue[row.Name] = set
	return nil
}

// takesValue reports whether a repair can set the value of the call.
func takesValue(row *store.Step) bool {
	switch row.Kind {
	case store.KindStep, store.KindTx, store.KindReceive, store.KindChild:
		return true
	}
	return false
}

// noValueError returns ErrNoStep for a call whose value cannot be set, and says what to do instead.
func (p *plan) noValueError(row *store.Step) error {
	name := naming.Display(row.Name)
	node, call, _ := strings.Cut(row.Name, naming.Separator)
	switch {
	case recordsTheCode(row):
		return fmt.Errorf("%w: %q records how the code continues the run, and has no value: name a step", ErrNoStep, name)
	case row.Kind == store.KindGraph && call == graph.CallFailure:
		return fmt.Errorf("%w: %q records that the node %q failed outside its calls, so there is no call whose value could be set: correct the code of the node, and use Retry or Rerun, which execute the node again", ErrNoStep, name, node)
	case row.Kind == store.KindGraph:
		return fmt.Errorf("%w: %q records that the node %q was skipped or has no items, so there is no call whose value could be set: fork the run from %q, or set the value of a step that the node needs", ErrNoStep, name, node, node)
	case row.Kind == store.KindSleep:
		return fmt.Errorf("%w: %q is a sleep, which has no value: use Skip with nil, which ends it", ErrNoStep, name)
	case row.Kind == store.KindMap:
		return fmt.Errorf("%w: %q is a map, whose value consists of the values of its items: set the value of one of its items%s", ErrNoStep, name, p.firstItem(row))
	}
	return fmt.Errorf("%w: %q is a %s, whose value cannot be set: fork the run from it, or set the value of a step", ErrNoStep, name, row.Kind)
}

// firstItem returns the name of the first item of the map as an example, or an empty text.
func (p *plan) firstItem(row *store.Step) string {
	for i := range p.History {
		if strings.HasPrefix(p.History[i].Name, row.Name+naming.Separator) {
			return fmt.Sprintf(", such as %q", naming.Display(p.History[i].Name))
		}
	}
	return ""
}

// checkValueType compares the JSON types of the new and the recorded value of a call. It ignores a recorded value that the code cannot
// decode, for example from an earlier repair or a signal, because such a value does not show the type that the code needs.
func (p *plan) checkValueType(row *store.Step, value []byte) error {
	name := naming.Display(row.Name)
	if row.Status != store.StepCompleted || slices.Contains(p.DivergedCalls, name) { // the output of a call that still waits is no value of the call
		return nil
	}
	if had, now := jsonType(row.Output), jsonType(value); had != now && had != "" && now != "" {
		return fmt.Errorf("%w: step %q has recorded %s, and the new value is %s", ErrValueType, name, had, now)
	}
	return nil
}

func stateError(format string, row *store.Step) error {
	return &StateError{fmt.Sprintf(format, naming.Display(row.Name))}
}

// jsonType returns the type of a JSON value in words, or an empty text for null, which decodes into many types, and for invalid JSON.
func jsonType(v jsontext.Value) string {
	switch v.Kind() {
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindString:
		return "a text"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	}
	return ""
}
