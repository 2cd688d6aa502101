package ui

import (
	"encoding/json/jsontext"

	"github.com/seed8ec063be/durable"
)

// FieldKind tells what a [Field] is.
type FieldKind string

// The kinds of fields that [Redact] sees.
const (
	FieldInput  FieldKind = "input"
	FieldOutput FieldKind = "output" // of a run
	FieldResult FieldKind = "result" // of a step
	FieldError  FieldKind = "error"  // the message of an error
	FieldStack  FieldKind = "stack"
	FieldTag    FieldKind = "tag"
)

// Field is a text that is about to be shown.
type Field struct {
	Kind     FieldKind
	Workflow string // empty in lists of attempts
	Name     string // the step of a result or an error, or the key of a tag; else empty
	Value    string // for payloads, JSON
}

// Redact sets a function that replaces the shown text of inputs, outputs, results, errors, stacks and tags. It returns
// Field.Value to show it as it is. A replacement of a payload that is not JSON is shown as a JSON string. The function is called
// concurrently.
func Redact(f func(Field) string) Option {
	return func(s *server) error { s.redact = f; return nil }
}

// hidden is shown in place of payloads that may not be seen.
var hidden = jsontext.Value(`"(hidden)"`)

// redactor hides what one request may not see of one workflow's runs.
type redactor struct {
	f        func(Field) string // may be nil
	workflow string
	payloads bool // they may be seen
}

func (d *redactor) text(kind FieldKind, name string, text *string) {
	if d.f != nil && *text != "" {
		*text = d.f(Field{kind, d.workflow, name, *text})
	}
}

func (d *redactor) payload(kind FieldKind, name string, value *jsontext.Value) {
	switch {
	case len(*value) == 0:
	case !d.payloads:
		*value = hidden
	case d.f != nil:
		text := string(*value)
		d.text(kind, name, &text)
		if *value = jsontext.Value(text); !value.IsValid() {
			*value, _ = jsontext.AppendQuote(nil, text) // an error only says that the text is no UTF-8; it is replaced
		}
	}
}

func (d *redactor) run(r *durable.RunInfo) {
	d.payload(FieldInput, "", &r.Input)
	d.payload(FieldOutput, "", &r.Output)
	r.Err = d.runError(r.Err)
	r.LastFailure = d.attempt(r.LastFailure)
	for i := range r.OpenCalls {
		r.OpenCalls[i].LastFailure = d.attempt(r.OpenCalls[i].LastFailure)
	}
	for key, value := range r.Tags {
		d.text(FieldTag, key, &value)
		r.Tags[key] = value
	}
}

func (d *redactor) runError(e *durable.RunError) *durable.RunError {
	if e == nil || d.f == nil {
		return e
	}
	c := *e
	d.text(FieldError, c.Step, &c.Message)
	d.text(FieldStack, c.Step, &c.Stack)
	return &c
}

func (d *redactor) stepError(name string, e *durable.StepError) *durable.StepError {
	if e == nil || d.f == nil {
		return e
	}
	c := *e
	d.text(FieldError, name, &c.Message)
	d.text(FieldStack, name, &c.Stack)
	return &c
}

func (d *redactor) attempt(a *durable.FailedAttempt) *durable.FailedAttempt {
	if a == nil || d.f == nil {
		return a
	}
	c := *a
	c.Err = d.stepError(c.Step, c.Err)
	return &c
}

func (d *redactor) checkpoint(c *durable.Checkpoint) {
	d.payload(FieldResult, c.Name, &c.Output)
	c.Err = d.stepError(c.Name, c.Err)
	c.FirstFailure, c.LastFailure = d.attempt(c.FirstFailure), d.attempt(c.LastFailure)
}

func (d *redactor) generations(all []durable.Generation) {
	for i := range all {
		g := &all[i]
		d.payload(FieldInput, "", &g.Input)
		d.payload(FieldOutput, "", &g.Output)
		g.Err = d.runError(g.Err)
	}
}
