package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/seed8ec063be/durable"
)

// ledger is a file outside of the database. Every execution of a step's function begins by appending one line to it. kill -9 of
// the writer does not tear a single write to a file that was opened with O_APPEND.
type ledger struct{ file *os.File }

func openLedger(name string) (*ledger, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &ledger{f}, err
}

// begin records an execution. If the ledger cannot be written, the example proves nothing, so begin panics, which fails the step.
func (l *ledger) begin(step string) {
	if _, err := fmt.Fprintln(l.file, step); err != nil {
		panic(err)
	}
}

// audit finds the steps that were executed again after their checkpoint was committed. It reads the checkpoints first, and then
// how far the ledger has been written: what is appended later began later.
type audit struct {
	name      string
	committed map[string]int // by step: how long the ledger was after its checkpoint was read
}

// note notes the steps that are committed now.
func (a *audit) note(ctx context.Context, e *durable.Engine, id string) error {
	done, err := committedSteps(ctx, e, id)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(a.name)
	if err != nil {
		return err
	}
	for _, step := range done {
		if _, known := a.committed[step]; !known {
			a.committed[step] = len(text)
		}
	}
	return nil
}

// reruns returns the steps that were executed again.
func (a *audit) reruns() (steps []string, err error) {
	text, err := os.ReadFile(a.name)
	at := 0
	for line := range strings.Lines(string(text)) {
		step := strings.TrimSuffix(line, "\n")
		if end, ok := a.committed[step]; ok && at >= end {
			steps = append(steps, step)
		}
		at += len(line)
	}
	return steps, err
}

// committedSteps returns the steps that have an outcome, as the ledger names them.
func committedSteps(ctx context.Context, e *durable.Engine, id string) (steps []string, err error) {
	history, err := e.History(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []Package
	for _, c := range history {
		node, call, _ := strings.Cut(c.Name, "/")
		if call == "step" && c.Status == durable.CheckpointCompleted {
			steps = append(steps, node)
		}
		if c.Name == "list/step" && c.Status == durable.CheckpointCompleted {
			if list, err = packagesOf(c.Output); err != nil {
				return nil, err
			}
		}
		var item int
		if _, err := fmt.Sscanf(c.Name, "read/children/%d", &item); err == nil && c.Status == durable.CheckpointCompleted {
			steps = append(steps, list[item].Path)
		}
	}
	return steps, nil
}
