package durablecli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// age returns how long ago a time was, or how long until it comes, as people say it: "3m ago", "in 2h". A zero time is "-".
func (p *printer) age(t time.Time) string {
	switch d := p.now().Sub(t); {
	case t.IsZero():
		return "-"
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + about(-d)
	default:
		return about(d) + " ago"
	}
}

// past is age for a time that has come by the database's clock: if this machine's clock is behind, it is "now".
func (p *printer) past(t time.Time) string {
	if t.After(p.now()) {
		return "now"
	}
	return p.age(t)
}

// exact returns a time in UTC, to the millisecond. A zero time is "-".
func exact(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// ageAndExact returns both forms of a time, for the description of one thing.
func (p *printer) ageAndExact(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return exact(t) + " (" + p.age(t) + ")"
}

// about returns a duration with the one or two units that matter: "850ms", "4.2s", "3m20s", "5h", "2d3h", "40d".
func about(d time.Duration) string {
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

// took returns the duration between two times; "-" if one of them is zero.
func took(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "-"
	}
	return about(max(0, to.Sub(from)))
}

// timeLayouts are the forms of a time in a flag, besides words and durations. Without a zone they are in the local time zone.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// parseTime returns the time that the text of a flag means at the time now.
func parseTime(text string, now time.Time) (time.Time, error) {
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
	if d, err := parseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("the time %q is not understood: write 2026-11-22T15:04:05Z, \"2026-11-22 15:04\", 2026-11-22, now, today, yesterday, or how long ago, such as 90m or 2d", text)
}

// parseDuration is time.ParseDuration with days: 2d, 1d12h.
func parseDuration(text string) (time.Duration, error) {
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

// durationFlag is a flag whose value may have days.
type durationFlag struct{ d *time.Duration }

func (f durationFlag) String() string {
	if f.d == nil || *f.d == 0 {
		return ""
	}
	return about(*f.d)
}

func (f durationFlag) Set(text string) (err error) {
	*f.d, err = parseDuration(text)
	return err
}

func (f durationFlag) Type() string { return "duration" }

// firstTime returns the first time that is not zero.
func firstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
