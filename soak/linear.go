package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed8ec063be/durable"
)

// verb is the kind of an operation on a run.
type verb string

const (
	verbStart  verb = "start"
	verbSignal verb = "signal"
	verbPause  verb = "pause"
	verbResume verb = "resume"
	verbCancel verb = "cancel"
	verbGet    verb = "get"
)

// request is one call of a client.
type request struct {
	Verb verb
	Word string // payload and key of a signal
}

// result is the kind of a response.
type result string

const (
	resultOK       result = "yes"
	resultRefused  result = "no" // *StateError
	resultNotFound result = "absent"
)

// response is what a call returned.
type response struct {
	Result result
	Status state  // in a result of Get, and in a *StateError
	Words  string // the output, in a result of Get
	Again  bool   // an earlier try returned ErrUnavailable: the operation may have taken effect twice
}

// state is the status of a run in a response, or empty.
type state durable.Status

func (s state) isOneOf(some ...durable.Status) bool { return slices.Contains(some, durable.Status(s)) }

func (s state) ended() bool {
	return s.isOneOf(durable.StatusCompleted, durable.StatusFailed, durable.StatusCancelled, durable.StatusExpired)
}

// modelRun is the model of a target. A target ends by itself, and no operation marks the moment: ended is set by the
// first response that shows the end.
type modelRun struct {
	exists, paused, cancelled bool
	words                     string // the signals that were sent to it, each once, in order, separated by spaces
	count                     int
	first                     string // the first wantedSignals words, which the target receives; empty until there are that many
	ended                     state
}

func (r modelRun) has(word string) bool {
	return slices.Contains(strings.Fields(r.words), word)
}

// model defines which responses are possible. A target receives signals in the order in which they were
// sent, completes with them if it is not cancelled first, and does not change after its end.
var model = porcupine.Model{
	Init: func() any { return modelRun{} },
	Step: func(s, q, a any) (bool, any) {
		next := s.(modelRun)
		ok := next.applyResponse(q.(request), a.(response))
		return ok, next
	},
	DescribeOperation: func(q, a any) string { return fmt.Sprintf("%+v → %+v", q, a) },
}

// applyResponse reports whether the response is possible, and updates the run.
func (r *modelRun) applyResponse(q request, a response) bool {
	if a.Result == resultNotFound {
		return !r.exists && q.Verb != verbStart
	}
	if q.Verb == verbStart {
		r.exists = true
		return a.Result == resultOK
	}
	if !r.exists {
		return false
	}
	if a.Status.ended() {
		return r.mayHaveEnded(a)
	}
	if q.Verb == verbSignal && a.Result == resultOK && r.has(q.Word) {
		return true // a repeated signal is acknowledged in every state
	}
	if q.Verb == verbCancel && a.Result == resultOK && r.ended.isOneOf(durable.StatusCancelled) {
		return true // a repeated cancel is acknowledged
	}
	if r.ended != "" {
		return false // every operation on a run that has ended shows its end
	}
	switch q.Verb {
	case verbSignal:
		if a.Result == resultOK {
			r.words += q.Word + " "
			if r.count++; r.count == wantedSignals {
				r.first = r.words
			}
		}
		return a.Result == resultOK
	case verbPause:
		if a.Result == resultRefused {
			return r.cancelled
		}
		r.paused = true
		return !r.cancelled || a.Again
	case verbResume:
		was := r.paused
		r.paused = false
		return r.cancelled || a.Again || was == (a.Result == resultOK)
	case verbCancel:
		r.cancelled = true
		return a.Result == resultOK
	}
	switch {
	case r.cancelled:
		return true
	case r.paused: // a run that is being executed is suspended a moment later
		return a.Status.isOneOf(durable.StatusPaused, durable.StatusRunning)
	}
	return a.Status.isOneOf(durable.StatusPending, durable.StatusRunning, durable.StatusWaiting)
}

// mayHaveEnded reports whether the run may have ended as the response shows.
func (r *modelRun) mayHaveEnded(a response) bool {
	if r.ended != "" && r.ended != a.Status {
		return false
	}
	r.ended = a.Status
	switch {
	case a.Status.isOneOf(durable.StatusCancelled):
		return r.cancelled
	case a.Status.isOneOf(durable.StatusCompleted):
		return !r.cancelled && r.count >= wantedSignals && (a.Words == "" || a.Words == fmt.Sprint(strings.Fields(r.first)))
	}
	return false
}

// checkLinearizable reports whether the responses for each target are possible if its operations
// took effect one after the other, each between its call and its return.
func (t *clients) checkLinearizable(limit time.Duration) (result string, operations int, violations []string) {
	result = "ok"
	began := time.Now()
	for _, to := range t.all {
		operations += len(to.operations)
		switch porcupine.CheckOperationsTimeout(model, to.operations, max(time.Second, limit-time.Since(began))) {
		case porcupine.Illegal:
			result = "illegal"
			violations = append(violations, fmt.Sprintf("the responses for %s are not linearizable:%s", to.id, formatOperations(to.operations)))
		case porcupine.Unknown:
			if result == "ok" {
				result = "unknown"
			}
			violations = append(violations, fmt.Sprintf("porcupine did not decide in time whether the responses for %s are linearizable:%s", to.id, formatOperations(to.operations)))
		}
	}
	return result, operations, violations
}

// formatOperations returns a line for each operation, in the order of their calls.
func formatOperations(all []porcupine.Operation) (text string) {
	slices.SortFunc(all, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range all {
		text += fmt.Sprintf("\n\t\t%v to %v, client %d: %s",
			time.Duration(o.Call).Round(time.Microsecond), time.Duration(o.Return).Round(time.Microsecond), o.ClientId, model.DescribeOperation(o.Input, o.Output))
	}
	return text
}
