package main

import (
	"strings"

	"github.com/seed8ec063be/durable"
)

// checkRepairs checks the runs that were repaired: what was recorded under a key is never executed again by an execution that began later, in
// whatever generation, and the result of a run is made of the values of its newest generation.
func (e *evidence) checkRepairs(f *findings) {
	entered := make(map[string]int) // by execution: the index of the entry with which it began
	kept := make(map[string]int)    // by key: the index of the entry of its recorded value
	for i, x := range e.entries {
		switch x.Kind {
		case kindRepairedBegun:
			entered[x.Exec] = i
		case kindRepairedStep:
			if at, known := kept[x.Step]; known && entered[x.Exec] > at {
				f.addViolation("I2: run %s has called the function of the key %q again, after its value was recorded", x.Run, x.Step)
			}
		case kindRepairedReturned:
			key, _, found := strings.Cut(x.Value, keySeparator)
			if _, known := kept[key]; found && !known {
				kept[key] = i
			}
		}
	}
	byID := make(map[string]*knownRun)
	for _, k := range e.order {
		if !isRepaired(k) {
			continue
		}
		byID[k.ID] = k
		if k.Status != durable.StatusCompleted {
			continue
		}
		var all []string
		for _, step := range []string{"a", "b", "c"} {
			all = append(all, unquote(k.history[step].Output))
		}
		if got, want := unquote(k.Output), strings.Join(all, " "); got != want {
			f.addViolation("I3: the result of run %s is %q, and its steps have returned %q", k.ID, got, want)
		}
	}
	for _, id := range e.repairLoad.ids {
		if k := byID[id]; k == nil || k.Status != durable.StatusCompleted {
			f.addViolation("I7: run %s is lost or has not completed: %+v", id, k)
		}
	}
	f.report.repairs = e.repairLoad.repairs
}

// isRepaired reports whether the run may be repaired, so that it can end several times.
func isRepaired(k *knownRun) bool { return strings.HasPrefix(k.Workflow, repairedName) }
