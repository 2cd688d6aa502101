package telemetry

import "sync"

// MetricStepNames is how many step names of each workflow metrics tell apart unless configured.
const MetricStepNames = 100

// Other stands for the step names beyond that, and for errors without a type, as OpenTelemetry's
// conventions have it.
const Other = "_OTHER"

// stepLabels bounds the values of durable.step.name. Names may hold keys of loops, and each name
// makes a series. The bound is a workflow's own, so that one whose names never end does not take the
// names of the others.
type stepLabels struct {
	limit int // of one workflow
	mu    sync.RWMutex
	known map[string]map[string]struct{} // by workflow
}

// of is the name to show in place of the step's. It reports false if none is to be shown.
func (l *stepLabels) of(workflow, step string) (string, bool) {
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
	if _, known := steps[step]; !known && len(steps) >= l.limit { // others came first
		return Other, true
	}
	steps[step] = struct{}{}
	return step, true
}
