package telemetry

import "sync"

// MetricStepNames is the default limit for the number of step names of each workflow in metrics.
const MetricStepNames = 100

// OtherLabel replaces step names beyond the limit, and the type of errors without a type. The value is the
// one of OpenTelemetry's conventions.
const OtherLabel = "_OTHER"

// stepLabels limits the values of durable.step.name. Step names may contain keys of loops, and each
// name creates a time series. Each workflow has a limit of its own, so that a workflow with unlimited
// names does not exhaust the limit of others.
type stepLabels struct {
	limit      int // the number of names of one workflow
	mu         sync.RWMutex
	knownSteps map[string]map[string]struct{} // by workflow
}

// labelFor returns the value of durable.step.name for a step. It returns false if metrics have no step
// names.
func (l *stepLabels) labelFor(workflow, step string) (string, bool) {
	if l.limit <= 0 {
		return "", false
	}
	l.mu.RLock()
	_, known := l.knownSteps[workflow][step]
	full := len(l.knownSteps[workflow]) >= l.limit
	l.mu.RUnlock()
	switch {
	case known:
		return step, true
	case full:
		return OtherLabel, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	steps := l.knownSteps[workflow]
	if steps == nil {
		steps = make(map[string]struct{})
		if l.knownSteps == nil {
			l.knownSteps = make(map[string]map[string]struct{})
		}
		l.knownSteps[workflow] = steps
	}
	if _, known := steps[step]; !known && len(steps) >= l.limit { // another goroutine was first
		return OtherLabel, true
	}
	steps[step] = struct{}{}
	return step, true
}
