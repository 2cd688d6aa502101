// Package model implements the interface of package store in memory, as a reference: which result
// each call must return, and which rows must exist afterwards. It follows only the documentation of
// package store. Tests make the same random calls to the model and to both stores, and compare.
//
// Where the documentation leaves a choice to the store, the model follows every choice (see Branches),
// and the test discards the branches that differ from the store.
package model

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Model is the content of one database. It is not safe for concurrent use.
type Model struct {
	Runs map[uuid.UUID]*Run
	// Events holds the events of each transaction, in the order of the transactions. It has no
	// cursors, and the order within a transaction has no meaning.
	Events [][]store.Event

	// Fence, if not nil, is an earlier state of the database in which step writes find their run:
	// a store may accept a step whose write was in progress when its run was taken over. Claims
	// count new checkpoints in it.
	FencingState *Model

	// Conditions are conditions that results of concurrent calls imply: a store may read the reason why a
	// write changed no row after the write. Each condition must hold before or after the concurrent
	// calls.
	Conditions []func(m *Model) bool

	txEvents   []store.Event
	choices    []choice
	nextChoice int // of path
}

// Run is one run with its checkpoints, signals and tags.
type Run struct {
	store.Run
	Woken               bool
	ProgressAtLastCrash int // at the last claim after a crash
	LastLeaseLoss       store.LeaseLoss
	FirstInputHash      []byte
	Steps               map[string]store.Step
	Signals             []Signal // in the order of their arrival
	Tags                map[string]string

	Divergences map[string]store.Divergence // by their versions

	Failure store.FailureKey // of a Failed or Expired run

	Generations []Generation // that were superseded, the oldest first
}

// Generation is a superseded generation of a run, with its checkpoints.
type Generation struct {
	store.SupersededGeneration
	Steps map[string]store.Step
}

// Signal is a signal that was sent to a run.
type Signal struct {
	store.SignalWrite
	IsReceived bool
	By         string // its receiver, once it is taken
}

// choice is a decision that the documentation leaves to the store.
type choice struct{ taken, options int }

// New returns an empty database.
func New() *Model { return &Model{Runs: make(map[uuid.UUID]*Run)} }

// Clone returns a copy. Changes of one do not affect the other.
func (m *Model) Clone() *Model {
	c := &Model{Runs: make(map[uuid.UUID]*Run, len(m.Runs)), Events: slices.Clone(m.Events)}
	for id, r := range m.Runs {
		own := *r
		own.Steps, own.Tags, own.Signals = maps.Clone(r.Steps), maps.Clone(r.Tags), slices.Clone(r.Signals)
		own.Generations = slices.Clone(r.Generations)
		c.Runs[id] = &own
	}
	return c
}

// String describes the whole content. Equal texts mean equal databases, so a payload that is nil and one that
// is empty differ in it.
func (m *Model) String() string {
	var text strings.Builder
	for _, id := range m.sortedUUIDs() {
		fmt.Fprintf(&text, "%#v\n", *m.Runs[id])
	}
	for _, tx := range m.Events {
		tx = slices.Clone(tx)
		slices.SortFunc(tx, compareEvents)
		fmt.Fprintf(&text, "%#v\n", tx)
	}
	return text.String()
}

// Branches applies step to copies of m, once for each combination of choices. It returns the copies for
// which step returned nil, and the first error of the others.
func (m *Model) Branches(step func(m *Model) error) (became []*Model, objection error) {
	var path []choice
	for {
		c := m.Clone()
		c.choices = slices.Clone(path)
		if err := step(c); err == nil {
			became = append(became, c)
		} else if objection == nil {
			objection = err
		}
		path, c.choices, c.nextChoice = c.choices, nil, 0
		for len(path) > 0 && path[len(path)-1].taken+1 == path[len(path)-1].options {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return became, objection
		}
		path[len(path)-1].taken++
	}
}

// choose returns the current choice among n options. Outside of Branches it returns 0.
func (m *Model) choose(n int) int {
	if m.nextChoice == len(m.choices) {
		m.choices = append(m.choices, choice{options: n})
	}
	m.nextChoice++
	return m.choices[m.nextChoice-1].taken
}

// mayHappen chooses whether something happens that the documentation permits but does not require.
func (m *Model) mayHappen() bool { return m.choose(2) == 1 }

// ChooseOrNil chooses between other and nil.
func (m *Model) ChooseOrNil(other *Model) *Model {
	if m.mayHappen() {
		return other
	}
	return nil
}

// sortedUUIDs returns the UUIDs of all runs, in order.
func (m *Model) sortedUUIDs() []uuid.UUID {
	return slices.SortedFunc(maps.Keys(m.Runs), func(l, r uuid.UUID) int { return bytes.Compare(l[:], r[:]) })
}

// RunState returns the state of a run as a write reports it.
func (m *Model) RunState(id uuid.UUID) store.RunState {
	r := m.Runs[id]
	if r == nil {
		return store.RunState{}
	}
	return store.RunState{Found: true, Status: r.Status, Epoch: r.Epoch, Control: r.Control}
}

// findByName returns the run with that name and parent, or nil.
func (m *Model) findByName(name string, parent uuid.NullUUID) *Run {
	for _, r := range m.Runs {
		if r.Name == name && r.Parent == parent {
			return r
		}
	}
	return nil
}

// wake makes a waiting run claimable at that time, and marks a running run as woken.
func (m *Model) wake(id uuid.UUID, at time.Time) {
	r := m.Runs[id]
	switch {
	case r == nil:
	case r.Status == store.Waiting && (r.WakeAt.IsZero() || at.Before(r.WakeAt)):
		r.WakeAt = at
	case r.Status == store.Running:
		r.Woken = true
	}
}

// recordEvent adds an event to the current transaction.
func (m *Model) recordEvent(r *Run, what store.EventType, at time.Time) {
	m.txEvents = append(m.txEvents, store.Event{Type: what, At: at, Run: r.UUID, Name: r.Name, IsChild: r.Parent.Valid, Workflow: r.Workflow})
}

// recordAct adds an event of a run with who has requested it to the current transaction.
func (m *Model) recordAct(run uuid.UUID, act store.ActorAndReason, e store.Event) {
	if r := m.Runs[run]; r != nil {
		e.Name, e.IsChild, e.Workflow = r.Name, r.Parent.Valid, r.Workflow
	}
	e.Run, e.At, e.Actor, e.Reason = run, act.At, act.Actor, act.Reason
	m.txEvents = append(m.txEvents, e)
}

// endTransaction ends the current transaction.
func (m *Model) endTransaction() {
	if len(m.txEvents) > 0 {
		m.Events = append(m.Events, m.txEvents)
		m.txEvents = nil
	}
}

// history returns the checkpoints, ordered by name.
func (r *Run) history() []store.Step {
	return slices.SortedFunc(maps.Values(r.Steps), func(l, r store.Step) int { return cmp.Compare(l.Name, r.Name) })
}

// progress returns the sum of Step.Progress of all checkpoints.
func (r *Run) progress() (n int) {
	for _, s := range r.Steps {
		n += s.Progress()
	}
	return n
}

func compareEvents(l, r store.Event) int {
	return cmp.Or(bytes.Compare(l.Run[:], r.Run[:]), cmp.Compare(l.Type, r.Type), l.At.Compare(r.At))
}
