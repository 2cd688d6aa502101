package durablecli

import (
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func getCommand(f *globalFlags) []*cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "get ID", GroupID: groupLook, Args: requireOneRun,
		Short: "Show a run: its state, what it waits for, its input and its result",
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the run has ended; the exit code is 4 if it did not complete")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		run, err := s.engine.Get(ctx, s.args[0])
		if err != nil {
			return err
		}
		if wait {
			return awaitRun(ctx, s, run.ID, run.Workflow)
		}
		return showRun(ctx, s, run)
	})}
}

// rawWorkflow returns a workflow with the given name whose inputs and outputs are undecoded JSON, for starts and results. Its
// function is never called.
func rawWorkflow(name string, opts ...durable.WorkflowOption) *durable.Workflow[jsontext.Value, jsontext.Value] {
	return durable.Define(name, func(*durable.Ctx, jsontext.Value) (jsontext.Value, error) {
		return nil, errors.New("this workflow is executed by its own program")
	}, opts...)
}

// awaitRun waits until a run has ended, and shows it. It returns errWorkflowFailed if the run did not complete.
func awaitRun(ctx context.Context, s *session, id, workflow string) error {
	handle, err := rawWorkflow(workflow).Handle(ctx, s.engine, id)
	if err != nil {
		return err
	}
	failed := new(durable.RunError)
	if _, err = handle.Result(ctx); err != nil && !errors.As(err, &failed) {
		return err
	}
	run, infoErr := s.engine.Get(ctx, handle.RunID())
	if infoErr != nil {
		return infoErr
	}
	if infoErr = showRun(ctx, s, run); infoErr != nil {
		return infoErr
	}
	if err != nil {
		return &markedError{errWorkflowFailed, fmt.Errorf("run %q of workflow %q did not complete: it is %s", run.ID, run.Workflow, run.Status)}
	}
	return nil
}

func showRun(ctx context.Context, s *session, r *durable.RunInfo) error {
	var divergences []durable.Divergence
	if r.Diverged {
		var err error
		if divergences, err = s.engine.Divergences(ctx, r.ID); err != nil {
			return err
		}
	}
	return s.writeDescription(r, r.ID, func() []field {
		p := s.printer
		fields := []field{
			{label: "ID", text: r.ID, color: bold},
			{label: "Run ID", text: r.RunID},
			{label: "Workflow", text: r.Workflow},
			{label: "Version", text: r.Version},
			{label: "Status", text: wording.Status(r), color: statusColor(r.Status)},
		}
		fields = append(fields, waitFields(p, r)...)
		for _, d := range divergences {
			fields = append(fields, field{label: "Does not fit", text: fmt.Sprintf("%s%s, %s: %s", textIf(d.Version != "", fmt.Sprintf("version %q, ", d.Version)), p.past(d.At), wording.DivergedCall(d.Call), d.Reason), color: red})
		}
		fields = append(fields,
			field{label: "Parent", text: r.Parent + textIf(r.ParentGeneration > 0, fmt.Sprintf(", generation %d", r.ParentGeneration))},
			field{label: "Call", text: r.Name},
			field{label: "Detached", text: textIf(r.Detached, "yes: it continues when its parent ends")},
			field{label: "Queue", text: r.Queue},
			field{label: "Priority", text: textIf(r.Priority != 0, fmt.Sprint(r.Priority))},
			field{label: "Tags", text: tagLines(r.Tags)},
			field{label: "Started", text: p.ageAndExact(r.CreatedAt)},
			field{label: "Executed first", text: p.ageAndExact(r.StartedAt)},
			field{label: "Ended", text: p.ageAndExact(r.EndedAt)},
			field{label: "Deadline", text: p.ageAndExact(r.Deadline)},
			field{label: "Worker", text: r.Owner},
			field{label: "Claims", text: textIf(r.Epoch > 0, fmt.Sprint(r.Epoch))},
		)
		for _, m := range r.Progress {
			fields = append(fields, field{label: "Progress", text: fmt.Sprintf("%s: %d of %d", m.Name, m.Done, m.Total)})
		}
		fields = append(fields,
			field{label: "Unreceived signals", text: numberLines(r.Unreceived)},
			field{label: "Input", text: payloadLines(r.Input)},
			field{label: "Output", text: payloadLines(r.Output)},
		)
		if r.Err != nil {
			fields = append(fields,
				field{label: "Error", text: r.Err.Message, color: red},
				field{label: "Error type", text: r.Err.Type},
				field{label: "Failed step", text: r.Err.Step},
				field{label: "Stack", text: r.Err.Stack},
			)
		}
		return fields
	})
}

// toneColors are the colours of facts.
var toneColors = map[wording.Tone]color{wording.Neutral: plain, wording.Warning: yellow, wording.Bad: red}

// waitFields returns the fields that say what a run waits for, and why it does not continue.
func waitFields(p *printer, r *durable.RunInfo) (fields []field) {
	for _, fact := range wording.WaitFacts(p.now(), r) {
		fields = append(fields, field{fact.Label, fact.Text, toneColors[fact.Tone]})
	}
	return fields
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

func tagLines(tags map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		lines = append(lines, wording.Escape(key+"="+tags[key]))
	}
	return strings.Join(lines, "\n")
}

func numberLines[K ~string](numbers map[K]int) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(numbers)) {
		lines = append(lines, wording.Escape(fmt.Sprintf("%s: %d", key, numbers[key])))
	}
	return strings.Join(lines, "\n")
}
