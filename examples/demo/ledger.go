package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
)

// ledger is the worker's side of a file outside the database, to which every execution
// of a step's function appends one line as its first act:
//
//	step name TAB process-execution
//
// One write to a file opened with O_APPEND is not torn by kill -9 of the writer.
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

// begin notes an execution. A ledger that cannot be written would make the proof
// worthless, so that is a panic, which fails the step.
func (l *ledger) begin(step string) {
	if _, err := fmt.Fprintf(l.file, "%s\t%s-%d\n", step, l.process, l.count.Add(1)); err != nil {
		panic(err)
	}
}

// auditor is the parent's side: it reads what is new in the ledger, and finds the steps
// that ran again after their checkpoint was committed. There are two ways to be one:
//
//   - a process began it although its checkpoint was there before that process was
//     started. Checkpoints are therefore read while no worker lives, and what the
//     worker before had written is judged first;
//   - one process began it twice, which no step here has a reason to be.
type auditor struct {
	file       *os.File
	rest       []byte            // of a line that is not complete
	begun      map[string]string // the process that began the step last
	process    string            // of the line read last
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

// read judges the lines that were written since the last call.
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

// commit takes note of the checkpoints that the database holds while no worker lives,
// and answers how many steps had begun without getting one.
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
