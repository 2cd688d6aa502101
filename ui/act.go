package ui

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// form is what an act is given: the fields of a form, or of a JSON object.
type form struct {
	url.Values
	bounded bool // the reply must not name other runs, because some may be hidden
}

// text returns a field that a person wrote, such as a duration or a reason, without the spaces around it. Identifiers are read with Get: spaces
// belong to them.
func (f form) text(name string) string { return strings.TrimSpace(f.Get(name)) }

// payload returns the JSON of a field; null if it is empty.
func (f form) payload(name string) (jsontext.Value, error) {
	value := jsontext.Value(f.text(name))
	if len(value) == 0 {
		return jsontext.Value("null"), nil
	}
	if !value.IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, &problem{http.StatusBadRequest, fmt.Sprintf("The %s is no JSON. A text is written with quotes, as in \"yes\".", name)}
	}
	return value, nil
}

// do performs an act on its target, and returns what it did in words.
type do func(ctx context.Context, e *durable.Engine, target string, f form, opts []durable.ControlOption) (done string, err error)

// outcome is the reply to an act.
type outcome struct {
	Verb   string
	Target string           // the run, queue, limit, schedule or worker
	DryRun bool             // nothing was changed
	Done   string           // what was done, or would be, in words
	run    *durable.RunInfo // nil unless the target is a run
}

// Name returns the name of the target for people: the ID of a run, which the form names by its UUID.
func (o *outcome) Name() string {
	if o.run != nil {
		return o.run.ID
	}
	return o.Target
}

// act performs the act of a form. Afterwards the browser goes to the page of what was changed.
func (s *server) act(w http.ResponseWriter, r *http.Request, v *view) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &problem{http.StatusBadRequest, "The form was not understood: " + err.Error()}
	}
	f := form{r.PostForm, v.bounded()}
	done, err := v.perform(f)
	if err != nil {
		return err
	}
	if done.DryRun {
		return v.show(w, "plan", http.StatusOK, frame{Title: "Preview", Section: "/runs", Data: newPlan(done, f)})
	}
	http.Redirect(w, r, v.URL(pathAfter(f, done)), http.StatusSeeOther)
	return nil
}

// maxForm bounds a form, in bytes: the largest payload by default, escaped.
const maxForm = 16 << 20

// pathAfter returns the page to show after an act.
func pathAfter(f form, done *outcome) string {
	notice := url.Values{"did": {done.Verb}}
	for kind, path := range map[string]string{kindQueue: "/queues", kindLimit: "/limits", kindSchedule: "/schedules", kindWorker: "/workers"} {
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

// The fields that name the target of an act. One of them is given.
const (
	kindRun      = "run"
	kindQueue    = "queue_name"
	kindLimit    = "limit_name"
	kindSchedule = "schedule"
	kindWorker   = "worker"
)

// perform performs an act for the request, if it is permitted.
func (v *view) perform(f form) (*outcome, error) {
	verb := f.Get("verb")
	done := &outcome{Verb: verb, DryRun: f.Has("dry_run")}
	var acts map[string]do
	action := Action{Verb: Verb(verb)}
	switch {
	case f.Has(kindQueue):
		acts, done.Target = queueActs, f.Get(kindQueue)
		action.Queue = done.Target
	case f.Has(kindLimit):
		acts, done.Target = limitActs, f.Get(kindLimit)
		action.Limit = done.Target
	case f.Has(kindSchedule):
		acts, done.Target = scheduleActs, f.Get(kindSchedule)
		action.Schedule = done.Target
	case f.Has(kindWorker):
		acts, done.Target = workerActs, f.Get(kindWorker)
		action.Worker = done.Target
	default:
		acts, done.Target = runActs, f.Get(kindRun)
	}
	if acts[verb] == nil {
		return nil, &problem{http.StatusBadRequest, fmt.Sprintf("There is no act %q for this.", verb)}
	}
	if done.DryRun && !(f.Has(kindRun) && previewed[verb]) {
		return nil, &problem{http.StatusBadRequest, fmt.Sprintf("The act %q has no preview.", verb)}
	}
	if !v.Acts() { // before anything is read
		_, err := v.permit(v.request, action)
		return nil, err
	}
	if err := v.mayChange(f); err != nil {
		return nil, err
	}
	var run *seen
	if f.Has(kindRun) {
		var err error
		if run, err = v.find(done.Target); err != nil {
			return nil, err
		}
		action, done.run = run.action(action.Verb), run.RunInfo
	}
	actor, err := v.permit(v.request, action)
	if err != nil {
		return nil, err
	}
	opts := []durable.ControlOption{durable.Actor(actor)}
	if reason := f.text("reason"); reason != "" {
		opts = append(opts, durable.Reason(reason))
	}
	if done.DryRun {
		opts = append(opts, durable.DryRun())
	}
	if done.Done, err = acts[verb](v.ctx(), v.engine, done.Target, f, opts); err != nil {
		if run != nil && v.bounded() && errors.Is(err, durable.ErrState) { // its text may name the parent or a child
			return nil, &problem{http.StatusConflict, fmt.Sprintf("The run is %s: it, its parent or its children do not allow this now.", run.Status)}
		}
		return nil, err
	}
	return done, nil
}

// controlAct is an act that pauses, resumes, cancels or terminates a run.
func controlAct(call func(*durable.Engine, context.Context, string, ...durable.ControlOption) (durable.ControlResult, error), more func(form) []durable.ControlOption) do {
	return func(ctx context.Context, e *durable.Engine, id string, f form, opts []durable.ControlOption) (string, error) {
		if more != nil {
			opts = append(opts, more(f)...)
		}
		result, err := call(e, ctx, id, opts...)
		return controlText(result), err
	}
}

func controlText(r durable.ControlResult) string {
	text := wording.Count(r.Done, "run", "runs") + " changed"
	if r.Requested > 0 {
		text += fmt.Sprintf(", %d requested: they follow when their current step or their compensations have finished", r.Requested)
	}
	return text
}

// repairAct is an act that repairs a run.
func repairAct(call func(ctx context.Context, e *durable.Engine, id string, f form, opts []durable.ControlOption) (*durable.Repaired, error)) do {
	return func(ctx context.Context, e *durable.Engine, id string, f form, opts []durable.ControlOption) (string, error) {
		if f.Has("interrupt_steps") {
			opts = append(opts, durable.InterruptSteps())
		}
		repaired, err := call(ctx, e, id, f, opts)
		if err != nil {
			return "", err
		}
		return repairText(repaired, f.bounded), nil
	}
}

// repairText says what a repair did, or would do.
func repairText(r *durable.Repaired, bounded bool) string {
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
		lines = append(lines, "Child: "+repairText(child, false))
	}
	return strings.Join(lines, "\n")
}

// fromOption returns where a repair begins.
func fromOption(f form) []durable.ControlOption {
	switch {
	case f.Has("from_end"):
		return []durable.ControlOption{durable.FromEnd()}
	case f.Get("from") != "":
		return []durable.ControlOption{durable.From(f.Get("from"))}
	}
	return nil
}

// required returns an identifier that the form must have.
func required(f form, name string) (string, error) {
	if text := f.Get(name); text != "" {
		return text, nil
	}
	return "", &problem{http.StatusBadRequest, fmt.Sprintf("The field %q is empty.", name)}
}
