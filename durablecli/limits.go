package durablecli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func limitsCommand(f *frame) []*cobra.Command {
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
			s.say("there is no limit")
		}
		return print(s.printer, limits, limitName, limitColumns())
	})}
}

func limitColumns() []column[durable.LimitInfo] {
	type row = durable.LimitInfo
	return []column[row]{
		{title: "LIMIT", keep: true, text: func(l *row) string { return l.Name }},
		{title: "HELD", right: true, keep: true, text: func(l *row) string { return fmt.Sprint(l.Held) }},
		{title: "OFFERED", right: true, wide: true, text: func(l *row) string { return fmt.Sprint(l.Offered) }},
		{title: "WAITING", right: true, keep: true, text: func(l *row) string { return fmt.Sprint(l.Waiting) }},
		{title: "BOUNDS", keep: true, text: func(l *row) string { return wording.Bounds(&l.LimitBounds) }},
		{title: "LONGEST LINES", text: func(l *row) string {
			var lines []string
			for _, k := range l.Keys {
				if k.Waiting > 0 {
					lines = append(lines, fmt.Sprintf("%s %d", k.Key, k.Waiting))
				}
			}
			return strings.Join(lines, ", ")
		}},
		{title: "FROM", wide: true, text: func(l *row) string {
			return wording.SettingsOrigin(l.Set != nil, l.SetBy, l.SetReason, l.DeclaredVersion)
		}},
		{title: "LAST CHANGE", wide: true, text: func(l *row) string { return wording.Change(l.LastChange) }},
	}
}
