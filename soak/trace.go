package main

import (
	"fmt"
	"strings"
	"time"
)

// Limits of the trace that is printed for the runs that violations name.
const (
	tracedRuns    = 3   // runs
	tracedEntries = 100 // entries of the ledger for each, the last ones
)

// traces returns the entries of the ledger for the runs that the violations name.
func (e *evidence) traces(violations []string) (lines []string) {
	traced := make(map[string]bool)
	for _, v := range violations {
		for _, k := range e.order {
			if !traced[k.RunID] && len(traced) < tracedRuns && (strings.Contains(v, k.RunID) || strings.Contains(v, "run "+k.ID+" ")) {
				traced[k.RunID] = true
				lines = append(lines, e.trace(k.RunID)...)
			}
		}
	}
	return lines
}

// trace returns the entries of the ledger for one run, in their order; times count from the first entry.
func (e *evidence) trace(run string) (lines []string) {
	var began time.Time
	for _, x := range e.entries {
		if x.Kind == kindRenewed {
			continue
		}
		ours := make([]string, 0, 1)
		for _, w := range x.Writes {
			if w.Run == run {
				ours = append(ours, strings.TrimRight(fmt.Sprintf("epoch %d: %s %s", w.Epoch, w.What, w.Outcome), " :"))
			}
		}
		if x.Run != run && len(ours) == 0 {
			continue
		}
		if began.IsZero() {
			began = x.At
		}
		line := fmt.Sprintf("%s %v process %d %s", run, x.At.Sub(began).Round(100*time.Microsecond), x.Pid, x.Kind)
		if len(ours) > 0 {
			line += " " + strings.Join(ours, "; ")
		} else {
			line += strings.TrimRight(fmt.Sprintf(" by %s: %s %s %q %s", x.Exec, x.Step, x.Do, x.Value, x.Err), " ")
		}
		lines = append(lines, line)
	}
	return lines[max(0, len(lines)-tracedEntries):]
}
