package telemetry

import "sync"

// MetricStepNames is the default limit for the number of step names of each workflow in metrics.
const MetricStepNames = 100

// Other replaces step names beyond the limit, and the type of errors without a type. The value is the
// one of OpenTelemetry's conventions.
const Other = "_OTHER"

// stepLabels limits the values of durable.step.name. Step names may contain keys of loops, and each
// name creates a time series. Each workflow has a limit of its own, so that a workflow with unlimited
// names does not exhaust the limit of others.
type stepLabels struct {
	limit int // the number of names of one workflow
	mu    sync.RWMutex
	known map[string]map[string]struct{} // by workflow
}

// label returns the value of durable.step.name for a step. It returns false if metrics have no step
// names.
func (l *stepLabels) label(workflow, step string) (string, bool) {
	if l.limit <= 0 {
		return "", false
	}
	l.mu.RLock()
	_, known := l.known[workflow][step]
	full := len(l.known[workflow]) >= l.limit
	l.mu.RUnlock()
	switch {
	case known:
		return step, true
	case full:
		return Other, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	steps := l.known[workflow]
	if steps == nil {
		steps = make(map[string]struct{})
		if l.known == nil {
			l.known = make(map[string]map[string]struct{})
		}
		l.known[workflow] = steps
	}
	if _, known := steps[step]; !known && len(steps) >= l.limit { // another goroutine was first
		return Other, true
	}
	steps[step] = struct{}{}
	return step, true
}
