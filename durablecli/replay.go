package durablecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// replayRow is what the command replay found for one file.
type replayRow struct {
	File string
	durable.PreflightRun
}

func replayCommand(f *globalFlags) []*cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "replay {FILE... | -}", GroupID: groupMaintain, Args: cobra.MinimumNArgs(1),
		Short: "Tell which exported runs the code of this program does not fit",
		Long: "Replay runs that durable export has written against the workflows of this program. Nothing is written or executed. The runs that\n" +
			"do not fit, or would fail now, are listed, with the call and the reason; the exit code is then 6. A run that has ended must end in the same way.\n\n" +
			"The command is part of programs that embed durablecli.Command with their engine: the program durable has no workflows.",
		Example: "  durable replay testdata/histories/*.json\n  durable export order-42 | durable replay -",
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the runs that the code fits too")
	if f.givenEngine == nil {
		cmd.Hidden, cmd.Example = true, ""
		return []*cobra.Command{f.withoutEngine(cmd, func(context.Context, *session) error {
			return newUsageError("the program durable has no workflows to replay runs with: embed durablecli.Command(engine) in your own program, and call its replay")
		})}
	}
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		var report []replayRow
		fit, diverged, failing, unknown := 0, 0, 0, 0
		for _, file := range s.args {
			document, err := s.readFile(file)
			if err != nil {
				return err
			}
			run, err := s.engine.ReplayExport(ctx, document)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			switch {
			case run.Diverged:
				diverged++
			case run.Unknown:
				unknown++
			case run.Err != "":
				failing++
			default:
				fit++
			}
			if all || run.Diverged || run.Unknown || run.Err != "" {
				report = append(report, replayRow{file, run})
			}
		}
		s.writeMessage("%d fit, %d diverge, %d would fail, %d unknown", fit, diverged, failing, unknown)
		if err := showReplayed(s.printer, report); err != nil {
			return err
		}
		if diverged += failing; diverged > 0 {
			return &markedError{errDiverged, fmt.Errorf("the code does not fit %s; docs/changing-code.md tells how to change code under live runs", wording.Count(diverged, "exported run", "exported runs"))}
		}
		return nil
	})}
}

// readFile returns the content of a file, or of the standard input if its name is a dash.
func (s *session) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(s.cmd.InOrStdin())
	}
	content, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &markedError{errUsage, err}
	}
	return content, err
}

func showReplayed(p *printer, rows []replayRow) error {
	type row = replayRow
	if len(rows) == 0 && p.format == formatTable {
		return nil
	}
	return printRows(p, rows, func(r *row) string { return r.ID }, []column[row]{
		{title: "FILE", isShortenedLast: true, text: func(r *row) string { return r.File }},
		{title: "ID", isShortenedLast: true, text: func(r *row) string { return r.ID }},
		{title: "WORKFLOW", text: func(r *row) string { return r.Workflow }},
		{title: "STATUS", text: func(r *row) string { return string(r.Status) }},
		{title: "VERDICT", isShortenedLast: true, text: func(r *row) string { text, _ := preflightVerdict(&r.PreflightRun, "diverges"); return text }, color: func(r *row) color {
			_, c := preflightVerdict(&r.PreflightRun, "diverges")
			return c
		}},
		{title: "CALL", text: func(r *row) string { return r.Call }},
		{title: "REASON", text: func(r *row) string { return cmp.Or(r.Reason, r.Err) }},
	})
}
