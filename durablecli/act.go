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

func (a *actFlags) addTo(cmd *cobra.Command) {
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

// userName returns the name of the user who executes the command. Under sudo, it returns the name of the user who called sudo.
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

func (b *bulkFlags) addTo(cmd *cobra.Command) {
	b.actFlags.addTo(cmd)
	b.filterFlags.addTo(cmd)
	cmd.Flags().BoolVar(&b.dryRun, dryRunFlag, false, "change nothing, and tell what would be done")
	cmd.Flags().BoolVarP(&b.yes, "yes", "y", false, "do not ask")
}

// options returns the options of a call: the actor and the reason from the flags, and the given options.
func (b *bulkFlags) options(dryRun bool, more ...durable.ControlOption) []durable.ControlOption {
	opts := append(b.actFlags.options(), more...)
	if dryRun {
		opts = append(opts, durable.DryRun())
	}
	return opts
}

// bulkOperation is an operation on runs that are given by IDs or a filter.
type bulkOperation[R any] struct {
	name, suffix  string // as in "cancel 12 runs"; what follows the number
	applyToOne    func(ctx context.Context, id string, dryRun bool) (R, error)
	applyToFilter func(ctx context.Context, f durable.Filter, dryRun bool) (R, error)
	// countReached returns how many runs the operation changes or has changed, according to the result for a filter, and how many it refuses.
	countReached func(R) (changed, refused int)
	// report writes the results of the runs or of the filter.
	report func([]R) error
}

// execute performs the operation on the runs that the arguments name, or that match the filter of the flags.
func (v *bulkOperation[R]) execute(ctx context.Context, s *session, b *bulkFlags, args []string) error {
	filter, filtered, err := b.filter(s.now())
	switch {
	case err != nil:
		return err
	case len(args) > 0 && filtered:
		return newUsageError("IDs and a filter are given: leave one of them out")
	case len(args) > 0:
		return v.executeEach(ctx, s, args, b.dryRun)
	case !filtered:
		return newUsageError("no run is named: give IDs, or - to read them from standard input, or a filter such as --workflow; for all runs: --created-before now")
	}
	filter, found, err := freezeFilter(ctx, s.engine, filter)
	if err != nil {
		return err
	}
	if !found {
		s.writeMessage("no run matches")
		return nil
	}
	if !b.dryRun && !b.yes {
		preview, err := v.applyToFilter(ctx, filter, true)
		if err != nil {
			return err
		}
		switch changed, refused := v.countReached(preview); {
		case changed > 0:
			if err := s.confirm(ctx, v.name+" "+wording.Count(changed, "run", "runs")+v.suffix); err != nil {
				return err
			}
		case refused > 0:
			return v.report([]R{preview})
		default:
			s.writeMessage("no run matches whose state allows it")
			return nil
		}
	}
	result, err := v.applyToFilter(ctx, filter, b.dryRun)
	changed, _ := v.countReached(result)
	return errors.Join(markPartial(err, changed > 0), v.report([]R{result})) // the result says what was done before the error
}

// executeEach performs the operation on each run that the arguments name. After an error of one run, it continues with the next run;
// after an error of the database, it stops.
func (v *bulkOperation[R]) executeEach(ctx context.Context, s *session, args []string, dryRun bool) error {
	ids, err := s.readIDs(args)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		s.writeMessage("standard input names no run")
		return nil
	}
	var results []R
	var failed []error
	for _, id := range ids {
		result, err := v.applyToOne(ctx, id, dryRun)
		if err == nil {
			results = append(results, result)
			continue
		}
		failed = append(failed, err)
		if isFatal(err) {
			break
		}
	}
	if len(failed) > 0 && len(ids) > 1 {
		s.writeMessage("%s: %d of %s done", s.cmd.Name(), len(results), wording.Count(len(ids), "run", "runs"))
	}
	return errors.Join(v.report(results), markPartial(errors.Join(failed...), len(results) > 0))
}

// isFatal reports whether an error of one run ends a command for many runs.
func isFatal(err error) bool {
	code := ExitCode(&commandError{err})
	return code == ExitDatabase || code == ExitInterrupted
}

// markPartial returns the error of a command for many runs. If done is true, the exit code of the error is not the one that says
// that nothing was done.
func markPartial(err error, done bool) error {
	if done && err != nil && ExitCode(&commandError{err}) == ExitUsage {
		return &markedError{errPartial, err}
	}
	return err
}

// readIDs returns the arguments or, if the only argument is -, the lines of standard input, which end with \n or \r\n. Spaces belong
// to the IDs.
func (p *printer) readIDs(args []string) (ids []string, err error) {
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

// freezeFilter bounds the filter to the runs that exist now, so that the operation reaches no run that was started after its preview. It
// reports false if no run matches.
func freezeFilter(ctx context.Context, e *durable.Engine, filter durable.Filter) (durable.Filter, bool, error) {
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
		return newUsageError("this would %s: add --yes to do so without a question, or --dry-run to see what would be done", what)
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
