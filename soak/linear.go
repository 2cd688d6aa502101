package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed8ec063be/durable"
)

// verb is an operation of a client on a run.
type verb string

const (
	verbStart  verb = "start"
	verbSignal verb = "signal"
	verbPause  verb = "pause"
	verbResume verb = "resume"
	verbCancel verb = "cancel"
	verbGet    verb = "get"
)

// question is what a client asked.
type question struct {
	Verb verb
	Word string // of a signal: its payload and its key
}

// said is the sort of an answer.
type said string

const (
	saidYes    said = "yes"
	saidNo     said = "no" // *StateError
	saidAbsent said = "absent"
)

// answer is what a client was answered.
type answer struct {
	Said   said
	Status state  // of Get, and of a refusal
	Words  string // the output, of Get
	Again  bool   // it had been asked before, and that was not answered: it may have taken effect twice
}

// state is the status of a run as an answer told it; empty if it did not.
type state durable.Status

func (s state) is(some ...durable.Status) bool { return slices.Contains(some, durable.Status(s)) }

func (s state) ended() bool {
	return s.is(durable.StatusCompleted, durable.StatusFailed, durable.StatusCancelled, durable.StatusExpired)
}

// run is what a talk is, as its clients may know it. It ends by itself, at a moment that
// nobody is told: ended is set by the first answer that tells of it.
type run struct {
	exists, paused, cancelled bool
	words                     string // that were sent to it, in order, each once; see fmt.Sprint
	count                     int
	first                     string // the words that it receives, once there are enough
	ended                     state
}

func (r run) has(word string) bool {
	return slices.Contains(strings.Fields(r.words), word)
}

// model says which answers a talk may give: it receives words in the order in which they
// were sent, completes with them if it is not cancelled first, and what has ended stays so.
var model = porcupine.Model{
	Init: func() any { return run{} },
	Step: func(s, q, a any) (bool, any) {
		next := s.(run)
		ok := next.step(q.(question), a.(answer))
		return ok, next
	},
	DescribeOperation: func(q, a any) string { return fmt.Sprintf("%+v → %+v", q, a) },
}

// step reports whether the answer is possible, and makes the run what it is then.
func (r *run) step(q question, a answer) bool {
	if a.Said == saidAbsent {
		return !r.exists && q.Verb != verbStart
	}
	if q.Verb == verbStart {
		r.exists = true
		return a.Said == saidYes
	}
	if !r.exists {
		return false
	}
	if a.Status.ended() {
		return r.end(a)
	}
	if q.Verb == verbSignal && a.Said == saidYes && r.has(q.Word) {
		return true // a signal that was kept before is acknowledged again, whatever the run is
	}
	if q.Verb == verbCancel && a.Said == saidYes && r.ended.is(durable.StatusCancelled) {
		return true // a cancel of what is cancelled is acknowledged again
	}
	if r.ended != "" {
		return false // what has ended says so
	}
	switch q.Verb {
	case verbSignal:
		if a.Said == saidYes {
			r.words += q.Word + " "
			if r.count++; r.count == heard {
				r.first = r.words
			}
		}
		return a.Said == saidYes
	case verbPause:
		if a.Said == saidNo {
			return r.cancelled
		}
		r.paused = true
		return !r.cancelled || a.Again
	case verbResume:
		was := r.paused
		r.paused = false
		return r.cancelled || a.Again || was == (a.Said == saidYes)
	case verbCancel:
		r.cancelled = true
		return a.Said == saidYes
	}
	switch {
	case r.cancelled:
		return true
	case r.paused: // while it is executed, it takes a moment to leave
		return a.Status.is(durable.StatusPaused, durable.StatusRunning)
	}
	return a.Status.is(durable.StatusPending, durable.StatusRunning, durable.StatusWaiting)
}

// end reports whether the run may have ended as the answer tells.
func (r *run) end(a answer) bool {
	if r.ended != "" && r.ended != a.Status {
		return false
	}
	r.ended = a.Status
	switch {
	case a.Status.is(durable.StatusCancelled):
		return r.cancelled
	case a.Status.is(durable.StatusCompleted):
		return !r.cancelled && r.count >= heard && (a.Words == "" || a.Words == fmt.Sprint(strings.Fields(r.first)))
	}
	return false
}

// linearizable reports whether all answers of each talk are those of one run to which
// one thing happens after the other.
func (t *talks) linearizable(limit time.Duration) (result string, operations int, violations []string) {
	result = "ok"
	began := time.Now()
	for _, to := range t.all {
		operations += len(to.operations)
		switch porcupine.CheckOperationsTimeout(model, to.operations, max(time.Second, limit-time.Since(began))) {
		case porcupine.Illegal:
			result = "illegal"
			violations = append(violations, fmt.Sprintf("the answers of %s are not linearizable:%s", to.id, shown(to.operations)))
		case porcupine.Unknown:
			if result == "ok" {
				result = "unknown"
			}
			violations = append(violations, fmt.Sprintf("whether the answers of %s are linearizable was not found out in time:%s", to.id, shown(to.operations)))
		}
	}
	return result, operations, violations
}

// shown lists operations by their beginnings.
func shown(all []porcupine.Operation) (text string) {
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range all {
		text += fmt.Sprintf("\n\t\t%v to %v, client %d: %s",
			time.Duration(o.Call).Round(time.Microsecond), time.Duration(o.Return).Round(time.Microsecond), o.ClientId, model.DescribeOperation(o.Input, o.Output))
	}
	return text
}
