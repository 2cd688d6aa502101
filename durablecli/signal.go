package durablecli

import (
	"context"
	"encoding/json/jsontext"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func signalCommand(f *globalFlags) []*cobra.Command {
	var key string
	signal := &cobra.Command{
		Use: "signal ID NAME [PAYLOAD]", GroupID: groupAct, Args: cobra.RangeArgs(2, 3),
		Short:   "Send a signal to a run",
		Long:    "Send a signal to a run. The payload is JSON: given as it is, as @FILE, or as - for standard input; without it, null.",
		Example: "  durable signal order-42 approve '{\"by\": \"ann\"}'",
	}
	signal.Flags().StringVar(&key, "key", "", "of all signals to the run with this key, the first one is kept")
	complete := &cobra.Command{
		Use: "complete TOKEN [VALUE]", GroupID: groupAct, Args: cobra.RangeArgs(1, 2),
		Short: "Complete a wait by its token",
		Long:  "Complete the callback (Ctx.Callback) with the token. The value is JSON: given as it is, as @FILE, or as - for standard\ninput; without it, null.",
	}
	return []*cobra.Command{
		f.withEngine(signal, func(ctx context.Context, s *session) error {
			payload, err := s.payloadArgument("payload", 2)
			if err != nil {
				return err
			}
			var opts []durable.SignalOption
			if s.cmd.Flags().Changed("key") {
				opts = append(opts, durable.SignalKey(key))
			}
			if err := s.engine.Signal(ctx, s.args[0], s.args[1], payload, opts...); err != nil {
				return err
			}
			s.writeMessage("signal %q was sent to run %q", s.args[1], s.args[0])
			return nil
		}),
		f.withEngine(complete, func(ctx context.Context, s *session) error {
			value, err := s.payloadArgument("value", 1)
			if err != nil {
				return err
			}
			if err := s.engine.Complete(ctx, s.args[0], value); err != nil {
				return err
			}
			s.writeMessage("the wait was completed")
			return nil
		}),
	}
}

// payloadArgument returns the payload that the argument with the index gives; null if there is none.
func (s *session) payloadArgument(what string, index int) (jsontext.Value, error) {
	if len(s.args) <= index {
		return jsontext.Value("null"), nil
	}
	return s.payload(what, s.args[index])
}
