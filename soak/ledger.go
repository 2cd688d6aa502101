package main

import (
	"bufio"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// kind is the kind of an entry.
type kind string

const (
	kindFunctionBegun    kind = "enter"   // an execution of a run's function begins
	kindStepCalled       kind = "begin"   // a step's function is called
	kindCallReturned     kind = "ack"     // a durable call has returned Value, or the failure Err
	kindAwaitsSignal     kind = "token"   // a run waits for a signal, or for the result of the token Value
	kindClaimed          kind = "claim"   // runs were claimed, until the time Value
	kindCommitting       kind = "try"     // a batch is about to be committed
	kindCommitted        kind = "did"     // the batch was committed, with these outcomes
	kindLeaked           kind = "leak"    // a worker has leaked goroutines
	kindPermitHeld       kind = "hold"    // a function that has a permit of the limit key Step begins
	kindPermitFreed      kind = "free"    // it returns
	kindPermitGranted    kind = "grant"   // the limit key Step granted a permit at the time Value
	kindLimitChanging    kind = "bound"   // the bound of the limit Step is about to be changed to Attempt
	kindLimitChanged     kind = "bounded" // it has been changed
	kindScheduled        kind = "tick"    // the run of the scheduled time Value is executed
	kindShiftBegun       kind = "shift"   // the run of the time Value of the schedule Step, which has an overlap policy, is executed
	kindQueuedBegun      kind = "in"      // the function of a run in the queue Step, or of the workflow Step, with the key Value is called
	kindQueuedReturned   kind = "out"     // it returns
	kindAdmitted         kind = "admit"   // Attempt runs of the queue Step were admitted at the time Value
	kindRenewed          kind = "renew"   // the leases of runs were extended until the time Value
	kindVerbCalled       kind = "ask"     // the verb Step is about to be called, for a queue or a run
	kindVerbReturned     kind = "asked"   // it has returned
	kindBriefBegun       kind = "brief"   // a run of workflow brief is executed; Value is the UUID of its parent
	kindArchived         kind = "old"     // the retention has archived a run, or half of it for the reason Err
	kindRevisedStep      kind = "revised" // the version Version calls the function of the step Step of a run of workflow revised
	kindFoldBegun        kind = "fold"    // a start that folds, identified by Exec, is about to be made; Step is its kind and key, Value its mode or input
	kindFoldEnded        kind = "folded"  // it has led to the run, or to Err
	kindRepairedBegun    kind = "open"    // an execution of a run that is repaired begins
	kindRepairedStep     kind = "make"    // it calls the function of a step with the idempotency key Step
	kindRepairedReturned kind = "kept"    // the step has returned the recorded Value
	kindDebounceRan      kind = "ran"     // the run of a debounced start is executed with the input Value
)

// entry is one line of the ledger. Its kind determines which fields are set.
type entry struct {
	Kind    kind      `json:"k"`
	Pid     int       `json:"pid"`
	At      time.Time `json:"at"`
	Run     string    `json:"run,omitzero"`  // its UUID
	Exec    string    `json:"exec,omitzero"` // identifies an execution of the run
	Step    string    `json:"step,omitzero"`
	Do      op        `json:"do,omitzero"`
	Attempt int       `json:"n,omitzero"`
	Value   string    `json:"v,omitzero"`
	Err     string    `json:"err,omitzero"`
	Batch   int64     `json:"batch,omitzero"` // its number in the process
	Writes  []write   `json:"w,omitzero"`
	Version string    `json:"ver,omitzero"`    // of the worker that claims
	Outage  bool      `json:"outage,omitzero"` // of a claim: the worker had no database, or has not had it lately
}

// write is one guarded write of a run's owner, or, in a claim, the run and its new epoch.
type write struct {
	Run     string `json:"r"`
	Epoch   int32  `json:"e"`
	Nonce   uint32 `json:"n"`          // of the epoch
	What    string `json:"s,omitzero"` // the step with its state and attempt, or the run's new state; in a claim, empty unless the claim only paused the run
	Outcome string `json:"o,omitzero"`
	Crashes int32  `json:"c,omitzero"` // of the run, in a claim
}

// ledger is a file to which processes append. Each entry is one write(2) in append mode: entries
// of several processes never mix, and their order in the file is that in which they were
// written. SIGKILL can tear an entry where it crosses a page. Each entry therefore begins with a newline, and
// a line that cannot be decoded is the last entry of a process that was killed.
type ledger struct {
	mu   sync.Mutex
	file *os.File
}

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &ledger{file: f}, nil
}

// add appends an entry. If the ledger cannot be written, nothing can be checked: the process exits.
func (l *ledger) add(e entry) {
	e.Pid, e.At = os.Getpid(), time.Now()
	line, err := json.Marshal(e)
	if err == nil {
		l.mu.Lock()
		_, err = l.file.Write(slices.Concat([]byte("\n"), line, []byte("\n")))
		l.mu.Unlock()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak: the ledger:", err)
		os.Exit(3)
	}
}

func (l *ledger) close() error { return l.file.Close() }

// ledgerReader reads a ledger as it grows.
type ledgerReader struct {
	file        *os.File
	in          *bufio.Reader
	partialLine []byte // the beginning of a line whose end is not written yet
}

func (l *ledger) tail() (*ledgerReader, error) {
	f, err := os.Open(l.file.Name())
	if err != nil {
		return nil, err
	}
	return &ledgerReader{file: f, in: bufio.NewReaderSize(f, 1<<20)}, nil
}

// readNew returns the entries that were added since the last call.
func (t *ledgerReader) readNew() (all []entry, err error) {
	for {
		line, err := t.in.ReadBytes('\n')
		t.partialLine = append(t.partialLine, line...)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var e entry
		if json.Unmarshal(t.partialLine, &e) == nil {
			all = append(all, e)
		}
		t.partialLine = t.partialLine[:0]
	}
}

func (t *ledgerReader) close() error { return t.file.Close() }

// read returns all entries.
func (l *ledger) read() ([]entry, error) {
	t, err := l.tail()
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.readNew()
}

// keep copies the ledger into a folder.
func (l *ledger) keep(folder string) error {
	from, err := os.Open(l.file.Name())
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(folder, "ledger.jsonl"))
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		return err
	}
	return to.Close()
}
