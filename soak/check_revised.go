package main

import "github.com/seed8ec063be/durable"

// checkRevised checks the runs whose code differs between the versions: each completed with the code of one version, and no version called a
// function of a run after a call of the other one was recorded.
func (e *evidence) checkRevised(f *findings) {
	version := make(map[string]string) // by run: the version whose code fits its history
	for _, run := range e.revisedLoad.started {
		k := e.runs[run]
		if k == nil || k.Status != durable.StatusCompleted {
			f.addViolation("I10: run %s of workflow %s has not completed: %+v", run, revisedName, k)
			continue
		}
		version[run] = firstVersion
		if k.history[chargeCall].Kind != durable.KindStep {
			version[run] = secondVersion
		}
		if unquote(k.Output) != version[run] {
			f.addViolation("I10: run %s was begun by version %q, and has completed with %s", run, version[run], k.Output)
		}
	}
	for _, x := range e.events {
		if x.Type != durable.EventPaused || version[x.RunID] == "" {
			continue
		}
		if f.report.held++; x.Actor != "" || x.Reason != "" { // the reason of a hold is that of the run, while it is held
			f.addViolation("I10: run %s was paused by %q: %q", x.RunID, x.Actor, x.Reason)
		}
	}
	for _, x := range e.entries {
		if x.Kind == kindRevisedStep && x.Step == shipStep && x.Version != version[x.Run] && version[x.Run] != "" {
			f.addViolation("I10: version %q has called step %s of run %s, which version %q has begun", x.Version, x.Step, x.Run, version[x.Run])
		}
	}
}
