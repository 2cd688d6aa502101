// Package model is the seam of package store once more, in memory and without a
// database: what each call must answer, and what must then be there, written from the
// comments of package store alone. Tests make the same random calls to it and to both
// stores, and compare.
//
// Where those comments leave a choice to the store, the model takes every way (see
// Branches), and the test drops those that the store did not go.
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
	// Events are those of one transaction after those of another. Cursors are left out,
	// and so is the order within a transaction.
	Events [][]store.Event

	// Fence, if set, is where step writes look at their run, instead of here: a store may
	// let in one that was on its way when its run was taken over. And claims count there
	// which checkpoints are new.
	Fence *Model

	// Doubts are what was told of a run that was not so at the time of the call that told
	// it: a store may look only afterwards why a write did not take. Each must hold of the
	// database before or after what went on meanwhile.
	Doubts []func(m *Model) bool

	txEvents   []store.Event
	choices    []choice
	nextChoice int // of path
}

// Run is one run and all that belongs to it.
type Run struct {
	store.Run
	Woken    bool
	Progress int // terminal checkpoints at the last claim after a crash
	Lost     store.Loss
	Steps    map[string]store.Step
	Signals  []Signal // in the order of their arrival
	Tags     map[string]string
}

// Signal is one that a run was sent.
type Signal struct {
	store.Signal
	Taken bool
}

// choice is one of several ways that a store may go.
type choice struct{ taken, options int }

// New is an empty database.
func New() *Model { return &Model{Runs: make(map[uuid.UUID]*Run)} }

// Clone is a copy that shares nothing which either of both changes.
func (m *Model) Clone() *Model {
	c := &Model{Runs: make(map[uuid.UUID]*Run, len(m.Runs)), Events: slices.Clone(m.Events)}
	for id, r := range m.Runs {
		own := *r
		own.Steps, own.Tags, own.Signals = maps.Clone(r.Steps), maps.Clone(r.Tags), slices.Clone(r.Signals)
		c.Runs[id] = &own
	}
	return c
}

// String tells all that is there. Equal texts are equal databases.
func (m *Model) String() string {
	var text strings.Builder
	for _, id := range m.sortedIDs() {
		fmt.Fprintf(&text, "%v\n", *m.Runs[id])
	}
	for _, tx := range m.Events {
		tx = slices.Clone(tx)
		slices.SortFunc(tx, compareEvents)
		fmt.Fprintf(&text, "%v\n", tx)
	}
	return text.String()
}

// Branches does step to copies of m, once for each way that it may go, and answers what
// m became where step did not object; and the first objection.
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

// choose takes one of n ways. Outside of Branches it is the first one.
func (m *Model) choose(n int) int {
	if m.nextChoice == len(m.choices) {
		m.choices = append(m.choices, choice{options: n})
	}
	m.nextChoice++
	return m.choices[m.nextChoice-1].taken
}

// may is a thing that a store need not do, and may.
func (m *Model) mayHappen() bool { return m.choose(2) == 1 }

// Either is other, or nil.
func (m *Model) Either(other *Model) *Model {
	if m.mayHappen() {
		return other
	}
	return nil
}

// sorted are the runs by ID.
func (m *Model) sortedIDs() []uuid.UUID {
	return slices.SortedFunc(maps.Keys(m.Runs), func(l, r uuid.UUID) int { return bytes.Compare(l[:], r[:]) })
}

// State is what a write is told of a run.
func (m *Model) State(id uuid.UUID) store.RunState {
	r := m.Runs[id]
	if r == nil {
		return store.RunState{}
	}
	return store.RunState{Found: true, Status: r.Status, Epoch: r.Epoch, Control: r.Control}
}

// owns reports whether the run is still running in that ownership.
func isRunningAt(s store.RunState, epoch store.Epoch) bool {
	return s.Found && s.Status == store.Running && s.Epoch == epoch
}

// named is the run with that name beneath that parent, nil if there is none.
func (m *Model) findByName(name string, parent uuid.NullUUID) *Run {
	for _, r := range m.Runs {
		if r.Name == name && r.Parent == parent {
			return r
		}
	}
	return nil
}

// wake has a run look again: if it waits it is claimable at that time, if it is running it
// is marked.
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

// tell notes an event of the transaction under way.
func (m *Model) recordEvent(r *Run, what store.EventType, at time.Time) {
	m.txEvents = append(m.txEvents, store.Event{Type: what, At: at, Run: r.ID, Name: r.Name, Child: r.Parent.Valid, Workflow: r.Workflow})
}

// commit ends the transaction under way.
func (m *Model) endTransaction() {
	if len(m.txEvents) > 0 {
		m.Events = append(m.Events, m.txEvents)
		m.txEvents = nil
	}
}

// history are the checkpoints by name.
func (r *Run) history() []store.Step {
	return slices.SortedFunc(maps.Values(r.Steps), func(l, r store.Step) int { return cmp.Compare(l.Name, r.Name) })
}

// terminal is how many checkpoints have their outcome.
func (r *Run) terminalSteps() (n int) {
	for _, s := range r.Steps {
		if s.Status.Terminal() {
			n++
		}
	}
	return n
}

func compareEvents(l, r store.Event) int {
	return cmp.Or(bytes.Compare(l.Run[:], r.Run[:]), cmp.Compare(l.Type, r.Type), l.At.Compare(r.At))
}
