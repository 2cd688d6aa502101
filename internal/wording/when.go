package wording

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Age returns how long ago a time was, or how long until it comes, as people say it: "3m ago", "in 2h". A zero time is "-".
func Age(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "-"
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + RoughDuration(-d)
	default:
		return RoughDuration(d) + " ago"
	}
}

// PastAge is Age for a time that has come by the database's clock: if this machine's clock is behind, it is "now".
func PastAge(now, t time.Time) string {
	if t.After(now) {
		return "now"
	}
	return Age(now, t)
}

// AgeAndExact returns both forms of a time, for the description of one thing.
func AgeAndExact(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ExactTime(t) + " (" + Age(now, t) + ")"
}

// ExactTime returns a time in UTC, to the millisecond. A zero time is "-".
func ExactTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// RoughDuration returns a duration with the one or two units that matter: "850ms", "4.2s", "3m20s", "5h", "2d3h", "40d".
func RoughDuration(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(big, small time.Duration, bigUnit, smallUnit string) string {
		text := strconv.Itoa(int(d/big)) + bigUnit
		if rest := d % big / small; rest > 0 && d < 10*big {
			text += strconv.Itoa(int(rest)) + smallUnit
		}
		return text
	}
	switch {
	case d < time.Millisecond:
		return strconv.Itoa(int(d.Microseconds())) + "µs"
	case d < time.Second:
		return strconv.Itoa(int(d.Milliseconds())) + "ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64), ".0") + "s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return two(time.Minute, time.Second, "m", "s")
	case d < day:
		return two(time.Hour, time.Minute, "h", "m")
	default:
		return two(day, time.Hour, "d", "h")
	}
}

// DurationBetween returns the duration between two times; "-" if one of them is zero.
func DurationBetween(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "-"
	}
	return RoughDuration(max(0, to.Sub(from)))
}

// timeLayouts are the forms of a time in a flag, besides words and durations. Without a zone they are in the local time zone.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// ParseTime returns the time that the text of a flag means at the time now.
func ParseTime(text string, now time.Time) (time.Time, error) {
	midnight := func(days int) time.Time {
		y, m, d := now.Date()
		return time.Date(y, m, d+days, 0, 0, 0, 0, now.Location())
	}
	switch text {
	case "now":
		return now, nil
	case "today":
		return midnight(0), nil
	case "yesterday":
		return midnight(-1), nil
	case "tomorrow":
		return midnight(1), nil
	}
	if d, err := ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("the time %q is not understood: write 2026-11-22T15:04:05Z, \"2026-11-22 15:04\", 2026-11-22, now, today, yesterday, or how long ago, such as 90m or 2d", text)
}

// ParseDuration is time.ParseDuration with days: 2d, 1d12h.
func ParseDuration(text string) (time.Duration, error) {
	var days time.Duration
	if before, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.Atoi(before)
		if err != nil || n < 0 || n > 36500 {
			return 0, fmt.Errorf("the duration %q is not understood: write it as 90s, 45m, 12h, 2d or 1d12h", text)
		}
		if days = time.Duration(n) * 24 * time.Hour; after == "" {
			return days, nil
		}
		text = after
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("the duration %q is not understood: write it as 90s, 45m, 12h, 2d or 1d12h", text)
	}
	return days + d, nil
}

// FirstTime returns the first time that is not zero.
func FirstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// ShortDuration returns a duration without zero units at its end: "1h", not "1h0m0s".
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
