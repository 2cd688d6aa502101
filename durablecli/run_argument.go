package durablecli

import (
	"encoding/json/jsontext"

	"github.com/spf13/cobra"
)

// requireOneRun is the Args of a command on one run.
func requireOneRun(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return newUsageError("give the ID or the UUID of one run")
	}
	return nil
}

// requireOneName is the Args of a command on one queue, limit or schedule.
func requireOneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return newUsageError("give one name")
	}
	return nil
}

// payloadText returns JSON in one line.
func payloadText(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	line := v.Clone()
	if err := line.Compact(jsontext.AllowDuplicateNames(true)); err != nil {
		return string(v)
	}
	return string(line)
}

// payloadLines returns JSON in several lines if it is long.
func payloadLines(v jsontext.Value) string {
	const oneLine = 80
	text := payloadText(v)
	if len(text) <= oneLine {
		return text
	}
	lines := v.Clone()
	if err := lines.Indent(jsontext.AllowDuplicateNames(true), jsontext.WithIndent("  ")); err != nil {
		return text
	}
	return string(lines)
}
