package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// cronParser parses five fields, and @daily and alike. If both the day of the month and the day of the week are restricted, a day
// that matches one of them is enough, as in every cron. Ten years of search find the next February 29, also around 2100.
var cronParser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom).WithMaxSearchYears(10)

// cronExpression is a parsed expression.
type cronExpression struct {
	spec            cron.Schedule
	usesElapsedTime bool // the field of the hours begins with a star
}

// parseCron returns the parsed expression.
func parseCron(text string) (*cronExpression, error) {
	trimmed := strings.TrimSpace(text)
	lower := strings.ToLower(trimmed)
	switch {
	case strings.HasPrefix(lower, "tz=") || strings.HasPrefix(lower, "cron_tz="):
		return nil, fmt.Errorf("the expression names a time zone: use the field Location")
	case strings.HasPrefix(lower, "@every"):
		return nil, fmt.Errorf("the expression is an interval: use the field Every")
	case strings.HasPrefix(lower, "@"):
		trimmed = lower
	}
	spec, err := cronParser.Parse(trimmed)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "option"): // of the parser, which a user cannot set
		return nil, fmt.Errorf("the characters L, W, # and H of other systems are not supported")
	default:
		return nil, err
	}
	e := &cronExpression{spec: spec, usesElapsedTime: trimmed == "@hourly"}
	if fields := strings.Fields(trimmed); len(fields) == 5 {
		e.usesElapsedTime = fields[1][0] == '*' || fields[1][0] == '?'
	}
	if e.after(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("no day matches the expression, such as February 30")
	}
	return e, nil
}

// after returns the first time after t that matches the expression. t is a wall clock's time, written in UTC, so that the parser
// knows no changes of summer time; zone.go maps it to a moment. Zero means there is none.
func (e *cronExpression) after(t time.Time) time.Time { return e.spec.Next(t) }
