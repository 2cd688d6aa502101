package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
)

// ledger is the worker's side of a file outside of the database. Every execution of a step's
// function begins by appending one line to it:
//
//	step name TAB process-execution
//
// kill -9 of the writer does not tear a single write to a file that was opened with O_APPEND.
type ledger struct {
	file    *os.File
	process string
	count   atomic.Int64
}

func openLedger(name string) (*ledger, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &ledger{file: f, process: rand.Text()}, nil
}

// begin records an execution. If the ledger cannot be written, the demo proves nothing, so begin
// panics, which fails the step.
func (l *ledger) begin(step string) {
	if _, err := fmt.Fprintf(l.file, "%s\t%s-%d\n", step, l.process, l.count.Add(1)); err != nil {
		panic(err)
	}
}

// auditor is the parent's side. It reads the new lines of the ledger, and finds the steps that were
// executed again after their checkpoint was committed. There are two cases:
//
//   - A process began the step although its checkpoint was committed before that process was
//     started. Therefore checkpoints are read while no worker lives, after all lines of the previous
//     worker were checked.
//   - One process began the step twice, for which no step of the demo has a reason.
type auditor struct {
	file       *os.File
	rest       []byte            // the beginning of an incomplete line
	begun      map[string]string // by step: the process that last began it
	process    string            // the process of the last line
	committed  map[string]bool
	reexecuted map[string]bool
}

func newAuditor(name string) (*auditor, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &auditor{
		file: f, begun: make(map[string]string), committed: make(map[string]bool), reexecuted: make(map[string]bool),
	}, nil
}

// read checks the lines that were written since the last call.
func (a *auditor) read() error {
	more, err := io.ReadAll(a.file)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	a.rest = append(a.rest, more...)
	for {
		line, rest, whole := strings.Cut(string(a.rest), "\n")
		if !whole {
			return nil
		}
		a.rest = []byte(rest)
		step, execution, _ := strings.Cut(line, "\t")
		process, _, _ := strings.Cut(execution, "-")
		if a.committed[step] || a.begun[step] == process {
			a.reexecuted[step] = true
		}
		a.begun[step], a.process = process, process
	}
}

// commit records the checkpoints that the database contains while no worker lives. It returns how
// many steps have begun and have no checkpoint.
func (a *auditor) commit(checkpoints []string) (interrupted int, err error) {
	if err := a.read(); err != nil {
		return 0, err
	}
	for _, name := range checkpoints {
		a.committed[name] = true
	}
	for name := range a.begun {
		if !a.committed[name] {
			interrupted++
		}
	}
	return interrupted, nil
}
