package ui

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// actForm holds the fields of an act, from a form or from a JSON object.
type actForm struct {
	url.Values
	hidesOtherRuns bool           // the reply must not name other runs, because some may be hidden
	zone           *time.Location // of times without a zone
}

// newActForm returns the form with these fields.
func (v *requestView) newActForm(fields url.Values) actForm {
	return actForm{fields, v.hasLimitedVisibility(), v.at.Location()}
}

// text returns a field that a person wrote, such as a duration or a reason, without the spaces around it. To read an identifier, use Get,
// because spaces belong to identifiers.
func (f actForm) text(name string) string { return strings.TrimSpace(f.Get(name)) }

// parsePayload returns the JSON of a field; null if it is empty.
func (f actForm) parsePayload(name string) (jsontext.Value, error) {
	value := jsontext.Value(f.text(name))
	if len(value) == 0 {
		return jsontext.Value("null"), nil
	}
	if !value.IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("The %s is no JSON. A text is written with quotes, as in \"yes\".", name)}
	}
	return value, nil
}

// actFunc performs an act on its target, and returns what it did in words.
type actFunc func(ctx context.Context, e *durable.Engine, target string, f actForm, opts []durable.ControlOption) (done string, err error)

// actOutcome is the reply to an act.
type actOutcome struct {
	Verb   string
	Target string           // the run, queue, limit, schedule or worker
	DryRun bool             // nothing was changed
	Done   string           // what was done, or would be, in words
	run    *durable.RunInfo // nil unless the target is a run
}

// Name returns the name of the target for people: the ID of a run, which the form names by its UUID.
func (o *actOutcome) Name() string {
	if o.run != nil {
		return o.run.ID
	}
	return o.Target
}

// performForm performs the act of a form. Afterwards the browser goes to the page of what was changed.
func (s *dashboard) performForm(w http.ResponseWriter, r *http.Request, v *requestView) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f := v.newActForm(r.PostForm)
	done, err := v.performAct(f)
	if err != nil {
		return err
	}
	if done.DryRun {
		return v.writePage(w, "plan", http.StatusOK, pageFrame{Title: "Preview", Section: "/runs", Data: newRepairPreview(done, f)})
	}
	http.Redirect(w, r, v.URL(pathAfterAct(f, done)), http.StatusSeeOther)
	return nil
}

// maxForm is the largest size of a form, in bytes. A form with an escaped payload of the default Config.MaxPayload fits.
const maxForm = 16 << 20

// parseForm reads the form of a request.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	if _, isTooLong := errors.AsType[*http.MaxBytesError](err); isTooLong {
		return &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("The form is longer than %d MiB, so nothing was done: shorten its fields.", maxForm>>20)}
	}
	if err != nil {
		return &statusError{http.StatusBadRequest, "The form was not understood: " + err.Error()}
	}
	return nil
}

// pathAfterAct returns the page to show after an act.
func pathAfterAct(f actForm, done *actOutcome) string {
	notice := url.Values{"did": {done.Verb}}
	for kind, path := range map[string]string{paramTargetQueue: "/queues", paramTargetLimit: "/limits", paramTargetSchedule: "/schedules", paramTargetWorker: "/workers"} {
		if f.Has(kind) {
			return path + "?" + notice.Encode()
		}
	}
	switch {
	case done.Verb == "delete":
		return "/runs?" + notice.Encode()
	case done.Verb == "fork" && f.Get("new_id") != "":
		return runPath(f.Get("new_id"))
	}
	return runPath(done.Target) + "&" + notice.Encode()
}

// performAct performs an act for the request, if it is permitted.
func (v *requestView) performAct(f actForm) (*actOutcome, error) {
	if err := f.normalizeFlags(); err != nil {
		return nil, err
	}
	verb := f.Get("verb")
	acts, action, err := f.parseTarget()
	if err != nil {
		return nil, err
	}
	action.Verb = Verb(verb)
	done := &actOutcome{Verb: verb, DryRun: f.Has("dry_run"), Target: cmp.Or(action.Run, action.Queue, action.Limit, action.Schedule, action.Worker)}
	if acts[verb] == nil {
		return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("There is no act %q for this.", verb)}
	}
	if done.DryRun && !(f.Has(paramTargetRun) && previewableVerbs[verb]) {
		return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("The act %q has no preview.", verb)}
	}
	if !v.AllowsActs() { // before anything is read
		_, err := v.authorizeAction(v.request, action)
		return nil, err
	}
	if err := v.checkMayChange(f); err != nil {
		return nil, err
	}
	var run *visibleRun
	target := done.Target
	if f.Has(paramTargetRun) {
		if run, err = v.findRun(done.Target); err != nil {
			return nil, err
		}
		// The act is on the run on which Authorize decides, even if another run takes over the ID meanwhile.
		action, done.run, target = run.newAction(action.Verb), run.RunInfo, run.RunID
	}
	action.Fields = f.actionFields()
	actor, err := v.authorizeAct(action)
	if err != nil {
		return nil, err
	}
	if err := f.checkVerbFields(verb); err != nil {
		return nil, err
	}
	opts := []durable.ControlOption{durable.Actor(actor)}
	if reason := f.text("reason"); reason != "" {
		opts = append(opts, durable.Reason(reason))
	}
	if done.DryRun {
		opts = append(opts, durable.DryRun())
	}
	if done.Done, err = acts[verb](v.ctx(), v.engine, target, f, opts); err != nil {
		if run != nil && v.hasLimitedVisibility() && errors.Is(err, durable.ErrState) { // its text may name the parent or a child
			return nil, &statusError{http.StatusConflict, fmt.Sprintf("The run is %s: it, its parent or its children do not allow this now.", run.Status)}
		}
		return nil, err
	}
	return done, nil
}

// newControlAct returns an act that pauses, resumes, cancels or terminates a run.
func newControlAct(call func(*durable.Engine, context.Context, string, ...durable.ControlOption) (durable.ControlResult, error), more func(actForm) ([]durable.ControlOption, error)) actFunc {
	return func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (string, error) {
		if more != nil {
			given, err := more(f)
			if err != nil {
				return "", err
			}
			opts = append(opts, given...)
		}
		result, err := call(e, ctx, id, opts...)
		return describeControl(result), err
	}
}

func describeControl(r durable.ControlResult) string {
	text := wording.Count(r.Done, "run", "runs") + " changed"
	if r.Requested > 0 {
		text += fmt.Sprintf(", %d requested: they follow when their current step or their compensations have finished", r.Requested)
	}
	return text
}

// newRepairAct returns an act that repairs a run.
func newRepairAct(call func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (*durable.Repaired, error)) actFunc {
	return func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (string, error) {
		if f.Has("interrupt_steps") {
			opts = append(opts, durable.InterruptSteps())
		}
		repaired, err := call(ctx, e, id, f, opts)
		if ctx.Err() != nil && errors.Is(err, durable.ErrState) { // a running step has not finished in time
			return "", &statusError{http.StatusConflict, fmt.Sprintf("%v. The dashboard waits for at most %s: tick \"interrupt running steps\", which is the field interrupt_steps.", err, wording.RoughDuration(readTimeout))}
		}
		if err != nil {
			return "", err
		}
		return describeRepair(repaired, f.hidesOtherRuns), nil
	}
}

// describeRepair says what a repair did, or would do.
func describeRepair(r *durable.Repaired, bounded bool) string {
	lines := []string{fmt.Sprintf("Generation %d of run %s, with %s kept.", r.Generation, r.ID, wording.Count(r.Kept, "checkpoint", "checkpoints"))}
	names := func(what string, all []string) {
		if len(all) > 0 {
			lines = append(lines, what+": "+wording.Escape(strings.Join(all, ", ")))
		}
	}
	names("Made again", r.Dropped)
	names("Of these, with new idempotency keys", r.Renewed)
	names("Given a value", r.Corrected)
	if bounded {
		return strings.Join(lines, "\n")
	}
	names("Children that are cancelled", r.Cancelled)
	for _, child := range r.Children {
		lines = append(lines, "Child: "+describeRepair(child, false))
	}
	return strings.Join(lines, "\n")
}

// repairStartOption returns the option that tells where a repair begins, or none.
func repairStartOption(f actForm) []durable.ControlOption {
	switch {
	case f.Has("from_end"):
		return []durable.ControlOption{durable.FromEnd()}
	case f.Get("from") != "":
		return []durable.ControlOption{durable.From(f.Get("from"))}
	}
	return nil
}

// requiredField returns an identifier that the form must have.
func requiredField(f actForm, name string) (string, error) {
	if text := f.Get(name); text != "" {
		return text, nil
	}
	return "", &statusError{http.StatusBadRequest, fmt.Sprintf("The field %q is empty.", name)}
}
