package durabletest

import (
	"slices"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/naming"
)

// AssertStepsCompleted fails the test unless each of the named steps, or other durable calls, of the run has completed. The
// rules for names are those of [Stub]. If a step has exactly the given name, the name stands for that step only. If no step has
// exactly the given name, the name is a pattern, which stands for all steps that match it.
func (e *Engine) AssertStepsCompleted(id string, names ...string) {
	e.t.Helper()
	history := e.history(id)
	for _, name := range names {
		found := findCheckpoints(history, name)
		if len(found) == 0 {
			e.t.Errorf("durabletest: run %q has no %q in its history, which holds %q", id, name, checkpointNames(history))
		}
		for _, c := range found {
			if c.Status != "completed" {
				e.t.Errorf("durabletest: %s %q of run %q is %s, not completed%s", c.Kind, c.Name, id, c.Status, errorSuffix(&c))
			}
		}
	}
}

// findCheckpoints returns the checkpoints that a name stands for; see [Engine.AssertStepsCompleted].
func findCheckpoints(history []durable.Checkpoint, name string) (found []durable.Checkpoint) {
	for _, means := range []func(string) bool{
		func(full string) bool { return full == name },
		func(full string) bool { return matchesDisplayName(name, full) },
	} {
		for _, c := range history {
			if means(c.Name) {
				found = append(found, c)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// AssertOnlyStepsCompleted works as [Engine.AssertStepsCompleted], and also fails the test if the history of the run holds a call
// with another name.
func (e *Engine) AssertOnlyStepsCompleted(id string, names ...string) {
	e.t.Helper()
	e.AssertStepsCompleted(id, names...)
	for _, c := range e.history(id) {
		if c.Kind != durable.KindFailure && c.Kind != durable.KindKeyRenewal && c.Kind != durable.KindPatch && !slices.ContainsFunc(names, func(name string) bool { return matchesDisplayName(name, c.Name) }) {
			e.t.Errorf("durabletest: run %q has a %s %q in its history, beside %q", id, c.Kind, c.Name, names)
		}
	}
}

// AssertNotCalled fails the test if the history of the run holds a call with one of the given names.
func (e *Engine) AssertNotCalled(id string, names ...string) {
	e.t.Helper()
	for _, c := range e.history(id) {
		if slices.ContainsFunc(names, func(name string) bool { return matchesDisplayName(name, c.Name) }) {
			e.t.Errorf("durabletest: run %q has a %s %q in its history (%s)", id, c.Kind, c.Name, c.Status)
		}
	}
}

// RequireStepFailed ends the test unless a step of the run with the given name has failed for good. RequireStepFailed returns
// the error of the step. The rules for names are those of [Engine.AssertStepsCompleted].
func (e *Engine) RequireStepFailed(id, name string) *durable.StepError {
	e.t.Helper()
	history := e.history(id)
	found := findCheckpoints(history, name)
	if len(found) == 0 {
		e.t.Fatalf("durabletest: run %q has no %q in its history, which holds %q", id, name, checkpointNames(history))
	}
	i := slices.IndexFunc(found, func(c durable.Checkpoint) bool { return c.Status == "failed" })
	if i < 0 {
		e.t.Fatalf("durabletest: %s %q of run %q is %s, not failed", found[0].Kind, found[0].Name, id, found[0].Status)
	}
	return found[i].Err
}

// StepAttempts returns how often the functions of the run's steps with the given name, or the stubs in their place, were called
// in this test. The rules for names are those of [Stub].
func (e *Engine) StepAttempts(id, name string) (n int) {
	e.t.Helper()
	for _, called := range e.attemptedStepNames(id) {
		if matchesName(name, called) {
			n++
		}
	}
	return n
}

// ExecutedSteps returns the names of the run's steps whose functions, or stubs in their place, were called in this
// test, in the order of their first calls.
func (e *Engine) ExecutedSteps(id string) (names []string) {
	e.t.Helper()
	for _, called := range e.attemptedStepNames(id) {
		if name := naming.Display(called); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (e *Engine) history(id string) []durable.Checkpoint {
	e.t.Helper()
	history, err := e.History(e.t.Context(), id)
	if err != nil {
		e.t.Fatalf("durabletest: %v", err)
	}
	return history
}

func checkpointNames(history []durable.Checkpoint) (names []string) {
	for _, c := range history {
		names = append(names, c.Name)
	}
	return names
}

func errorSuffix(c *durable.Checkpoint) string {
	if c.Err == nil {
		return ""
	}
	return ": " + c.Err.Error()
}

// attemptedStepNames returns the name of the step of each attempt of the run in this test, in the order of the attempts.
func (e *Engine) attemptedStepNames(id string) (names []string) {
	e.t.Helper()
	info, err := e.Get(e.t.Context(), id)
	if err != nil {
		e.t.Fatalf("durabletest: %v", err)
	}
	log := e.hooks.recorder
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, c := range log.attempts {
		if c.Run.String() == info.RunID {
			names = append(names, c.Name)
		}
	}
	return names
}
