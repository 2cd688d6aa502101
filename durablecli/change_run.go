package durablecli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// runChange changes a property of runs that are given by IDs or a filter, one run after the other.
type runChange struct {
	name, suffix string // as in "move 12 runs to queue mail"
	takesEnded   bool
	// allows reports whether the state of a run allows the change. A filter reaches only such runs.
	allows func(*durable.RunInfo) bool
	apply  func(ctx context.Context, id string) error
}

// The conditions on the state of a run.
func anyState(*durable.RunInfo) bool { return true }
func isLive(r *durable.RunInfo) bool { return r.EndedAt.IsZero() }
func hasNotBegun(r *durable.RunInfo) bool {
	return isLive(r) && r.StartedAt.IsZero() && r.Cancellation == nil
}
func mayExpire(r *durable.RunInfo) bool { return isLive(r) && r.Cancellation == nil }

// changeRow is the result of a change: of one run, or of a filter.
type changeRow struct {
	ID               string // the run; empty: a filter
	Matched, Changed int
}

// execute changes the runs that the arguments name, or that match the filter of the flags.
func (c *runChange) execute(ctx context.Context, s *session, b *bulkFlags, args []string) error {
	v := &bulkOperation[changeRow]{
		name: c.name, suffix: c.suffix,
		applyToOne: func(ctx context.Context, id string, dryRun bool) (changeRow, error) {
			if !dryRun {
				return changeRow{id, 1, 1}, c.apply(ctx, id)
			}
			run, err := s.engine.Get(ctx, id)
			if err == nil && !c.allows(run) {
				err = fmt.Errorf("cannot %s run %q: its state does not allow it: %s", c.name, id, wording.Status(run))
			}
			return changeRow{id, 1, 1}, err
		},
		applyToFilter: func(ctx context.Context, f durable.Filter, dryRun bool) (changeRow, error) {
			return c.applyToFilter(ctx, s, f, dryRun)
		},
		countReached: func(r changeRow) (changed, refused int) { return r.Changed, 0 },
		report: func(results []changeRow) error {
			return printResults(s.printer, results, func(r *changeRow) string { return r.ID }, []column[changeRow]{
				{title: "ID", isShortenedLast: true, text: func(r *changeRow) string { return cmp.Or(r.ID, "(filter)") }},
				{title: "MATCHED", alignsRight: true, text: func(r *changeRow) string { return fmt.Sprint(r.Matched) }},
				{title: "CHANGED", alignsRight: true, text: func(r *changeRow) string { return fmt.Sprint(r.Changed) }},
			})
		},
	}
	return v.execute(ctx, s, b, args)
}

// applyToFilter changes the runs that match the filter and whose state allows it. It writes a message for each that is refused, because its state has
// changed meanwhile or for another reason.
func (c *runChange) applyToFilter(ctx context.Context, s *session, f durable.Filter, dryRun bool) (row changeRow, err error) {
	if len(f.Status) == 0 && !c.takesEnded {
		f.Status = wording.StatusGroups["live"]
	}
	for at := (durable.Page{Limit: mostPerPage}); ; {
		page, err := s.engine.List(ctx, f, at)
		if err != nil {
			return row, err
		}
		for i := range page.Runs {
			run := &page.Runs[i]
			if !c.allows(run) {
				continue
			}
			row.Matched++
			if !dryRun {
				err = c.apply(ctx, run.RunID)
			}
			switch code := ExitCode(&commandError{err}); {
			case err == nil:
				row.Changed++
			case isFatal(err), code == ExitUsage: // an argument that is invalid for one run is invalid for all
				return row, err
			default:
				s.writeMessage("%s was refused: %v", run.ID, err)
			}
		}
		if at.Cursor = page.Next; at.Cursor != "" {
			continue
		}
		if refused := row.Matched - row.Changed; refused > 0 {
			return row, fmt.Errorf("%w: %s", errRefused, wording.Count(refused, "run", "runs"))
		}
		return row, nil
	}
}

// changeCommands returns the commands that change a property of runs.
func changeCommands(f *globalFlags) []*cobra.Command {
	return []*cobra.Command{
		tagCommand(f),
		setCommand(f, "move QUEUE", "Move runs that have not begun to another queue", "  durable move mail order-42\n  durable move mail --workflow newsletter --queue default",
			func(s *session, b *bulkFlags, queue string) (*runChange, error) {
				return &runChange{name: "move", suffix: fmt.Sprintf(" to queue %q", queue), allows: hasNotBegun, apply: func(ctx context.Context, id string) error {
					return s.engine.MoveToQueue(ctx, id, queue, b.options(false)...)
				}}, nil
			}),
		setCommand(f, "priority N", "Set the priority of runs that have not begun, from -2 to 2; write -- before a negative one", "  durable priority 2 order-42\n  durable priority -- -1 order-42",
			func(s *session, b *bulkFlags, text string) (*runChange, error) {
				n, err := strconv.Atoi(text)
				if err != nil {
					return nil, newUsageError("the priority %q is no number: use -2 to 2", text)
				}
				return &runChange{name: "set the priority of", suffix: fmt.Sprintf(" to %d", n), allows: hasNotBegun, apply: func(ctx context.Context, id string) error {
					return s.engine.SetPriority(ctx, id, n, b.options(false)...)
				}}, nil
			}),
		setCommand(f, "timeout DURATION", "Let runs expire after a duration from now; 0 removes the timeout", "  durable timeout 2h order-42\n  durable timeout 1d --workflow report --status live",
			func(s *session, b *bulkFlags, text string) (*runChange, error) {
				d, err := wording.ParseDuration(text)
				if err != nil {
					return nil, &markedError{errUsage, err}
				}
				return &runChange{name: "set the timeout of", suffix: " to " + durationOrNone(d), allows: mayExpire, apply: func(ctx context.Context, id string) error {
					return s.engine.SetTimeout(ctx, id, d, b.options(false)...)
				}}, nil
			}),
	}
}

func durationOrNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return wording.RoughDuration(d)
}

// setCommand returns a command whose first argument is the new value of a property of runs.
func setCommand(f *globalFlags, use, short, example string, change func(*session, *bulkFlags, string) (*runChange, error)) *cobra.Command {
	var b bulkFlags
	cmd := &cobra.Command{Use: use + " {ID... | - | FILTER}", GroupID: groupAct, Args: cobra.MinimumNArgs(1), Short: short, Example: example}
	b.addTo(cmd)
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		c, err := change(s, &b, s.args[0])
		if err != nil {
			return err
		}
		return c.execute(ctx, s, &b, s.args[1:])
	})
}

func tagCommand(f *globalFlags) *cobra.Command {
	var b bulkFlags
	cmd := &cobra.Command{
		Use: "tag {ID | - | FILTER} KEY=VALUE...", GroupID: groupAct, Args: cobra.MinimumNArgs(1),
		Short:   "Set tags of runs; KEY= removes one",
		Long:    "Set tags of runs; KEY= removes one. The runs are the one with the ID, those whose IDs standard input has, one a line (-), or\nthose that match the filter.",
		Example: "  durable tag order-42 team.owner=payments incident.id=\n  durable tag --workflow checkout --status failed incident.id=1234",
	}
	b.addTo(cmd)
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		ids, texts, err := b.splitArguments(s, 1)
		if err != nil {
			return err
		}
		tags, err := parseTags(texts)
		if err != nil {
			return err
		}
		c := &runChange{
			name: "tag", suffix: " with " + strings.Join(texts, " "), takesEnded: true, allows: anyState,
			apply: func(ctx context.Context, id string) error {
				return s.engine.SetTags(ctx, id, tags, b.options(false)...)
			},
		}
		return c.execute(ctx, s, &b, ids)
	})
}

// splitArguments returns the first argument as the ID, unless there is a filter, and the other arguments. It returns an error if there are
// fewer than fewest other arguments.
func (b *bulkFlags) splitArguments(s *session, fewest int) (ids, rest []string, err error) {
	_, filtered, err := b.filter(s.now())
	rest = s.args
	if !filtered {
		ids, rest = rest[:1], rest[1:]
	}
	if err == nil && len(rest) < fewest {
		err = newUsageError("an argument is missing: write %s", s.cmd.UseLine())
	}
	return ids, rest, err
}
