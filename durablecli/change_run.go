package durablecli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable/internal/wording"
)

// changeCommands returns the commands that change a property of runs, which are given by their IDs.
func changeCommands(f *globalFlags) []*cobra.Command {
	tag := &cobra.Command{
		Use: "tag ID KEY=VALUE...", GroupID: groupAct, Args: cobra.MinimumNArgs(2),
		Short:   "Set tags of a run; KEY= removes one",
		Example: "  durable tag order-42 team.owner=payments incident.id=",
	}
	move := &cobra.Command{Use: "move QUEUE {ID... | -}", GroupID: groupAct, Args: cobra.MinimumNArgs(2), Short: "Move runs to another queue"}
	priority := &cobra.Command{
		Use: "priority N {ID... | -}", GroupID: groupAct, Args: cobra.MinimumNArgs(2), Short: "Set the priority of runs, from -2 to 2; write -- before a negative one",
		Example: "  durable priority 2 order-42\n  durable priority -- -1 order-42",
	}
	timeout := &cobra.Command{Use: "timeout DURATION {ID... | -}", GroupID: groupAct, Args: cobra.MinimumNArgs(2), Short: "Let runs expire after a duration from now; 0 removes the timeout"}
	var moveFlags, priorityFlags actFlags
	moveFlags.addTo(move)
	priorityFlags.addTo(priority)
	return []*cobra.Command{
		f.withEngine(tag, func(ctx context.Context, s *session) error {
			tags, err := parseTags(s.args[1:])
			if err != nil {
				return err
			}
			return s.engine.SetTags(ctx, s.args[0], tags)
		}),
		f.withEngine(move, func(ctx context.Context, s *session) error {
			return s.changeEach(func(id string) error { return s.engine.MoveToQueue(ctx, id, s.args[0], moveFlags.options()...) })
		}),
		f.withEngine(priority, func(ctx context.Context, s *session) error {
			n, err := strconv.Atoi(s.args[0])
			if err != nil {
				return newUsageError("the priority %q is no number: use -2 to 2", s.args[0])
			}
			return s.changeEach(func(id string) error { return s.engine.SetPriority(ctx, id, n, priorityFlags.options()...) })
		}),
		f.withEngine(timeout, func(ctx context.Context, s *session) error {
			d, err := wording.ParseDuration(s.args[0])
			if err != nil {
				return &markedError{errUsage, err}
			}
			return s.changeEach(func(id string) error { return s.engine.SetTimeout(ctx, id, d) })
		}),
	}
}

// changeEach changes the runs that the arguments after the first name. After an error of one run it goes on; after an error of the database
// it ends.
func (s *session) changeEach(change func(id string) error) error {
	ids, err := s.readIDs(s.args[1:])
	if err != nil {
		return err
	}
	var failed []error
	done := 0
	for _, id := range ids {
		err := change(id)
		if err == nil {
			done++
			continue
		}
		failed = append(failed, err)
		if code := ExitCode(&commandError{err}); code == ExitDatabase || code == ExitInterrupted || code == ExitUsage {
			break
		}
	}
	s.writeMessage("changed %d of %s", done, wording.Count(len(ids), "run", "runs"))
	return errors.Join(failed...)
}
