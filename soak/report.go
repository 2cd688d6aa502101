package main

import (
	"fmt"
)

// report holds the figures and violations that a soak prints.
type report struct {
	acked, terminal                               int // roots
	runs, executions, steps, transactions         int
	compensations                                 int
	superseded, diverged, operations              int
	losersChildren                                int
	kill9, sigstop, immediate, terminated, killer int
	failovers, away, blocked                      int // promotions; absences of the standby; absences of the standby in which commits waited
	open                                          int // transactions that users held open
	fenced                                        int
	permits, fires                                int // of functions that began under a limit, and granted ones; runs of the schedule
	queued, changes, pauses                       int // runs in queues with settings that began; changes of the queues; pauses of one
	counted                                       int // comparisons of the counts of queues with their places
	shifts, replacedShifts, triggers, backfilled  int // runs of schedules with overlap policies; those that the next time has cancelled; those that triggers and backfills have started
	brief, deleted, retired                       int // runs of workflow brief; those that clients, and the retention, have deleted
	held                                          int // holds of runs whose history does not fit the code
	folds                                         int // starts that fold
	repairs                                       int // of runs
	forward                                       int // runs that the first version of the code began and the second one continued
	deadlines, aroundDeadline                     int // signals to a Receive with a deadline, and those around it
	linear                                        string
	violations                                    []string
	traces                                        []string // entries of the ledger for the runs that the violations name
}

// shownViolations is the number of violations that are printed in full.
const shownViolations = 20

// longSoak is from how many seconds on a soak must have played also what is rare on a slow machine.
const longSoak = 60

// print prints the figures. The error names the number of violations, or a fault that did not occur.
func (r *report) print(set settings) error {
	for i, v := range r.violations {
		if i == shownViolations {
			fmt.Printf("violation: and %d more\n", len(r.violations)-i)
			break
		}
		fmt.Println("violation:", v)
	}
	for _, line := range r.traces {
		fmt.Println("trace:", line)
	}
	fmt.Printf("soak: store=%s seconds=%d runs=%d executions=%d steps=%d transactions=%d compensations=%d operations=%d deadlines=%d around_deadlines=%d connections_ended=%d killer_kills=%d superseded_calls=%d diverged=%d losers_children=%d queue_changes=%d queue_pauses=%d counts_compared=%d went_forward=%d standby_away=%d commits_blocked=%d\n",
		set.store, set.seconds, r.runs, r.executions, r.steps, r.transactions, r.compensations, r.operations, r.deadlines, r.aroundDeadline, r.terminated, r.killer, r.superseded, r.diverged, r.losersChildren, r.changes, r.pauses, r.counted, r.forward, r.away, r.blocked)
	fmt.Printf("soak: seed=%d acked=%d terminal=%d kill9=%d pg_immediate=%d sigstop=%d failovers=%d open_transactions=%d fenced_writes=%d limits=%d fires=%d overlapping=%d ended_by_next=%d triggers=%d backfilled=%d brief=%d deleted=%d retired=%d held=%d queues=%d folds=%d repairs=%d porcupine=%s violations=%d\n",
		set.seed, r.acked, r.terminal, r.kill9, r.immediate, r.sigstop, r.failovers, r.open, r.fenced, r.permits, r.fires, r.shifts, r.replacedShifts, r.triggers, r.backfilled, r.brief, r.deleted, r.retired, r.held, r.queued, r.folds, r.repairs, r.linear, len(r.violations))
	if len(r.violations) > 0 {
		return fmt.Errorf("%d violations; repeat with -store %s -seconds %d -seed %d", len(r.violations), set.store, set.seconds, set.seed)
	}
	type count = struct {
		name string
		n    int
	}
	counts := []count{
		{"kill -9", r.kill9},
		{"SIGSTOP", r.sigstop},
		{"fenced write", r.fenced},
		{"operation of a client", r.operations},
		{"transaction", r.transactions},
		{"compensation", r.compensations},
		{"child of a loser", r.losersChildren},
		{"open transaction of a user", r.open},
		{"permit of a limit", r.permits},
		{"run of a schedule", r.fires},
		{"run in a queue", r.queued},
		{"pause of a queue", r.pauses},
		{"comparison of the counts of queues", r.counted},
		{"start that folds", r.folds},
		{"repair of a run", r.repairs},
	}
	if set.seconds >= longSoak {
		counts = append(counts, []count{
			{"signal around a deadline", r.aroundDeadline},
			{"run that the next time of its schedule cancelled", r.replacedShifts},
			{"trigger of a schedule", r.triggers},
			{"backfilled run", r.backfilled},
			{"run that a client deleted", r.deleted},
			{"run that the retention deleted", r.retired},
			{"hold of a run by another version", r.held},
			{"run that continued in the second version", r.forward},
		}...)
	}
	if set.store == "postgres" {
		counts = append(counts, struct {
			name string
			n    int
		}{"immediate stop of the server", r.immediate}, struct {
			name string
			n    int
		}{"ended connection", r.terminated}, struct {
			name string
			n    int
		}{"failover", r.failovers}, struct {
			name string
			n    int
		}{"absence of the standby", r.away})
	}
	for _, c := range counts {
		if c.n == 0 {
			return fmt.Errorf("there was no %s, so this soak proves nothing: soak for longer, or with another seed", c.name)
		}
	}
	return nil
}
