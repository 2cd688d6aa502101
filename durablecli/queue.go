package durablecli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func queueCommand(f *globalFlags) []*cobra.Command {
	show := func(ctx context.Context, s *session, name string) error {
		queues, err := s.engine.Queues(ctx)
		return showNamed(s.printer, queues, err, name, queueName, queueColumns(s.printer))
	}
	return []*cobra.Command{nounCommand(f, "queue", "Set, pause, resume, reset or delete a queue",
		queueSetCommand(f, show),
		f.namedCommand("pause", "Let no run of the queue begin", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.PauseQueue(ctx, name, opts...)
		}, show),
		f.namedCommand("resume", "Let runs of the queue begin again", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.ResumeQueue(ctx, name, opts...)
		}, show),
		f.namedCommand("reset", "Return to the settings that the code declares", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.ResetQueue(ctx, name, opts...)
		}, show),
		f.namedCommand("delete", "Delete the settings of the queue; its runs stay, without bounds", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.DeleteQueue(ctx, name, opts...)
		}, nil),
	)}
}

func queueName(q *durable.QueueInfo) string { return q.Name }

func queueSetCommand(f *globalFlags, show func(context.Context, *session, string) error) *cobra.Command {
	var act actFlags
	var given durable.QueueSettings
	cmd := &cobra.Command{
		Use: "set NAME", Args: requireOneName,
		Short:   "Set bounds of a queue, over all workers; those that no flag names stay",
		Example: "  durable queue set mail --max-executing 8 --rate 100/m --reason \"quota of the provider\"",
	}
	act.addTo(cmd)
	flags := cmd.Flags()
	numbers := map[string]struct {
		flag *int
		of   func(*durable.QueueSettings) *int
		help string
	}{
		"max-executing":            {&given.MaxExecuting, func(s *durable.QueueSettings) *int { return &s.MaxExecuting }, "how many runs execute at once"},
		"max-executing-per-worker": {&given.MaxExecutingPerWorker, func(s *durable.QueueSettings) *int { return &s.MaxExecutingPerWorker }, "how many runs execute at once in one worker"},
		"max-in-progress":          {&given.MaxInProgress, func(s *durable.QueueSettings) *int { return &s.MaxInProgress }, "how many root runs have begun and not ended"},
		"max-executing-per-key":    {&given.MaxExecutingPerKey, func(s *durable.QueueSettings) *int { return &s.MaxExecutingPerKey }, "--max-executing for each group key"},
		"max-in-progress-per-key":  {&given.MaxInProgressPerKey, func(s *durable.QueueSettings) *int { return &s.MaxInProgressPerKey }, "--max-in-progress for each group key"},
		"depth":                    {&given.Depth, func(s *durable.QueueSettings) *int { return &s.Depth }, "how many runs may wait"},
	}
	for name, n := range numbers {
		addBoundFlag(cmd, n.flag, name, n.help)
	}
	flags.BoolVar(&given.Closed, "closed", false, "refuse new root runs; --closed=false opens the queue")
	setRate := rateFlag(cmd, "rate", "burst", "how many runs begin in a period")
	setKeyRate := rateFlag(cmd, "rate-per-key", "burst-per-key", "--rate for each group key")
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		queues, err := s.engine.Queues(ctx)
		if err != nil {
			return err
		}
		var settings durable.QueueSettings
		if q := findByName(queues, s.args[0], queueName); q != nil {
			settings = q.Settings
		}
		for name, n := range numbers {
			if flags.Changed(name) {
				*n.of(&settings) = *n.flag
			}
		}
		if flags.Changed("closed") {
			settings.Closed = given.Closed
		}
		if err := setRate(&settings.Rate.Count, &settings.Rate.Period, &settings.Rate.Burst); err != nil {
			return err
		}
		if err := setKeyRate(&settings.RatePerKey.Count, &settings.RatePerKey.Period, &settings.RatePerKey.Burst); err != nil {
			return err
		}
		if err := s.engine.SetQueue(ctx, s.args[0], settings, act.options()...); err != nil {
			return err
		}
		return show(ctx, s, s.args[0])
	})
}
