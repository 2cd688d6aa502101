// Package wording says what runs, queues, limits, schedules and times are, in words, for the command and the dashboard.
package wording

import "fmt"

// ReasonAndActor returns a reason with its author.
func ReasonAndActor(reason, actor string) string {
	switch {
	case actor == "":
		return reason
	case reason == "":
		return "by " + actor
	}
	return reason + " (by " + actor + ")"
}

// WithReason returns what happened, with its reason and its author.
func WithReason(what, reason, actor string) string {
	if why := ReasonAndActor(reason, actor); why != "" {
		return what + ": " + why
	}
	return what
}

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
