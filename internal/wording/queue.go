package wording

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
)

// QueueState returns the state of a queue in words. past is how a time that has come is written.
func QueueState(past func(time.Time) string, q *durable.QueueInfo) string {
	switch {
	case !q.PausedAt.IsZero():
		return WithReason("paused "+past(q.PausedAt), q.PauseReason, q.PausedBy)
	case q.Waiting == 0:
		return "idle"
	case q.BlockedBy == durable.BlockedByMaxExecuting:
		return "full: as many runs execute as may"
	case q.BlockedBy == durable.BlockedByMaxInProgress:
		return "full: as many runs are in progress as may be"
	case q.BlockedBy == durable.BlockedByRate:
		return "waits for the rate"
	case q.BlockedBy == durable.BlockedByKey:
		return "full: bounds of their keys hold back all runs that wait"
	}
	return "flows"
}

// QueueSettings returns the bounds of a queue, as in "max executing 10, rate 5 per 1s".
func QueueSettings(s *durable.QueueSettings) string {
	var parts []string
	add := func(name string, n int) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, n))
		}
	}
	rate := func(name string, r durable.QueueRate) {
		if text := Rate(r); text != "" {
			parts = append(parts, name+" "+text)
		}
	}
	add("max executing", s.MaxExecuting)
	add("max executing per worker", s.MaxExecutingPerWorker)
	add("max in progress", s.MaxInProgress)
	add("max executing per key", s.MaxExecutingPerKey)
	add("max in progress per key", s.MaxInProgressPerKey)
	rate("rate", s.Rate)
	rate("rate per key", s.RatePerKey)
	add("depth", s.Depth)
	if s.Closed {
		parts = append(parts, "closed")
	}
	return cmp.Or(strings.Join(parts, ", "), "no bounds")
}

// SettingsOrigin tells where settings come from: an operator, or the code.
func SettingsOrigin(set bool, by, reason, version string) string {
	if set {
		return WithReason("set", reason, by)
	}
	return "declared" + textIf(version != "", " by version "+version)
}

// LastChange returns what an operator did last; empty for nothing.
func LastChange(c *durable.OperatorChange) string {
	if c == nil {
		return ""
	}
	return WithReason(fmt.Sprintf("%s %s", c.Verb, ExactTime(c.At)), c.Reason, c.By)
}

// Rate returns a rate as in "10 per 1m, burst 5"; empty if there is none.
func Rate(r durable.QueueRate) string {
	if r.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d per %s", r.Count, ShortDuration(r.Period)) + textIf(r.Burst > 1, fmt.Sprintf(" with bursts of %d", r.Burst))
}
