package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// ledger is a file outside of the database. Every execution of a step's function begins by appending one line to it, with the time.
// kill -9 of the writer does not tear a single write to a file that was opened with O_APPEND.
type ledger struct{ file *os.File }

func openLedger(name string) (*ledger, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &ledger{f}, err
}

// begin records that the function of a step of the run begins. If the ledger cannot be written, the example proves nothing, so begin
// panics, which fails the step.
func (l *ledger) begin(ctx context.Context, run string) {
	step, _ := durable.StepInfo(ctx)
	if _, err := fmt.Fprintf(l.file, "%d %s %s\n", time.Now().UnixNano(), run, step.Name); err != nil {
		panic(err)
	}
}

// execution is one line of the ledger.
type execution struct {
	run, step string
	at        time.Time
}

func readLedger(name string) (all []execution, err error) {
	text, err := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		at, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var nanoseconds int64
		if _, err := fmt.Sscan(at, &nanoseconds); err != nil {
			return nil, fmt.Errorf("the ledger has the line %q: %w", line, err)
		}
		run, step, _ := strings.Cut(rest, " ")
		all = append(all, execution{run, step, time.Unix(0, nanoseconds)})
	}
	return all, err
}

// countSteps returns how many different steps have begun.
func countSteps(all []execution) int {
	begun := make(map[[2]string]bool)
	for _, x := range all {
		begun[[2]string{x.run, x.step}] = true
	}
	return len(begun)
}

// clockError bounds how far the recorded end of a step, by the clock of the database as a worker estimates it, is from the clock of this
// machine. An execution after a kill begins later than that.
const clockError = 5 * time.Millisecond

// reruns compares the ledger with the committed rows of the runs themselves, of the children too, and returns the executions that began
// after the recorded end of their step. Such a step was executed again although its checkpoint was committed: an execution whose result
// was lost is followed by one with a later end.
func reruns(ctx context.Context, e *durable.Engine, all []execution) (again []string, err error) {
	histories := make(map[string]map[string]durable.Checkpoint)
	for _, x := range all {
		if histories[x.run] == nil {
			history, err := e.History(ctx, x.run)
			if err != nil {
				return nil, err
			}
			histories[x.run] = make(map[string]durable.Checkpoint, len(history))
			for _, c := range history {
				histories[x.run][c.Name] = c
			}
		}
		switch c := histories[x.run][x.step]; {
		case c.Status != durable.CheckpointCompleted:
			return nil, fmt.Errorf("step %q of run %q was executed, and is not committed at the end", x.step, x.run)
		case x.at.After(c.EndedAt.Add(clockError)):
			again = append(again, x.run+" "+x.step)
		}
	}
	return again, nil
}
