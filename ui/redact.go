package ui

import (
	"encoding/json/jsontext"
	"slices"

	"github.com/seed8ec063be/durable"
)

// FieldKind tells what kind of text a [Field] has, such as an input or an error.
type FieldKind string

// The kinds of fields that [Redact] sees.
const (
	FieldInput      FieldKind = "input"
	FieldOutput     FieldKind = "output" // the output of a run
	FieldStepResult FieldKind = "result" // the result of a step
	FieldError      FieldKind = "error"  // the message of an error, including the reason why a run is held
	FieldStack      FieldKind = "stack"
	FieldTag        FieldKind = "tag"
)

// Field is a text that the dashboard is about to show.
type Field struct {
	Kind     FieldKind
	Workflow string // empty in lists of attempts
	Name     string // the step of a result or an error, or the key of a tag; else empty
	Value    string // the text; for payloads, JSON
}

// Redact sets a function that replaces the shown text of inputs, outputs, results, errors, stacks and tags. To show a text as
// it is, the function f returns Field.Value. A replacement of a payload that is not JSON is shown as a JSON string. The
// function f is called concurrently.
func Redact(f func(Field) string) Option {
	return func(s *dashboard) error { s.redact = f; return nil }
}

// hiddenPayload is shown in place of payloads that may not be seen.
var hiddenPayload = jsontext.Value(`"(hidden)"`)

// redactor hides the texts and payloads of one workflow's runs that one request may not see.
type redactor struct {
	redact        func(Field) string // may be nil
	workflow      string
	showsPayloads bool // the request may see payloads
}

func (d *redactor) redactText(kind FieldKind, name string, text *string) {
	if d.redact != nil && *text != "" {
		*text = d.redact(Field{kind, d.workflow, name, *text})
	}
}

func (d *redactor) redactPayload(kind FieldKind, name string, value *jsontext.Value) {
	switch {
	case len(*value) == 0:
	case !d.showsPayloads:
		*value = hiddenPayload
	case d.redact != nil:
		text := string(*value)
		d.redactText(kind, name, &text)
		if *value = jsontext.Value(text); !value.IsValid() {
			*value, _ = jsontext.AppendQuote(nil, text) // an error only says that the text is no UTF-8; it is replaced
		}
	}
}

func (d *redactor) redactRun(r *durable.RunInfo) {
	d.redactPayload(FieldInput, "", &r.Input)
	d.redactPayload(FieldOutput, "", &r.Output)
	r.Err = d.redactRunError(r.Err)
	if r.Diverged && r.PausedBy == "" || r.Status != durable.StatusPaused { // otherwise the reason was given by a person
		d.redactText(FieldError, "", &r.Reason)
	}
	r.LastFailure = d.redactAttempt(r.LastFailure)
	if w := r.RetryWait; w != nil {
		w.Err = d.redactRunError(w.Err)
	}
	for i := range r.OpenCalls {
		r.OpenCalls[i].LastFailure = d.redactAttempt(r.OpenCalls[i].LastFailure)
	}
	for key, value := range r.Tags {
		d.redactText(FieldTag, key, &value)
		r.Tags[key] = value
	}
}

func (d *redactor) redactRunError(e *durable.RunError) *durable.RunError {
	if e == nil || d.redact == nil {
		return e
	}
	c := *e
	d.redactText(FieldError, c.Step, &c.Message)
	d.redactText(FieldStack, c.Step, &c.Stack)
	return &c
}

func (d *redactor) redactStepError(name string, e *durable.StepError) *durable.StepError {
	if e == nil || d.redact == nil {
		return e
	}
	c := *e
	d.redactText(FieldError, name, &c.Message)
	d.redactText(FieldStack, name, &c.Stack)
	return &c
}

func (d *redactor) redactAttempt(a *durable.FailedAttempt) *durable.FailedAttempt {
	if a == nil || d.redact == nil {
		return a
	}
	c := *a
	c.Err = d.redactStepError(c.Step, c.Err)
	return &c
}

func (d *redactor) redactCheckpoint(c *durable.Checkpoint) {
	d.redactPayload(FieldStepResult, c.Name, &c.Output)
	c.Err = d.redactStepError(c.Name, c.Err)
	c.FirstFailure, c.LastFailure = d.redactAttempt(c.FirstFailure), d.redactAttempt(c.LastFailure)
}

// redactDivergences returns the divergences with redacted reasons, which are texts of errors. Others may be shown the same divergences.
func (d *redactor) redactDivergences(all []durable.Divergence) []durable.Divergence {
	own := slices.Clone(all)
	for i := range own {
		d.redactText(FieldError, own[i].Call, &own[i].Reason)
	}
	return own
}

func (d *redactor) redactGenerations(all []durable.Generation) {
	for i := range all {
		g := &all[i]
		d.redactPayload(FieldInput, "", &g.Input)
		d.redactPayload(FieldOutput, "", &g.Output)
		g.Err = d.redactRunError(g.Err)
	}
}
