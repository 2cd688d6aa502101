package ui

import (
	"errors"
	"net/http"

	"github.com/seed8ec063be/durable"
)

// Verb names what a request does. A request that changes something has a verb of durable.Verb or of the dashboard's forms:
// pause, resume, cancel, terminate, retry, signal, delete, and the others that docs/dashboard.md lists.
type Verb string

// VerbRead and VerbReadPayloads are the verbs of requests that change nothing.
const (
	VerbRead         Verb = "read"          // see pages, lists, histories and events, including streams of events
	VerbReadPayloads Verb = "read payloads" // see inputs, outputs and results of steps
)

// Action describes what a request is about to do. A field that does not apply to the request is empty.
type Action struct {
	Verb     Verb
	Run      string // the ID that addresses the run
	Workflow string // the workflow of the run, or of the runs of the schedule
	Queue    string // the queue of the run, or of the runs of the schedule; or the queue that is changed
	Limit    string
	Schedule string
	Worker   string // the ID of the worker that is changed
	Tags     map[string]string
	// Fields are the other fields of an action, by the names that docs/dashboard.md lists, such as the reason, to_queue,
	// new_id, tag_key and tag_value. Fields does not contain the JSON of value and payload.
	Fields map[string]string
}

// Changes reports whether the action changes something.
func (a Action) Changes() bool { return a.Verb != VerbRead && a.Verb != VerbReadPayloads }

// Authorize sets a function that decides what each request may do. The function f returns the name of the person, which is
// recorded as the actor of an action, or an error. If f returns an error, the dashboard refuses the request with status 403 and
// shows the error. The function f is called for reads, for payloads and for actions, possibly several times for one request,
// and concurrently.
//
// For a read of one run the Action contains the workflow, queue and tags of the run. For a list of runs, the Action contains no
// workflow, queue and tags; use [Visible] to bound lists. If the function f refuses only the reading of payloads, the dashboard
// shows pages without payloads.
//
// Without Authorize the dashboard is read-only and hides payloads, even for local clients, because behind a proxy every request
// seems local.
func Authorize(f func(r *http.Request, a Action) (actor string, err error)) Option {
	return func(s *dashboard) error {
		if f == nil {
			return errors.New("Authorize of nil: leave the option out for a dashboard that is read-only")
		}
		s.authorize = f
		return nil
	}
}

// Visible bounds the runs that a request may see, for example to the workflows of one team or the tag of one tenant. The
// conditions of Visible are combined with the conditions of the page. The conditions of Visible apply to lists, counts, groups
// of failures, events, trees and pages of single runs, none of which names a hidden run. For the request, the dashboard behaves
// as if hidden runs did not exist. A child is a run of its own: the dashboard hides a child that does not match the conditions,
// even if it shows the parent.
//
// With Visible, the dashboard shows only the queue that the conditions name, the schedules whose runs match the conditions, and
// the workers that execute the named workflow or claim from the named queue. With Visible, the dashboard shows no limits.
func Visible(f func(*http.Request) durable.Filter) Option {
	return func(s *dashboard) error { s.visible = f; return nil }
}

// authorizeAction returns the actor of a request, or the error of a refusal.
func (s *dashboard) authorizeAction(r *http.Request, a Action) (string, error) {
	switch {
	case a.Changes() && (s.readOnly || s.authorize == nil):
		return "", &statusError{http.StatusForbidden, "This dashboard is read-only."}
	case s.authorize != nil:
		actor, err := s.authorize(r, a)
		if err != nil {
			return "", &statusError{http.StatusForbidden, "Not permitted: " + err.Error()}
		}
		return actor, nil
	case a.Verb == VerbReadPayloads:
		return "", &statusError{http.StatusForbidden, "Payloads are hidden without ui.Authorize."}
	}
	return "", nil
}

// newRunAction returns an action on a run.
func newRunAction(v Verb, run *durable.RunInfo) Action {
	return Action{Verb: v, Run: run.ID, Workflow: run.Workflow, Queue: run.Queue, Tags: run.Tags}
}
