package durablecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// errDiverged is returned when the code does not fit some live runs.
var errDiverged = errors.New("the code does not fit some live runs")

func preflightCommand(f *globalFlags) []*cobra.Command {
	var filter filterFlags
	var all bool
	cmd := &cobra.Command{
		Use: "preflight [FILTER]", GroupID: groupMaintain, Args: cobra.NoArgs,
		Short: "Tell which live runs the code of this program does not fit, before it is deployed",
		Long: "Replay the histories of all live runs, or of those that match the filter, against the workflows of this program. Nothing is\n" +
			"written or executed. The runs that would be held or would fail are listed, with the call and the reason; the exit code is then 6.\n" +
			"Runs that are pinned to another version, whose workers execute them, are counted apart and do not change the exit code.\n\n" +
			"The command is part of programs that embed durablecli.Command with their engine: the program durable has no workflows.",
		Example: "  durable preflight\n  durable preflight --workflow checkout --all -o wide",
	}
	filter.addTo(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "list the runs that the code fits too")
	if f.givenEngine == nil {
		cmd.Hidden, cmd.Example = true, ""
		return []*cobra.Command{f.withoutEngine(cmd, func(context.Context, *session) error {
			return newUsageError("the program durable has no workflows to compare runs with: embed durablecli.Command(engine) in your own program, and call its preflight")
		})}
	}
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		chosen, _, err := filter.filter(s.now())
		if err != nil {
			return err
		}
		report, err := s.engine.Preflight(ctx, chosen)
		if err != nil {
			return err
		}
		counts := fmt.Sprintf("%d fit, %d would be held, %d would fail, %d unknown", report.Fit, report.Diverged, report.Failing, report.Unknown)
		if report.Pinned > 0 {
			counts += fmt.Sprintf(", %d pinned to another version", report.Pinned)
		}
		s.writeMessage("%s", counts)
		if err := showPreflight(s.printer, report, all); err != nil {
			return err
		}
		var found []string
		if report.Diverged > 0 {
			found = append(found, wording.Count(report.Diverged, "run", "runs")+" would be held")
		}
		if report.Failing > 0 {
			found = append(found, wording.Count(report.Failing, "run", "runs")+" would fail")
		}
		if len(found) == 0 {
			return nil
		}
		return fmt.Errorf("%w: %s; docs/changing-code.md tells how to change code under live runs", errDiverged, strings.Join(found, ", and "))
	})}
}

// showPreflight writes the report: all of it as JSON, or tables of its runs and of the changes that they need.
func showPreflight(p *printer, report *durable.PreflightReport, all bool) error {
	if p.format == formatJSON || p.format == formatJSONL {
		return p.writeJSON(report, p.format == formatJSON)
	}
	var rows []durable.PreflightRun
	for _, r := range report.Runs {
		if all || r.Diverged || r.Unknown || r.Err != "" {
			rows = append(rows, r)
		}
	}
	type row = durable.PreflightRun
	if len(rows) > 0 || p.format == formatID {
		if err := printRows(p, rows, func(r *row) string { return r.ID }, []column[row]{
			{title: "ID", isShortenedLast: true, text: func(r *row) string { return r.ID }},
			{title: "WORKFLOW", text: func(r *row) string { return r.Workflow }},
			{title: "STATUS", text: func(r *row) string { return string(r.Status) }},
			{title: "VERDICT", isShortenedLast: true, text: func(r *row) string { text, _ := preflightVerdict(r, "held"); return text }, color: func(r *row) color { _, c := preflightVerdict(r, "held"); return c }},
			{title: "CALL", text: func(r *row) string { return cmp.Or(r.Call, textIf(r.Diverged, wording.DivergedInput)) }},
			{title: "REASON", text: func(r *row) string { return cmp.Or(r.Reason, r.Err) }},
			{title: "NEXT", isWideOnly: true, text: func(r *row) string { return strings.Join(r.Next, ", ") }},
		}); err != nil || p.format == formatID {
			return err
		}
	}
	if len(report.Needed) == 0 {
		return nil
	}
	p.writeMessage("declared changes that live runs still need:")
	type change = durable.NeededChange
	return printRows(p, report.Needed, func(c *change) string { return c.Name }, []column[change]{
		{title: "CHANGE", isShortenedLast: true, text: func(c *change) string { return c.Name }},
		{title: "WORKFLOW", text: func(c *change) string { return c.Workflow }},
		{title: "KIND", text: func(c *change) string { return cmp.Or(string(c.Kind), "branch") }},
		{title: "RUNS", alignsRight: true, text: func(c *change) string { return fmt.Sprint(c.Runs) }},
	})
}

// preflightVerdict returns what was found for a run in a word, and its color. diverged is the word for a run that the code does not fit.
func preflightVerdict(r *durable.PreflightRun, diverged string) (string, color) {
	switch {
	case r.PinnedTo != "":
		return "pinned to " + r.PinnedTo, yellow
	case r.Diverged:
		return diverged, red
	case r.Unknown:
		return "unknown", yellow
	case r.Err != "":
		return "fails", red
	}
	return "fits", green
}
