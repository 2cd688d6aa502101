package main

import (
	"fmt"
)

// report is what a soak tells.
type report struct {
	acked, terminal                               int // roots
	runs, executions, steps, transactions, undone int
	superseded, diverged, operations, lost        int
	kill9, sigstop, immediate, terminated, killer int
	fenced                                        int
	deadlines, close                              int // signals to bounded waits, and those around the deadline
	linear                                        string
	violations                                    []string
	stories                                       []string // of the runs that they name
}

// shownViolations is how many are told in full.
const shownViolations = 20

// tell prints the figures. The error says what was violated, or which fault did not occur.
func (r *report) tell(set settings) error {
	for i, v := range r.violations {
		if i == shownViolations {
			fmt.Printf("violation: and %d more\n", len(r.violations)-i)
			break
		}
		fmt.Println("violation:", v)
	}
	for _, line := range r.stories {
		fmt.Println("story:", line)
	}
	fmt.Printf("soak: store=%s seconds=%d runs=%d executions=%d steps=%d transactions=%d undone=%d operations=%d deadlines=%d around_deadlines=%d connections_ended=%d killer_kills=%d superseded_calls=%d diverged=%d losers_children=%d\n",
		set.store, set.seconds, r.runs, r.executions, r.steps, r.transactions, r.undone, r.operations, r.deadlines, r.close, r.terminated, r.killer, r.superseded, r.diverged, r.lost)
	fmt.Printf("soak: seed=%d acked=%d terminal=%d kill9=%d pg_immediate=%d sigstop=%d fenced_writes=%d porcupine=%s violations=%d\n",
		set.seed, r.acked, r.terminal, r.kill9, r.immediate, r.sigstop, r.fenced, r.linear, len(r.violations))
	if len(r.violations) > 0 {
		return fmt.Errorf("%d violations; repeat with -store %s -seconds %d -seed %d", len(r.violations), set.store, set.seconds, set.seed)
	}
	counts := []struct {
		name string
		n    int
	}{
		{"kill -9", r.kill9},
		{"SIGSTOP", r.sigstop},
		{"fenced write", r.fenced},
		{"operation of a client", r.operations},
		{"transaction", r.transactions},
		{"compensation", r.undone},
		{"signal around a deadline", r.close},
		{"child of a loser", r.lost},
	}
	if set.store == "postgres" {
		counts = append(counts, struct {
			name string
			n    int
		}{"immediate stop of the server", r.immediate}, struct {
			name string
			n    int
		}{"ended connection", r.terminated})
	}
	for _, c := range counts {
		if c.n == 0 {
			return fmt.Errorf("there was no %s: this soak proves nothing", c.name)
		}
	}
	return nil
}
