package ui

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
)

// bulkPreviewReply tells which runs an act on many runs would change.
type bulkPreviewReply struct {
	Verb       string
	Filter     map[string]any // frozen, for the portions
	Count      int            // how many runs were found
	More       bool           // there are more runs than Count
	Runs       []durable.RunInfo
	SearchedTo time.Time
}

// bulkBatchReply tells what one portion of an act on many runs did.
type bulkBatchReply struct {
	Verb       string
	Filter     map[string]any // frozen, for the next portion
	Changed    int
	Refused    []refusedRun
	Stopped    string // why the portion ended before all its runs were reached; empty: it did not
	Finished   bool   // there is no further portion
	Cursor     string // of the next portion
	SearchedTo time.Time
}

// refusedRun is a run for which an act was refused, and why.
type refusedRun struct{ ID, Error string }

// flagConditions are the conditions of a filter that are true or missing.
var flagConditions = []string{paramRoots, paramHeld}

// listConditions are the conditions of a filter that can have several values.
var listConditions = []string{paramStatus, paramPriority, paramParent}

// apiBulkPreview returns which runs an act on many runs would change. The address has the parameters of the preview's page.
func apiBulkPreview(v *requestView, q url.Values) (any, error) {
	b, err := v.parseBulk(q)
	if err != nil {
		return nil, err
	}
	found, err := v.listBulkRuns(b, mostCounted)
	if err != nil {
		return nil, err
	}
	return &bulkPreviewReply{
		Verb: b.verb.Name, Filter: b.jsonFilter(), Count: len(found.Runs), More: found.Next != "", Runs: found.Runs[:min(previewSize, len(found.Runs))],
		SearchedTo: found.SearchedTo,
	}, nil
}

// apiPerformBulkBatch performs an act on the next runs, for the fields of a JSON object.
func apiPerformBulkBatch(w http.ResponseWriter, r *http.Request, v *requestView) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	q, err := parseBulkFields(body)
	if err != nil {
		return err
	}
	b, err := v.parseBulk(q)
	if err != nil {
		return err
	}
	found, err := v.listBulkRuns(b, portionSize)
	if err != nil {
		return err
	}
	var done bulkBatchResult
	done.performOnPage(v, b, found, q.Get(paramReason))
	reply := &bulkBatchReply{Verb: b.verb.Name, Filter: b.jsonFilter(), Changed: done.changedCount, Stopped: done.stopReason, Finished: done.reachedLastRun}
	for _, run := range done.refusals {
		reply.Refused = append(reply.Refused, refusedRun{run.ID, run.Text})
	}
	if !reply.Finished {
		reply.Cursor = b.cursor
	}
	if done.reachedPageEnd {
		reply.SearchedTo = found.SearchedTo
	}
	writeJSON(w, http.StatusOK, reply)
	return nil
}

// jsonFilter returns the frozen filter in the form in which JSON shows it.
func (b *bulkAct) jsonFilter() map[string]any {
	filter := make(map[string]any, len(b.filterParams))
	for name, values := range b.filterParams {
		switch {
		case slices.Contains(flagConditions, name):
			filter[name] = true
		case slices.Contains(listConditions, name):
			filter[name] = values
		default:
			filter[name] = values[0]
		}
	}
	return filter
}

// parseBulkFields returns the fields of a JSON object as those of the form of a bulk act.
func parseBulkFields(body []byte) (url.Values, error) {
	var object struct {
		Verb, Cursor, Reason string
		Filter               map[string]jsontext.Value
	}
	err := json.Unmarshal(body, &object, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true))
	if err != nil {
		return nil, &statusError{http.StatusBadRequest, "the body is no JSON object with the fields verb, filter, reason and cursor: " + err.Error()}
	}
	q := url.Values{paramVerb: {object.Verb}, paramCursor: {object.Cursor}, paramReason: {object.Reason}}
	for name, value := range object.Filter {
		if !slices.Contains(filterParams, name) {
			return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("there is no condition %q of a filter: docs/dashboard.md names them", name)}
		}
		values, err := parseCondition(name, value)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			q[name] = values
		}
	}
	return q, nil
}

// parseCondition returns the values of a condition. An empty condition is refused, because without it the filter would match more runs than
// its author intended.
func parseCondition(name string, value jsontext.Value) ([]string, error) {
	items := []jsontext.Value{value}
	if slices.Contains(listConditions, name) && value.Kind() == jsontext.KindBeginArray {
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("the condition %q is no list: %v", name, err)}
		}
	}
	isFlag, texts := slices.Contains(flagConditions, name), make([]string, 0, len(items))
	for _, item := range items {
		text := string(item)
		switch kind := item.Kind(); {
		case isFlag && kind == jsontext.KindTrue:
			text = "yes"
		case isFlag && kind == jsontext.KindFalse:
			return nil, nil
		case !isFlag && kind == jsontext.KindNumber:
		case !isFlag && kind == jsontext.KindString:
			if err := json.Unmarshal(item, &text); err != nil {
				return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("the condition %q is no text: %v", name, err)}
			}
		default:
			text = ""
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 || slices.Contains(texts, "") {
		return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("the condition %q is %.40s: use a text; for roots and held, true; for status, priority and parent also a list. Leave a condition out that does not apply", name, value)}
	}
	return texts, nil
}

// readBody returns the body of a request with JSON.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	tooLong := new(http.MaxBytesError)
	if errors.As(err, &tooLong) {
		return nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d MiB, so nothing was done: shorten its fields", maxForm>>20)}
	}
	if err != nil {
		return nil, &statusError{http.StatusBadRequest, "the body was not read: " + err.Error()}
	}
	return body, nil
}
