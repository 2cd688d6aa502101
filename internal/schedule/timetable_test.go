package schedule

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func timetable(t testing.TB, s Settings) *Timetable {
	t.Helper()
	table, err := s.Timetable("s")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// between returns the times from the first on, and before the second.
func between(table *Timetable, from, to string) (times []string) {
	a, _ := time.Parse(time.RFC3339, from)
	b, _ := time.Parse(time.RFC3339, to)
	for at := table.NextAfter(a.Add(-time.Nanosecond)); !at.IsZero() && at.Before(b); at = table.NextAfter(at) {
		times = append(times, at.Format(time.RFC3339))
	}
	return times
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name     string
		s        Settings
		from, to string
		want     []string
	}{
		// Summer time began in Berlin on 2026-03-29 at 01:00 UTC: 02:00 became 03:00. It ended on 2026-10-25 at 01:00 UTC: 03:00
		// became 02:00.
		{
			"02:30 that does not exist fires at the change",
			Settings{Cron: "30 2 * * *", Location: "Europe/Berlin"},
			"2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
			[]string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		},
		{
			"02:30 that exists twice fires at the first",
			Settings{Cron: "30 2 * * *", Location: "Europe/Berlin"},
			"2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z",
			[]string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		{
			"several times of a skipped hour, and the time of the change, are one",
			Settings{Cron: "0,20,40 2,3 * * *", Location: "Europe/Berlin"},
			"2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T01:20:00Z", "2026-03-29T01:40:00Z"},
		},
		{
			"every hour passes over the skipped hour",
			Settings{Cron: "30 * * * *", Location: "Europe/Berlin"},
			"2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"},
		},
		{
			"every hour fires in both passes",
			Settings{Cron: "30 * * * *", Location: "Europe/Berlin"},
			"2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"},
		},
		{
			"@hourly does too",
			Settings{Cron: "@hourly", Location: "Europe/Berlin"},
			"2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		},
		{ // Midnight did not exist in Beirut on 2022-03-27.
			"@daily at a midnight that does not exist",
			Settings{Cron: "@daily", Location: "Asia/Beirut"},
			"2022-03-26T00:00:00Z", "2022-03-28T00:00:00Z",
			[]string{"2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"},
		},
		{ // Lord Howe Island changes by half an hour, at 02:00.
			"a change of half an hour",
			Settings{Cron: "15 2 * * *", Location: "Australia/Lord_Howe"},
			"2026-10-03T00:00:00Z", "2026-10-05T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"},
		},
		{ // Samoa left out 2011-12-30.
			"a day that does not exist fires at the change",
			Settings{Cron: "0 12 * * *", Location: "Pacific/Apia"},
			"2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z",
			[]string{"2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z", "2011-12-31T22:00:00Z"},
		},
		{
			"February 29",
			Settings{Cron: "0 0 29 2 *"},
			"2095-01-01T00:00:00Z", "2109-01-01T00:00:00Z",
			[]string{"2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"},
		},
		{
			"the 31st, in months that have one",
			Settings{Cron: "0 0 31 * *"},
			"2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z",
			[]string{"2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"},
		},
		{
			"a day of the month or of the week",
			Settings{Cron: "0 9 13 JAN,mar FRI"},
			"2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z",
			[]string{"2026-01-02T09:00:00Z", "2026-01-09T09:00:00Z", "2026-01-13T09:00:00Z", "2026-01-16T09:00:00Z", "2026-01-23T09:00:00Z", "2026-01-30T09:00:00Z"},
		},
		{"Sunday is 7", Settings{Cron: "0 0 * * 7"}, "2026-11-20T00:00:00Z", "2026-11-28T00:00:00Z", []string{"2026-11-22T00:00:00Z"}},
		{"@weekly", Settings{Cron: " @Weekly "}, "2026-11-20T00:00:00Z", "2026-11-28T00:00:00Z", []string{"2026-11-22T00:00:00Z"}},
		{"a week is aligned to Monday", Settings{Every: Duration(7 * 24 * time.Hour)}, "2026-11-20T00:00:00Z", "2026-12-01T00:00:00Z", []string{"2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"}},
		{"an interval within a minute", Settings{Every: Duration(20 * time.Second)}, "2026-11-20T00:00:01Z", "2026-11-20T00:01:00Z", []string{"2026-11-20T00:00:20Z", "2026-11-20T00:00:40Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := between(timetable(t, c.s), c.from, c.to); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestBadTimesNameTheFix(t *testing.T) {
	for text, s := range map[string]Settings{
		"set one of them":        {},
		"leave one of them out":  {Cron: "@daily", Every: Duration(time.Hour)},
		"leave Location out":     {Every: Duration(time.Hour), Location: "Europe/Berlin"},
		"whole seconds":          {Every: Duration(1500 * time.Millisecond)},
		"Europe/Berlin":          {Cron: "@daily", Location: "Europe/Atlantis"},
		"machine to machine":     {Cron: "@daily", Location: "Local"},
		"use five fields":        {Cron: "* * * *"},
		"use the field Location": {Cron: "TZ=Europe/Berlin 0 0 * * *"},
		"use the field Every":    {Cron: "@every 1h"},
		"February 30":            {Cron: "0 0 30 2 *"},
		"Cron \"0 0 0 1 *\"":     {Cron: "0 0 0 1 *"},
		"Cron \"61 * * * *\"":    {Cron: "61 * * * *"},
		"Cron \"* * * * * *\"":   {Cron: "* * * * * *"},
		"Cron \"@reboot\"":       {Cron: "@reboot"},
	} {
		if _, err := s.Timetable("s"); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want a text with %q", s, err, text)
		}
	}
}

// matches is an independent reference: it reports whether a wall time matches five fields of numbers, lists, ranges and steps.
func matches(expression string, wall time.Time) bool {
	f := strings.Fields(expression)
	in := func(field string, value, low, high int) bool {
		for part := range strings.SplitSeq(field, ",") {
			span, by, stepped := strings.Cut(part, "/")
			step := 1
			if stepped {
				step, _ = strconv.Atoi(by)
			}
			from, to := low, high
			if span != "*" {
				a, b, ranged := strings.Cut(span, "-")
				from, _ = strconv.Atoi(a)
				to = from
				if ranged {
					to, _ = strconv.Atoi(b)
				}
			}
			if value >= from && value <= to && (value-from)%step == 0 {
				return true
			}
		}
		return false
	}
	day, week := in(f[2], wall.Day(), 1, 31), in(f[4], int(wall.Weekday()), 0, 6)
	days := day && week
	if f[2] != "*" && f[4] != "*" {
		days = day || week
	}
	return in(f[0], wall.Minute(), 0, 59) && in(f[1], wall.Hour(), 0, 23) && in(f[3], int(wall.Month()), 1, 12) && days
}

// TestTimesAreThoseOfTheClocks compares the times around a change of summer time with a walk over all minutes.
func TestTimesAreThoseOfTheClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut", "America/St_Johns", "Africa/Casablanca", "Pacific/Apia", "Antarctica/Troll", "Europe/Dublin", "Africa/Cairo", "America/Nuuk", "Asia/Gaza", "America/Scoresbysund", "Pacific/Norfolk", "Asia/Pyongyang", "America/Caracas"}).Draw(t, "zone")
		field := func(name string, options ...string) string { return rapid.SampledFrom(options).Draw(t, name) }
		cron := strings.Join([]string{
			field("minute", "*", "*/7", "0", "30", "0,30,59", "10-20/5"), field("hour", "*", "*/2", "0", "2", "1,2,3", "22-23", "0-3"),
			field("day", "*", "1", "29", "31", "25-31", "*/2"), field("month", "*", "3", "10,11", "2"), field("week", "*", "0", "1-5", "6"),
		}, " ")
		month := rapid.SampledFrom([]time.Month{time.February, time.March, time.April, time.May, time.June, time.August, time.October, time.November, time.December}).Draw(t, "month")
		from := time.Date(rapid.IntRange(2008, 2032).Draw(t, "year"), month, rapid.IntRange(1, 31).Draw(t, "day of the start"), 0, 0, 0, 0, time.UTC)
		to := from.AddDate(0, 0, 9)
		s := Settings{Cron: cron, Location: zone}
		table, err := s.Timetable("s")
		if err != nil {
			if strings.Contains(err.Error(), "no day matches") {
				return
			}
			t.Fatal(err)
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		var want []time.Time
		if elapsed := strings.Fields(cron)[1][0] == '*'; elapsed {
			for at := from.Add(time.Minute); !at.After(to); at = at.Add(time.Minute) {
				if matches(cron, at.In(loc)) {
					want = append(want, at)
				}
			}
		} else {
			seen := make(map[string]bool) // wall times that have come
			last := from.Add(-48 * time.Hour)
			for at := last; !at.After(to); at = at.Add(time.Minute) {
				// Every wall time since the last minute has come now: one, none in a repeated hour, many after a skipped one.
				prev, wall := wallTimeAt(at.Add(-time.Minute), loc), wallTimeAt(at, loc)
				due := false
				for w := prev.Add(time.Minute); !w.After(wall); w = w.Add(time.Minute) {
					if key := w.String(); !seen[key] {
						seen[key] = true
						due = due || matches(cron, w)
					}
				}
				if due && at.After(from) {
					want = append(want, at)
				}
			}
		}
		var got []time.Time
		for at := table.NextAfter(from); !at.IsZero() && !at.After(to); at = table.NextAfter(at) {
			got = append(got, at)
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			i := 0
			for i < min(len(got), len(want)) && got[i].Equal(want[i]) {
				i++
			}
			t.Fatalf("%q in %q from %v: %d times, want %d; they differ from number %d on: %v, want %v",
				cron, zone, from, len(got), len(want), i, got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
		}
	})
}

func TestIDsOfRuns(t *testing.T) {
	at := time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)
	for name, want := range map[string]string{"nightly": "nightly@2026-11-22T01:30:00Z", "a@b": "a@b@2026-11-22T01:30:00Z"} {
		if got := RunID(name, at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got, ok := ParseRunID(want); !ok || !got.Equal(at) {
			t.Errorf("%q: %v, %v", want, got, ok)
		}
	}
	for _, id := range []string{"", "nightly", "@2026-11-22T01:30:00Z", "n@2026-11-22T03:30:00+02:00", "n@", "n@2026-11-22T01:30:00.000Z"} {
		if at, ok := ParseRunID(id); ok {
			t.Errorf("%q is taken for a scheduled time: %v", id, at)
		}
	}
}

// TestJitterIsSteady: one time of one schedule always gets the same delay, within the bound, and delays differ.
func TestJitterIsSteady(t *testing.T) {
	table := timetable(t, Settings{Cron: "@hourly", Jitter: Duration(10 * time.Minute)})
	again := timetable(t, Settings{Cron: "@hourly", Jitter: Duration(10 * time.Minute)})
	delays := make(map[time.Duration]bool)
	for at, n := table.NextAfter(time.Unix(0, 0)), 0; n < 100; at, n = table.NextAfter(at), n+1 {
		d := table.DueAt(at).Sub(at)
		if d < 0 || d >= 10*time.Minute || again.DueAt(at) != table.DueAt(at) {
			t.Errorf("%v is due after %v", at, d)
		}
		delays[d] = true
	}
	if len(delays) < 90 {
		t.Errorf("100 times have %d delays", len(delays))
	}
}
