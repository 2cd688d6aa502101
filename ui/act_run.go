package ui

import (
	"context"
	"net/http"
	"strconv"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// previewableVerbs are the verbs whose effect on a run can be previewed.
var previewableVerbs = map[string]bool{"retry": true, "fork": true, "override": true, "skip": true, "rerun": true, "delete": true}

// runActs are the acts on one run, by their verbs.
var runActs = map[string]actFunc{
	"pause": newControlAct((*durable.Engine).Pause, nil),
	"resume": newControlAct((*durable.Engine).Resume, func(f actForm) ([]durable.ControlOption, error) {
		if f.Has("freeze_timers") {
			return []durable.ControlOption{durable.FreezeTimers()}, nil
		}
		return nil, nil
	}),
	"cancel":    newControlAct((*durable.Engine).Cancel, actForm.parseCancelReach),
	"terminate": newControlAct((*durable.Engine).Terminate, nil),
	"retry": newRepairAct(func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (*durable.Repaired, error) {
		return e.Retry(ctx, id, append(opts, repairStartOption(f)...)...)
	}),
	"fork": newRepairAct(func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (*durable.Repaired, error) {
		opts = append(opts, repairStartOption(f)...)
		if newID := f.Get("new_id"); newID != "" {
			opts = append(opts, durable.NewID(newID))
		}
		return e.Fork(ctx, id, opts...)
	}),
	"override": newRepairAct(func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (*durable.Repaired, error) {
		value, err := f.parsePayload("value")
		if err != nil {
			return nil, err
		}
		return e.Override(ctx, id, f.Get("step"), value, append(opts, repairStartOption(f)...)...)
	}),
	"skip": newRepairAct(func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (*durable.Repaired, error) {
		value, err := f.parsePayload("value")
		if err != nil {
			return nil, err
		}
		return e.Skip(ctx, id, f.Get("step"), value, opts...)
	}),
	"rerun": newRepairAct(func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (*durable.Repaired, error) {
		return e.Rerun(ctx, id, f.Get("step"), opts...)
	}),
	"signal": func(ctx context.Context, e *durable.Engine, id string, f actForm, by []durable.ControlOption) (string, error) {
		name, err := requiredField(f, "name")
		if err != nil {
			return "", err
		}
		payload, err := f.parsePayload("payload")
		if err != nil {
			return "", err
		}
		var opts []durable.SignalOption
		for _, o := range by {
			opts = append(opts, o)
		}
		if key := f.Get("key"); key != "" {
			opts = append(opts, durable.SignalKey(key))
		}
		return "the signal was sent", e.Signal(ctx, id, name, payload, opts...)
	},
	"tag": func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (string, error) {
		key, err := requiredField(f, "tag_key")
		if err != nil {
			return "", err
		}
		return "the tag was set", e.SetTags(ctx, id, map[string]string{key: f.Get("tag_value")}, opts...)
	},
	"move": func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (string, error) {
		queue, err := requiredField(f, "to_queue")
		if err != nil {
			return "", err
		}
		return "the run was moved", e.MoveToQueue(ctx, id, queue, opts...)
	},
	"prioritize": func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (string, error) {
		n, err := strconv.Atoi(f.text("priority"))
		if err != nil {
			return "", &statusError{http.StatusBadRequest, "The priority is no number: use -2 to 2."}
		}
		return "the priority was set", e.SetPriority(ctx, id, n, opts...)
	},
	"expire": func(ctx context.Context, e *durable.Engine, id string, f actForm, opts []durable.ControlOption) (string, error) {
		d, err := wording.ParseDuration(f.text("timeout"))
		if err != nil {
			return "", &statusError{http.StatusBadRequest, err.Error()}
		}
		return "the timeout was set", e.SetTimeout(ctx, id, d, opts...)
	},
	"delete": func(ctx context.Context, e *durable.Engine, id string, _ actForm, opts []durable.ControlOption) (string, error) {
		deleted, err := e.Delete(ctx, id, opts...)
		return wording.Count(deleted.Deleted, "run", "runs") + " deleted with everything that is theirs; this cannot be undone", err
	},
}

// runAct is an act that the page of a run offers.
type runAct struct {
	Verb, Label, Help string
	Impossible        string // why it is; empty: it is possible
	Danger            bool
	Preview           bool
	Command           string // the same in a shell
}

// actsForRun returns the acts on a run, and for each act that is not possible the reason.
func (s *dashboard) actsForRun(r *durable.RunInfo) []runAct {
	over := ""
	if !r.EndedAt.IsZero() || r.Status == durable.StatusSuperseded {
		over = "The run has ended: it is " + string(r.Status) + "."
	}
	when := func(condition bool, reason string) string {
		if condition {
			return reason
		}
		return ""
	}
	first := func(reasons ...string) string {
		for _, reason := range reasons {
			if reason != "" {
				return reason
			}
		}
		return ""
	}
	cancelling := when(r.Cancellation != nil, "The run is being cancelled.")
	failed := r.Status == durable.StatusFailed || r.Status == durable.StatusExpired
	begun := when(!r.StartedAt.IsZero(), "The run has begun.")
	acts := []runAct{
		{
			Verb: "pause", Label: "Pause", Help: "No further step begins, here and in its descendants. A running step finishes first.",
			Impossible: first(over, cancelling, when(r.Status == durable.StatusPaused, "The run is paused already."), when(r.Requested == durable.VerbPause, "A pause is requested already.")),
		},
		{
			Verb: "resume", Label: "Resume", Help: "The run continues, with the descendants that were paused with it.",
			Impossible: first(over, when(r.Status != durable.StatusPaused && r.Requested != durable.VerbPause, "The run is not paused.")),
		},
		{
			Verb: "cancel", Label: "Cancel", Help: "Running steps end, compensations are executed, then the run is cancelled, with its descendants.",
			Impossible: first(over, cancelling),
		},
		{
			Verb: "retry", Label: "Retry", Help: "The failed step is executed again, and the run continues from there. What has succeeded stays.", Preview: true,
			Impossible: when(!failed, "Only runs that failed or expired are retried."),
		},
		{Verb: "signal", Label: "Signal", Help: "A message that the run receives by its name, now or later.", Impossible: over},
		{Verb: "fork", Label: "Fork", Help: "A copy of the run is executed anew from a step.", Preview: true},
		{Verb: "tag", Label: "Tag", Help: "Sets a tag. An empty value removes it."},
		{Verb: "expire", Label: "Timeout", Help: "The run expires after this time from now, such as 90m or 2d; 0 removes the timeout.", Impossible: first(over, cancelling)},
		{Verb: "prioritize", Label: "Priority", Help: "From -2 to 2; runs with a higher priority begin first.", Impossible: first(over, begun, cancelling)},
		{Verb: "move", Label: "Move", Help: "The run waits in another queue.", Impossible: first(over, begun, cancelling)},
		{Verb: "terminate", Label: "Terminate", Help: "The run and its descendants end at once, without compensations.", Danger: true, Impossible: over},
		{
			Verb: "delete", Label: "Delete", Help: "The run is deleted with its descendants, steps and generations. This cannot be undone.", Danger: true, Preview: true,
			Impossible: first(when(over == "", "The run is live: cancel or terminate it first."), when(r.Parent != "" && !(r.Detached && r.ParentGeneration > 0), "A child is deleted with its parent.")),
		},
	}
	for i := range acts {
		acts[i].Command = s.cliCommand(acts[i].Verb, r)
	}
	return acts
}

// cliCommand returns the command of an act on a run. The flags come before the ID, so that no part of the ID can be read as a flag.
func (s *dashboard) cliCommand(verb string, r *durable.RunInfo) string {
	id := runCLIArgument(r)
	switch verb {
	case "signal":
		return s.commandName + " signal " + id + " NAME null"
	case "tag":
		return s.commandName + " tag " + id + " KEY=VALUE"
	case "expire":
		return s.commandName + " timeout 2h " + id
	case "prioritize":
		return s.commandName + " priority 2 " + id
	case "move":
		return s.commandName + " move QUEUE " + id
	case "fork":
		return s.commandName + " fork --from STEP --reason '' " + id
	}
	return s.commandName + " " + verb + " --reason '' " + id
}

// runCLIArgument returns the argument of a command that names the run. For a run with the ID "-", it returns the UUID, because "-" stands
// for standard input.
func runCLIArgument(r *durable.RunInfo) string {
	if r.ID == "-" {
		return r.RunID
	}
	return wording.ShellArgument(r.ID)
}

func quoteForShell(text string) string { return wording.QuoteForShell(text) }
