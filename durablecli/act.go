package durablecli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// actFlags are the flags of a command that changes something.
type actFlags struct{ reason, actor string }

func (a *actFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.reason, "reason", "", "why, for the people who look later")
	cmd.Flags().StringVar(&a.actor, "actor", "", "who does it (default: your user name)")
}

func (a *actFlags) options() []durable.ControlOption {
	actor := a.actor
	if actor == "" {
		actor = userName()
	}
	opts := []durable.ControlOption{durable.Actor(actor)}
	if a.reason != "" {
		opts = append(opts, durable.Reason(a.reason))
	}
	return opts
}

// userName returns the name of the user who executes the command; if sudo does, that of the user behind it.
func userName() string {
	for _, name := range []string{os.Getenv("SUDO_USER"), currentUser(), os.Getenv("USER")} {
		if name != "" {
			return name
		}
	}
	return "unknown"
}

func currentUser() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// bulkFlags are the flags of a command that changes runs that are given by IDs or a filter.
type bulkFlags struct {
	actFlags
	filterFlags
	dryRun, yes bool
}

func (b *bulkFlags) add(cmd *cobra.Command) {
	b.actFlags.add(cmd)
	b.filterFlags.add(cmd)
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "change nothing, and tell what would be done")
	cmd.Flags().BoolVarP(&b.yes, "yes", "y", false, "do not ask")
}

// verb is an operation on runs that are given by IDs or a filter.
type verb[R any] struct {
	name string // as in "cancel 12 runs"
	one  func(ctx context.Context, id string, opts ...durable.ControlOption) (R, error)
	all  func(ctx context.Context, f durable.Filter, opts ...durable.ControlOption) (R, error)
	// matched returns how many runs the result of a filter counts.
	matched func(R) int
	// report writes the results of the runs or of the filter.
	report func([]R) error
}

// do performs the operation on the runs that the arguments name, or that match the filter of the flags.
func (v *verb[R]) do(ctx context.Context, s *session, b *bulkFlags, opts ...durable.ControlOption) error {
	filter, filtered, err := b.filter(s.now())
	if err != nil {
		return err
	}
	opts = append(opts, b.options()...)
	if b.dryRun {
		opts = append(opts, durable.DryRun())
	}
	switch {
	case len(s.args) > 0 && filtered:
		return usage("IDs and a filter are given: leave one of them out")
	case len(s.args) > 0:
		return v.doEach(ctx, s, opts)
	case !filtered:
		return usage("no run is named: give IDs, or - to read them from standard input, or a filter such as --workflow; for all runs: --created-before now")
	}
	filter, found, err := freeze(ctx, s.engine, filter)
	if err != nil {
		return err
	}
	if !found {
		s.say("no run matches")
		return nil
	}
	if !b.dryRun && !b.yes {
		preview, err := v.all(ctx, filter, append(opts, durable.DryRun())...)
		if err != nil {
			return err
		}
		if v.matched(preview) == 0 {
			s.say("no run matches")
			return nil
		}
		if err := s.confirm(ctx, fmt.Sprintf("%s %s", v.name, wording.Count(v.matched(preview), "run", "runs"))); err != nil {
			return err
		}
	}
	result, err := v.all(ctx, filter, opts...)
	return errors.Join(err, v.report([]R{result})) // an error comes with what was done before
}

// doEach performs the operation on each run that the arguments name. After an error of one run it goes on; after an error of the
// database it ends.
func (v *verb[R]) doEach(ctx context.Context, s *session, opts []durable.ControlOption) error {
	ids, err := s.ids(s.args)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		s.say("standard input names no run")
		return nil
	}
	var results []R
	var failed []error
	for _, id := range ids {
		result, err := v.one(ctx, id, opts...)
		if err == nil {
			results = append(results, result)
			continue
		}
		failed = append(failed, err)
		if code := ExitCode(&commandError{err}); code == ExitDatabase || code == ExitInterrupted {
			break
		}
	}
	if len(failed) > 0 && len(ids) > 1 {
		s.say("%s: %d of %s done", v.name, len(results), wording.Count(len(ids), "run", "runs"))
	}
	return errors.Join(v.report(results), errors.Join(failed...))
}

// ids returns the arguments; if there is only -, the lines of standard input, which end with \n or \r\n. Spaces belong to the IDs.
func (p *printer) ids(args []string) (ids []string, err error) {
	if len(args) != 1 || args[0] != "-" {
		return args, nil
	}
	scanner := bufio.NewScanner(p.in)
	for scanner.Scan() {
		if id := scanner.Text(); id != "" {
			ids = append(ids, id)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read the IDs: %w", err)
	}
	return ids, nil
}

// freeze bounds the filter to the runs that exist now, so that the operation reaches no run that was started after its preview. It
// reports false if no run matches.
func freeze(ctx context.Context, e *durable.Engine, filter durable.Filter) (durable.Filter, bool, error) {
	page, err := e.List(ctx, filter, durable.Page{Limit: 1})
	if err != nil || len(page.Runs) == 0 {
		return filter, false, err
	}
	if limit := page.Runs[0].CreatedAt.Add(time.Millisecond); filter.CreatedBefore.IsZero() || limit.Before(filter.CreatedBefore) {
		filter.CreatedBefore = limit
	}
	return filter, true, nil
}

// confirm asks whether to do something. Without a terminal it returns an error that names --yes.
func (p *printer) confirm(ctx context.Context, what string) error {
	if !isTerminal(p.in) {
		return usage("this would %s: add --yes to do so without a question, or --dry-run to see what would be done", what)
	}
	fmt.Fprintf(p.err, "%s? [y/N] ", wording.Escape(what))
	reply := make(chan string, 1)
	go func() { // ends with the process if nobody replies
		line, _ := bufio.NewReader(p.in).ReadString('\n')
		reply <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case text := <-reply:
		if text == "y" || text == "yes" {
			return nil
		}
		return fmt.Errorf("nothing was done")
	}
}
