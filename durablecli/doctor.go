package durablecli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable/internal/doctor"
	"github.com/seed8ec063be/durable/internal/wording"
	"github.com/seed8ec063be/durable/schema"
)

// The types of the doctor's findings, which the dashboard shows too.
type (
	severity = doctor.Severity
	finding  = doctor.Finding
)

const (
	fine    = doctor.Fine
	warning = doctor.Warning
	problem = doctor.Problem
)

// newFinding returns a finding; without a fix, nothing is wrong.
func newFinding(level severity, check, text, fix string) finding {
	return finding{Level: level, Check: check, Finding: text, Fix: fix}
}

// problemsError returns an error that counts the problems and the warnings, or nil if there is no problem.
func problemsError(findings []finding) error {
	counts := make(map[severity]int)
	for _, f := range findings {
		counts[f.Level]++
	}
	if counts[problem] == 0 {
		return nil
	}
	text := "the doctor found " + wording.Count(counts[problem], "problem", "problems")
	if n := counts[warning]; n > 0 {
		text += " and " + wording.Count(n, "warning", "warnings")
	}
	return fmt.Errorf("%s, and exits with %d", text, ExitError)
}

func doctorCommand(f *globalFlags) []*cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", GroupID: groupMaintain, Args: cobra.NoArgs,
		Short: "Find what is wrong with the database, the workers and the runs, and say how to fix it",
		Long: "Find what is wrong with the database, the workers and the runs, and say how to fix it. The exit code is 1 if there is a problem,\n" +
			"and 0 if there are only warnings. The doctor changes nothing.",
	}
	do := func(ctx context.Context, s *session) error {
		findings, err := s.examine(ctx)
		if err != nil {
			return err
		}
		if err := s.printFindings(findings); err != nil {
			return err
		}
		return problemsError(findings)
	}
	return []*cobra.Command{f.withoutEngine(cmd, do)}
}

// printFindings writes the findings, each with its fix below: a column would shorten what is most important.
func (p *printer) printFindings(findings []finding) error {
	if p.format != formatTable && p.format != formatWide {
		return printRows(p, findings, func(f *finding) string { return f.Check }, nil)
	}
	colors := map[severity]color{fine: green, warning: yellow, problem: red}
	widest := 0
	for _, f := range findings {
		widest = max(widest, len(f.Check))
	}
	width, _ := p.size()
	var b strings.Builder
	for _, f := range findings {
		margin := strings.Repeat(" ", len(warning)+widest+2*len(gap))
		text := wrapWords(wording.Escape(f.Finding), width-len(margin))
		if f.Fix != "" {
			text = append(text, wrapWords("→ "+wording.Escape(f.Fix), width-len(margin))...)
		}
		fmt.Fprintf(&b, "%s%s%-*s%s%s\n", p.paint(colors[f.Level], fmt.Sprintf("%-*s", len(warning), f.Level)), gap, widest, f.Check, gap, strings.Join(text, "\n"+margin))
	}
	return p.write(b.String())
}

// wrapWords breaks a text between words into lines of at most width columns; zero or less, or too few for a sentence: one line.
func wrapWords(text string, width int) (lines []string) {
	const narrowestSentence = 20
	if width < narrowestSentence {
		return []string{text}
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && runewidth.StringWidth(line+" "+word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// examine returns all findings. It opens the database itself, because a problem of the database may keep the engine from opening
// it.
func (s *session) examine(ctx context.Context) (findings []finding, err error) {
	if s.givenEngine != nil {
		s.writeMessage("the settings of the database are not checked: call durable doctor with --url or --file for them")
		s.useEngine(ctx, s.givenEngine)
		findings, err = doctor.Examine(ctx, s.engine)
		for i := range findings {
			findings[i].Fix = s.withProgramName(findings[i].Fix)
		}
		return findings, err
	}
	target, err := s.findDatabase(s)
	if err != nil {
		return nil, err
	}
	d, err := s.inspect(ctx, target)
	if err != nil {
		return nil, &markedError{errDatabase, err}
	}
	defer d.close()
	have, err := d.schemaVersion(ctx)
	if err != nil {
		return nil, &markedError{errDatabase, err}
	}
	schemaState, usable := schemaFinding(have, migrationsOf(target))
	clock, err := clockFinding(ctx, d)
	if err != nil {
		return nil, &markedError{errDatabase, err}
	}
	settings, err := d.checkSettings(ctx)
	if err != nil {
		return nil, &markedError{errDatabase, err}
	}
	findings = append([]finding{schemaState, clock}, settings...)
	if !usable {
		return findings, nil
	}
	engine, closeStore, err := s.open(ctx, s)
	if err != nil {
		return append(findings, newFinding(problem, "open", err.Error(), "see the error")), nil
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	s.useEngine(ctx, engine)
	workers, err := s.engine.Workers(ctx)
	if err != nil {
		return findings, err
	}
	findings = append(findings, d.checkPools(workers, s.now())...)
	runs, err := doctor.Examine(ctx, s.engine)
	return append(findings, runs...), err
}

// schemaFinding compares the version of the schema with that of this program. It reports whether the engine can be opened.
func schemaFinding(have int, all []schema.Migration) (finding, bool) {
	const check = "schema"
	switch {
	case have == 0:
		return newFinding(problem, check, "the database has no tables of durable", "check the address and --schema, or create the tables with durable migrate up"), false
	case have < len(all):
		return newFinding(problem, check, fmt.Sprintf("the schema is at version %d, and this program needs %d", have, len(all)), "apply the missing migrations with durable migrate up, or use the version of the command that fits the workers"), false
	case have > len(all):
		return newFinding(problem, check, fmt.Sprintf("the schema is at version %d, and this program knows up to %d", have, len(all)), "update this program"), false
	}
	return newFinding(fine, check, fmt.Sprintf("version %d", have), ""), true
}

// clockFinding compares this machine's clock with the database's.
func clockFinding(ctx context.Context, d inspectedDatabase) (finding, error) {
	const check = "clock"
	const tolerated = time.Second
	before := time.Now()
	there, err := d.now(ctx)
	if err != nil {
		return finding{}, err
	}
	elapsed := time.Since(before)
	offset := there.Sub(before.Add(elapsed / 2)).Truncate(time.Millisecond)
	if offset.Abs() > tolerated+elapsed {
		return newFinding(warning, check, fmt.Sprintf("the database's clock differs by %v from this machine's", offset), "set the clocks by NTP: all times are the database's, so those that you give and read here are off by this much"), nil
	}
	return newFinding(fine, check, fmt.Sprintf("differs by %v from this machine's, read in %v", offset, elapsed.Truncate(10*time.Microsecond)), ""), nil
}
