package durablecli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func limitsCommand(f *globalFlags) []*cobra.Command {
	cmd := &cobra.Command{
		Use: "limits", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the limits of steps, with what they grant and who waits",
	}
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		limits, err := s.engine.Limits(ctx)
		if err != nil {
			return err
		}
		if len(limits) == 0 && s.format == formatTable {
			s.writeMessage("there is no limit")
		}
		return printRows(s.printer, limits, limitName, limitColumns())
	})}
}

func limitColumns() []column[durable.LimitInfo] {
	type row = durable.LimitInfo
	return []column[row]{
		{title: "LIMIT", isShortenedLast: true, text: func(l *row) string { return l.Name }},
		{title: "HELD", alignsRight: true, isShortenedLast: true, text: func(l *row) string { return fmt.Sprint(l.Held) }},
		{title: "OFFERED", alignsRight: true, isWideOnly: true, text: func(l *row) string { return fmt.Sprint(l.Offered) }},
		{title: "WAITING", alignsRight: true, isShortenedLast: true, text: func(l *row) string { return fmt.Sprint(l.Waiting) }},
		{title: "BOUNDS", isShortenedLast: true, text: func(l *row) string { return wording.LimitBounds(&l.LimitBounds) }},
		{title: "LONGEST LINES", text: func(l *row) string {
			var lines []string
			for _, k := range l.Keys {
				if k.Waiting > 0 {
					lines = append(lines, fmt.Sprintf("%s %d", k.Key, k.Waiting))
				}
			}
			return strings.Join(lines, ", ")
		}},
		{title: "FROM", isWideOnly: true, text: func(l *row) string {
			return wording.SettingsOrigin(l.Set != nil, l.SetBy, l.SetReason, l.DeclaredVersion)
		}},
		{title: "LAST CHANGE", isWideOnly: true, text: func(l *row) string { return wording.LastChange(l.LastChange) }},
	}
}
