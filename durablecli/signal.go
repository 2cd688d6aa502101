package durablecli

import (
	"context"
	"encoding/json/jsontext"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func signalCommand(f *globalFlags) []*cobra.Command {
	var b bulkFlags
	var key string
	signal := &cobra.Command{
		Use: "signal {ID | - | FILTER} NAME [PAYLOAD]", GroupID: groupAct, Args: cobra.RangeArgs(1, 3),
		Short: "Send a signal to runs",
		Long: "Send a signal to runs: to the one with the ID, to those whose IDs standard input has, one a line (-), or to the live ones that\n" +
			"match the filter. The payload is JSON: given as it is, as @FILE, or as - for standard input; without it, null.",
		Example: "  durable signal order-42 approve '{\"by\": \"ann\"}'\n  durable signal --workflow checkout --status waiting --signal-key resume-1 continue",
	}
	b.addTo(signal)
	signal.Flags().StringVar(&key, "signal-key", "", "of all signals to a run with this key, the first one is kept: so the command can be repeated")
	complete := &cobra.Command{
		Use: "complete TOKEN [VALUE]", GroupID: groupAct, Args: cobra.RangeArgs(1, 2),
		Short: "Complete a wait by its token",
		Long:  "Complete the callback (Ctx.Callback) with the token. The value is JSON: given as it is, as @FILE, or as - for standard\ninput; without it, null.",
	}
	var completeFlags actFlags
	completeFlags.addTo(complete)
	return []*cobra.Command{
		f.withEngine(signal, func(ctx context.Context, s *session) error {
			ids, rest, err := b.splitArguments(s, 1)
			switch {
			case err != nil:
				return err
			case len(rest) > 2:
				return newUsageError("IDs and a filter are given: leave one of them out")
			case len(ids) == 1 && ids[0] == "-" && rest[len(rest)-1] == "-" && len(rest) == 2:
				return newUsageError("the IDs and the payload cannot both come from standard input: give the payload itself, or as @FILE")
			}
			payload, err := s.payloadArgument("payload", rest, 1)
			if err != nil {
				return err
			}
			var opts []durable.SignalOption
			for _, o := range b.options(false) {
				opts = append(opts, o)
			}
			if s.cmd.Flags().Changed("signal-key") {
				opts = append(opts, durable.SignalKey(key))
			}
			c := &runChange{name: fmt.Sprintf("send signal %q to", rest[0]), allows: isLive, apply: func(ctx context.Context, id string) error {
				return s.engine.Signal(ctx, id, rest[0], payload, opts...)
			}}
			return c.execute(ctx, s, &b, ids)
		}),
		f.withEngine(complete, func(ctx context.Context, s *session) error {
			value, err := s.payloadArgument("value", s.args, 1)
			if err != nil {
				return err
			}
			if err := s.engine.Complete(ctx, s.args[0], value, completeFlags.options()...); err != nil {
				return err
			}
			s.writeMessage("the wait was completed")
			return nil
		}),
	}
}

// payloadArgument returns the payload in the argument with the given index, or null if there is no such argument.
func (s *session) payloadArgument(what string, args []string, index int) (jsontext.Value, error) {
	if len(args) <= index {
		return jsontext.Value("null"), nil
	}
	return s.payload(what, args[index])
}
