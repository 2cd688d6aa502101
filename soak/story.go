package main

import (
	"fmt"
	"strings"
	"time"
)

// Stories are told of so many runs that violations name, each with its last entries.
const (
	toldRuns    = 3
	toldEntries = 100
)

// stories tell what the ledger knows of the runs that the violations name.
func (e *evidence) stories(violations []string) (lines []string) {
	told := make(map[string]bool)
	for _, v := range violations {
		for _, k := range e.order {
			if !told[k.RunID] && len(told) < toldRuns && strings.Contains(v, k.RunID) {
				told[k.RunID] = true
				lines = append(lines, e.story(k.RunID)...)
			}
		}
	}
	return lines
}

// story is what the ledger knows of one run, in its order; times are from the first entry.
func (e *evidence) story(run string) (lines []string) {
	var began time.Time
	for _, x := range e.entries {
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
	return lines[max(0, len(lines)-toldEntries):]
}
