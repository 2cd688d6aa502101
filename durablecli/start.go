package durablecli

import (
	"cmp"
	"context"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/bridge"
)

// payload returns the JSON that an argument gives: JSON itself, @file, or - for standard input.
func (p *printer) payload(what, arg string) (jsontext.Value, error) {
	text := []byte(arg)
	var err error
	switch file, isFile := strings.CutPrefix(arg, "@"); {
	case arg == "-":
		if text, err = io.ReadAll(p.in); err != nil {
			return nil, fmt.Errorf("read the %s from standard input: %w", what, err)
		}
	case isFile:
		if text, err = os.ReadFile(file); err != nil {
			return nil, newUsageError("read the %s: %w", what, err)
		}
	}
	v := jsontext.Value(text)
	if err := v.Compact(); err != nil {
		return nil, newUsageError("the %s is no JSON: %w; a text needs quotes of its own: '\"text\"'", what, err)
	}
	return v, nil
}

func startCommand(f *globalFlags) []*cobra.Command {
	var id, queue, key, singleton string
	var priority, weight int
	var delay, timeout, startBy time.Duration
	var tags []string
	var wait bool
	about := "The command does not know the workflow: a worker finds out whether it can read the input. Nor does it\nknow the workflow's queue: give --queue if it has one."
	defaultQueue := durable.DefaultQueue
	if len(f.workflows()) > 0 {
		about = "The workflow must be one of this program, and be able to read the input."
		defaultQueue = "that of the workflow"
	}
	cmd := &cobra.Command{
		Use: "start WORKFLOW [INPUT]", GroupID: groupAct, Args: cobra.RangeArgs(1, 2),
		Short: "Start a run of a workflow",
		Long: "Start a run of a workflow, and write its ID. The input is JSON: given as it is, as @FILE, or as - for standard input;\n" +
			"without it, null. " + about,
		Example: "  durable start checkout '{\"order\": 42}' --id order-42\n  durable start report @input.json --wait",
	}
	flags := cmd.Flags()
	flags.StringVar(&id, "id", "", "the ID of the run; a start with the same ID, workflow and input is the same run")
	flags.StringVarP(&queue, "queue", "q", "", "the queue (default: "+defaultQueue+")")
	flags.IntVar(&priority, "priority", 0, "the priority, from -2 to 2")
	flags.StringVar(&key, "key", "", "the group key in the queue")
	flags.IntVar(&weight, "weight", 0, "the weight of the group key")
	flags.StringVar(&singleton, "singleton", "", "the key of which one run is live at most")
	flags.Var(durationFlag{&delay}, "delay", "how long after the start the run is due")
	flags.Var(durationFlag{&timeout}, "timeout", "how long the run may take")
	flags.Var(durationFlag{&startBy}, "start-by", "how long the run may wait for its beginning")
	flags.StringArrayVarP(&tags, "tag", "t", nil, "a tag, as key=value; may be repeated")
	flags.BoolVar(&wait, "wait", false, "wait until the run has ended; the exit code is 4 if it did not complete")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		input := jsontext.Value("null")
		if len(s.args) == 2 {
			var err error
			if input, err = s.payload("input", s.args[1]); err != nil {
				return err
			}
		}
		opts, err := tagOptions(tags)
		if err != nil {
			return err
		}
		given := s.cmd.Flags().Changed
		for flag, opt := range map[string]func() durable.StartOption{
			"id":        func() durable.StartOption { return durable.ID(id) },
			"queue":     func() durable.StartOption { return durable.InQueue(queue) },
			"priority":  func() durable.StartOption { return durable.Priority(priority) },
			"singleton": func() durable.StartOption { return durable.Singleton(singleton) },
			"delay":     func() durable.StartOption { return durable.Delay(delay) },
			"timeout":   func() durable.StartOption { return durable.Timeout(timeout) },
			"start-by":  func() durable.StartOption { return durable.StartBy(startBy) },
			"key":       func() durable.StartOption { return durable.GroupKey(key, weightOptions(weight)...) },
		} {
			if given(flag) {
				opts = append(opts, opt())
			}
		}
		if given("weight") && !given("key") {
			return newUsageError("--weight is for a --key")
		}
		workflow, err := s.workflowToStart(s.args[0], input)
		if err != nil {
			return err
		}
		run, err := workflow.Start(ctx, s.engine, input, opts...)
		if given("key") && errors.Is(err, durable.ErrInvalidConfig) {
			return s.withQueueHint(ctx, cmp.Or(queue, workflow.queue, durable.DefaultQueue), err)
		}
		if err != nil {
			return err
		}
		if wait {
			return awaitRun(ctx, s, run.RunID(), s.args[0])
		}
		if s.format == formatTable {
			return s.writeID(run.ID())
		}
		info, err := s.engine.Get(ctx, run.RunID())
		if err != nil {
			return err
		}
		return showRun(ctx, s, info)
	})}
}

// workflows returns the workflows of the engine of an embedding program. If it returns none, start accepts any workflow, as in
// the program durable.
func (f *globalFlags) workflows() []bridge.Workflow {
	if f.givenEngine == nil {
		return nil
	}
	return bridge.Workflows(f.givenEngine)
}

// startedWorkflow is a workflow that is to be started, and the queue with which the workflow is defined, if the queue is known.
type startedWorkflow struct {
	*durable.Workflow[jsontext.Value, jsontext.Value]
	queue string
}

// workflowToStart returns the workflow with the given name. It returns an error if the engine has workflows, but none with this name that
// can read the input.
func (s *session) workflowToStart(name string, input jsontext.Value) (*startedWorkflow, error) {
	known := s.workflows()
	if len(known) == 0 {
		return &startedWorkflow{Workflow: rawWorkflow(name)}, nil
	}
	w, err := findWorkflow(known, name)
	if err != nil {
		return nil, fmt.Errorf("start %w", err)
	}
	if err := w.CheckInput(input); err != nil {
		return nil, fmt.Errorf("start workflow %q: the input: %w", name, err)
	}
	var opts []durable.WorkflowOption
	if w.Queue != "" {
		opts = append(opts, durable.Queue(w.Queue))
	}
	return &startedWorkflow{rawWorkflow(name, opts...), w.Queue}, nil
}

// findWorkflow returns the workflow with the name, or a usage error that names those that this program has.
func findWorkflow(known []bridge.Workflow, name string) (*bridge.Workflow, error) {
	var names []string
	for i := range known {
		if known[i].Name == name {
			return &known[i], nil
		}
		names = append(names, known[i].Name)
	}
	slices.Sort(names)
	return nil, newUsageError("workflow %q: this program has no such workflow: use one of %s", name, strings.Join(names, ", "))
}

// withQueueHint returns the error of a start with a group key. If the queue of the start has no settings, the error also says how to
// name another queue.
func (s *session) withQueueHint(ctx context.Context, queue string, err error) error {
	queues, listErr := s.engine.Queues(ctx)
	if listErr != nil {
		return err
	}
	var names []string
	for _, q := range queues {
		if q.Declared != nil || q.Set != nil {
			names = append(names, q.Name)
		}
	}
	if slices.Contains(names, queue) {
		return err
	}
	with := "no queue has settings"
	if len(names) > 0 {
		with = "queues with settings: " + joinSome(names)
	}
	return fmt.Errorf("%w; or name another queue with --queue NAME (%s)", err, with)
}

// joinSome returns the first of the names in one line, and how many others there are.
func joinSome(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
}

func weightOptions(n int) []durable.GroupKeyOption {
	if n == 0 {
		return nil
	}
	return []durable.GroupKeyOption{durable.KeyWeight(n)}
}

// parseTags returns the tags that are given as key=value.
func parseTags(texts []string) (map[string]string, error) {
	tags := make(map[string]string, len(texts))
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if _, twice := tags[key]; !ok || key == "" || twice {
			return nil, newUsageError("the tag %q is not understood, or given twice: write key=value", text)
		}
		tags[key] = value
	}
	return tags, nil
}

func tagOptions(texts []string) (opts []durable.StartOption, err error) {
	tags, err := parseTags(texts)
	for key, value := range tags {
		opts = append(opts, durable.Tag(key, value))
	}
	return opts, err
}
