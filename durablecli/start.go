package durablecli

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
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
	cmd := &cobra.Command{
		Use: "start WORKFLOW [INPUT]", GroupID: groupAct, Args: cobra.RangeArgs(1, 2),
		Short: "Start a run of a workflow",
		Long: "Start a run of a workflow, and write its ID. The input is JSON: given as it is, as @FILE, or as - for standard input;\n" +
			"without it, null. The command does not know the workflow: a worker finds out whether it can read the input. Nor does it\nknow the workflow's queue: give --queue if it has one.",
		Example: "  durable start checkout '{\"order\": 42}' --id order-42\n  durable start report @input.json --wait",
	}
	flags := cmd.Flags()
	flags.StringVar(&id, "id", "", "the ID of the run; a start with the same ID, workflow and input is the same run")
	flags.StringVarP(&queue, "queue", "q", "", "the queue (default: "+durable.DefaultQueue+")")
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
		run, err := rawWorkflow(s.args[0]).Start(ctx, s.engine, input, opts...)
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

func weightOptions(n int) []durable.GroupKeyOption {
	if n == 0 {
		return nil
	}
	return []durable.GroupKeyOption{durable.Weight(n)}
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
