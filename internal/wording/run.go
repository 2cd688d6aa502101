package wording

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// Status returns the status with what was requested of the run, as in "running, cancel requested".
func Status(r *durable.RunInfo) string {
	if r.Requested != "" {
		return fmt.Sprintf("%s, %s requested", r.Status, r.Requested)
	}
	return string(r.Status)
}

// RunDetail returns the most important thing to know about a run, in one line: why it failed, is paused, was held or is retried.
func RunDetail(r *durable.RunInfo) string {
	switch {
	case r.Err != nil:
		return Failure(r.Err.Step, r.Err.Message)
	case r.Reason != "":
		return ReasonAndActor(r.Reason, r.PausedBy)
	case r.RetryWait != nil:
		return "waits for its retry: " + Failure(r.RetryWait.Err.Step, r.RetryWait.Err.Message)
	case r.Crashes > 0:
		return Count(r.Crashes, "crash", "crashes")
	}
	return ""
}

// Failure returns the message of an error, with the step that failed unless the message names it.
func Failure(step, message string) string {
	if step != "" && !strings.Contains(message, step) {
		return step + ": " + message
	}
	return message
}

// Fact is one thing to know about a run, in words.
type Fact struct {
	Label, Text string
	Tone        Tone
}

// Tone is how much a fact matters.
type Tone int8

// The tones.
const (
	Neutral Tone = iota
	Warning
	Bad
)

// WaitFacts returns what a run waits for and what keeps it, in words.
func WaitFacts(now time.Time, r *durable.RunInfo) (facts []Fact) {
	add := func(label, text string, tone Tone) { facts = append(facts, Fact{label, text, tone}) }
	switch {
	case r.Diverged && r.PausedBy != "": // the reason is that of the pause
		add("Held", PastAge(now, r.PausedAt)+", because the code does not fit its history", Bad)
		add("Paused", WithReason("until it is resumed", r.Reason, r.PausedBy), Warning)
	case r.Diverged:
		add("Held", WithReason(PastAge(now, r.PausedAt), cmp.Or(r.Reason, "the code does not fit its history"), ""), Bad) // the reason says it, too
	case r.Status == durable.StatusPaused:
		add("Paused", WithReason(PastAge(now, r.PausedAt), r.Reason, r.PausedBy), Warning)
	case r.Reason != "":
		add("Held", r.Reason, Warning)
	}
	if c := r.Cancellation; c != nil {
		add("Cancel", WithReason("requested "+PastAge(now, c.At), c.Reason, c.Actor), Warning)
	}
	if r.NoWorker {
		add("No worker", "it is due, and no live worker executes workflow "+r.Workflow+" in queue "+r.Queue+": start one", Bad)
	}
	if w := r.VersionWait; w != nil {
		other := ""
		if len(w.Diverged) > 0 {
			other = ", whose code fits (not " + strings.Join(w.Diverged, ", ") + ")"
		}
		add("Version", "it waits for a worker of version "+w.Version+" or a later one"+other+"; others take it from "+AgeAndExact(now, w.Until), Warning)
	}
	if r.KeyWait != nil {
		add("Waits", r.KeyWait.String(), Neutral)
	}
	if r.Place != nil {
		add("Queue place", r.Place.String(), Neutral)
	}
	if r.Status == durable.StatusPending && r.WakeAt.After(now) {
		add("Due", AgeAndExact(now, r.WakeAt), Neutral)
	}
	if w := r.RetryWait; w != nil {
		add("Run retry", RetryWait(now, w), Bad)
	}
	for _, call := range r.OpenCalls {
		add("Waits", OpenCall(now, &call), Neutral)
	}
	if a := r.LastFailure; a != nil {
		add("Last failure", Attempt(now, a), Bad)
	}
	if r.Crashes > 0 {
		add("Crashes", fmt.Sprintf("%s since its last new checkpoint", Count(r.Crashes, "crash", "crashes")), Warning)
	}
	if l := r.LastLeaseLoss; l != nil {
		add("Lost", fmt.Sprintf("%s by worker %s", PastAge(now, l.At), l.Worker), Neutral)
	}
	return facts
}

// openCallTexts says what a run waits for, by the kind of the call that has no outcome. Other kinds are named.
var openCallTexts = map[durable.Kind]string{
	durable.KindReceive: "for signal %s", durable.KindSleep: "in sleep %s", durable.KindChild: "for child %s",
}

// OpenCall describes a call that has no outcome yet: "for signal approve since 2h, times out in 22h (2026-11-24T10:00:00Z)".
func OpenCall(now time.Time, c *durable.OpenCall) string {
	text := string(c.Kind) + " " + c.Name
	if format, ok := openCallTexts[c.Kind]; ok {
		text = fmt.Sprintf(format, c.Name)
	}
	text += " since " + strings.TrimSuffix(PastAge(now, c.Since), " ago")
	if c.Attempts > 1 {
		text += fmt.Sprintf(", attempt %d", c.Attempts)
	}
	if !c.Until.IsZero() {
		verb := "until"
		if c.Kind == durable.KindReceive {
			verb = "times out"
		}
		text += fmt.Sprintf(", %s %s (%s)", verb, Age(now, c.Until), ExactTime(c.Until))
	}
	if c.Limit != "" {
		text += fmt.Sprintf(", for a permit of limit %s", c.Limit)
		if c.LimitKey != "" {
			text += " for key " + c.LimitKey
		}
		text += fmt.Sprintf(" with %d before it", c.Before)
	}
	return text
}

// RetryWait describes the wait of a run for its retry: "due in 10m (2026-11-24T10:00:00Z), after failure 2 in a row (*pkg.Error): charge: no money".
func RetryWait(now time.Time, w *durable.RetryWait) string {
	after := "after it failed"
	if w.Failures > 0 {
		after = fmt.Sprintf("after failure %d in a row", w.Failures)
	}
	if w.Err.Type != "" {
		after += " (" + w.Err.Type + ")"
	}
	return fmt.Sprintf("due %s (%s), %s: %s", Age(now, w.Until), ExactTime(w.Until), after, Failure(w.Err.Step, w.Err.Message))
}

// Attempt describes an attempt that failed or was interrupted.
func Attempt(now time.Time, a *durable.FailedAttempt) string {
	what := "was interrupted"
	if a.Err != nil {
		what = "failed: " + a.Err.Message
	}
	return fmt.Sprintf("attempt %d of %s, %s, %s", a.Attempt, a.Step, PastAge(now, FirstTime(a.EndedAt, a.StartedAt)), what)
}

// DivergedInput stands for the call of a divergence of which the input is what does not fit.
const DivergedInput = "its input"

// DivergedCall returns what of a run does not fit the code: a call, or the input if the name of the call is empty.
func DivergedCall(name string) string {
	if name == "" {
		return DivergedInput
	}
	return fmt.Sprintf("call %q", name)
}
