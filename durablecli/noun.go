package durablecli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// nounCommand returns the command that has the operations on queues, limits or schedules as subcommands.
func nounCommand(f *globalFlags, noun, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: noun, GroupID: groupAct, Short: short, Args: cobra.ArbitraryArgs}
	var names []string
	for _, v := range verbs {
		names = append(names, v.Name())
	}
	f.withoutEngine(cmd, func(_ context.Context, s *session) error {
		if len(s.args) > 0 {
			return newUsageError("unknown command %q for %s: use one of %s", s.args[0], s.cmd.CommandPath(), strings.Join(names, ", "))
		}
		return s.cmd.Help()
	})
	cmd.AddCommand(verbs...)
	return cmd
}

// namedAction changes the queue, limit or schedule with the name.
type namedAction func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error

// namedCommand returns a command that changes one queue, limit or schedule. show writes it afterwards; nil means a message is written.
func (f *globalFlags) namedCommand(name, short string, change namedAction, show func(context.Context, *session, string) error) *cobra.Command {
	var act actFlags
	cmd := &cobra.Command{Use: name + " NAME", Args: requireOneName, Short: short}
	act.addTo(cmd)
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		if err := change(ctx, s.engine, s.args[0], act.options()...); err != nil {
			return err
		}
		if show == nil {
			s.writeMessage("%s was deleted", s.args[0])
			return nil
		}
		return show(ctx, s, s.args[0])
	})
}

// showNamed writes the item that has the name.
func showNamed[T any](p *printer, items []T, err error, name string, nameOf func(*T) string, columns []column[T]) error {
	if err != nil {
		return err
	}
	for i := range items {
		if nameOf(&items[i]) == name {
			return printRows(p, items[i:i+1], nameOf, columns)
		}
	}
	p.writeMessage("%s has no settings now", name)
	return nil
}

// findByName returns the item with the name; nil if there is none.
func findByName[T any](items []T, name string, nameOf func(*T) string) *T {
	for i := range items {
		if nameOf(&items[i]) == name {
			return &items[i]
		}
	}
	return nil
}

// boundFlag is the value of a flag for a bound: a number from 1, or none.
type boundFlag struct{ n *int }

func (b boundFlag) Set(text string) (err error) {
	*b.n, err = wording.ParseBound(text)
	return err
}

func (b boundFlag) String() string { return "" }

func (b boundFlag) Type() string { return "number" }

// addBoundFlag adds a flag for a bound.
func addBoundFlag(cmd *cobra.Command, n *int, name, help string) {
	cmd.Flags().Var(boundFlag{n}, name, help+"; none removes the bound")
}

// rateFlag adds a flag for a rate, and returns a function that changes a rate if the flag is given.
func rateFlag(cmd *cobra.Command, name, burstName, help string) func(n *int, per *time.Duration, burst *int) error {
	var rate string
	var newBurst int
	cmd.Flags().StringVar(&rate, name, "", help+", such as 10/s or 600/1h; none removes the bound")
	cmd.Flags().IntVar(&newBurst, burstName, 0, fmt.Sprintf("how many of --%s may come at one moment", name))
	return func(n *int, per *time.Duration, burst *int) (err error) {
		if cmd.Flags().Changed(name) {
			if *n, *per, err = wording.ParseRate(rate); err != nil {
				return &markedError{errUsage, err}
			}
			if *n == 0 {
				*burst = 0
			}
		}
		if cmd.Flags().Changed(burstName) {
			*burst = newBurst
		}
		return nil
	}
}
