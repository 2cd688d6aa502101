// Package schedule computes the times of schedules, and decides what happens at each of them. It reads no clock and no database:
// the stores call its functions inside their transactions.
//
// # Times
//
// A schedule has either a cron expression in a time zone, or an interval. Cron expressions match wall times. If the field of the
// hours begins with a star, elapsed time counts: an hour that exists twice has its times twice, and an hour that does not exist
// has none. Otherwise the wall clock counts: a time that exists twice counts once, the first time, and a time that does not exist
// counts at the moment of the change. An interval is aligned to the beginning of the year 1 in UTC, a Monday, as
// [time.Time.Truncate] is.
//
// # What is recorded
//
// The row of a schedule holds its settings and a cursor: every time up to the cursor has been decided. The transaction that moves
// the cursor on also starts the run and records the fire. The ID of the run is the name of the schedule and the time, so that the
// run of one time cannot be started twice.
package schedule

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"hash/fnv"
	"time"
	_ "time/tzdata" // a worker without a time zone database fires every schedule too

	"github.com/seed8ec063be/durable/internal/store"
)

// The values of Settings.Overlap.
const (
	OverlapSkip   = "skip"
	OverlapWait   = "wait"
	OverlapCancel = "cancel"
	OverlapAllow  = "allow"
)

// Limits of settings.
const (
	ShortestEvery = time.Second
	MinCatchUp    = 10 * time.Second // a time that is less late than this is never missed
	LongestJitter = 24 * time.Hour
	MaxName       = store.MaxScheduleName
)

// Duration is a time.Duration with a readable text.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Settings are what a user sets of a schedule. Zero durations are defaults that the root package has replaced.
type Settings struct {
	Cron     string            `json:"cron,omitzero"`
	Every    Duration          `json:"every,omitzero"`
	Location string            `json:"location,omitzero"`
	Workflow string            `json:"workflow"`
	Queue    string            `json:"queue"`
	Priority int16             `json:"priority,omitzero"`
	GroupKey string            `json:"group_key,omitzero"` // the queue needs a row
	Weight   int32             `json:"weight,omitzero"`    // of GroupKey; zero: 1
	Input    jsontext.Value    `json:"input,omitzero"`
	Overlap  string            `json:"overlap"`
	CatchUp  Duration          `json:"catch_up"`
	Jitter   Duration          `json:"jitter,omitzero"`
	Timeout  Duration          `json:"timeout,omitzero"`
	Tags     map[string]string `json:"tags,omitzero"`

	// EncodedInput is the input if a codec has encoded it. Input then only shows its size. UnreadableInput is set if this process
	// has a codec that cannot decode it: payload.Problem returns why. It is never stored.
	EncodedInput    []byte `json:"encoded_input,omitzero"`
	UnreadableInput []byte `json:"unreadable_input,omitzero"`
}

// Encode returns the settings as they are stored.
func (s *Settings) Encode() ([]byte, error) { return json.Marshal(s, json.Deterministic(true)) }

// Decode returns stored settings.
func Decode(b []byte) (*Settings, error) {
	s := new(Settings)
	return s, json.Unmarshal(b, s)
}

// sameTimes reports whether both have the same scheduled times.
func sameTimes(a, b *Settings) bool {
	return a != nil && b != nil && a.Cron == b.Cron && a.Every == b.Every && a.Location == b.Location
}

// Timetable is the scheduled times of a schedule.
type Timetable struct {
	name   string
	cron   *cronExpression
	zone   *time.Location
	every  time.Duration
	jitter time.Duration
}

// Timetable returns the times of the schedule with this name. The error names the field and the fix.
func (s *Settings) Timetable(name string) (*Timetable, error) {
	t := &Timetable{name: name, every: time.Duration(s.Every), jitter: time.Duration(s.Jitter), zone: time.UTC}
	var err error
	switch {
	case s.Cron == "" && t.every == 0:
		return nil, errors.New("neither Cron nor Every is set: set one of them")
	case s.Cron != "" && t.every != 0:
		return nil, fmt.Errorf("field Cron %q and Every %v are both set: leave one of them out", s.Cron, t.every)
	case t.every != 0 && s.Location != "":
		return nil, fmt.Errorf("field Location %q with Every %v: intervals are aligned in UTC: leave Location out, or use Cron", s.Location, t.every)
	case t.every != 0 && (t.every < ShortestEvery || t.every%time.Second != 0):
		return nil, fmt.Errorf("field Every is %v: it must be a positive number of whole seconds", t.every)
	case t.every != 0:
		return t, nil
	}
	if s.Location == "Local" {
		return nil, errors.New(`field Location is "Local", which differs from machine to machine: name the zone, such as Europe/Berlin`)
	}
	if t.zone, err = time.LoadLocation(s.Location); err != nil {
		return nil, fmt.Errorf("field Location %q: %w: use a name of the IANA time zone database, such as Europe/Berlin", s.Location, err)
	}
	if t.cron, err = parseCron(s.Cron); err != nil {
		return nil, fmt.Errorf("field Cron %q: %w: use five fields, such as 30 2 * * MON-FRI, or @daily", s.Cron, err)
	}
	return t, nil
}

// NextAfter returns the first scheduled time after t, in UTC. Zero means there is none.
func (t *Timetable) NextAfter(at time.Time) time.Time {
	switch {
	case t.cron == nil:
		return at.UTC().Truncate(t.every).Add(t.every)
	case t.cron.usesElapsedTime:
		return t.cron.afterElapsed(at, t.zone).UTC()
	default:
		return t.cron.afterWall(at, t.zone).UTC()
	}
}

// DueAt returns when the scheduled time is due: up to Jitter later, always the same for one time of one schedule.
func (t *Timetable) DueAt(at time.Time) time.Time {
	if at.IsZero() || t.jitter <= 0 {
		return at
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s@%d", t.name, at.Unix()) // a hash's Write never fails
	return at.Add(time.Duration(h.Sum64() % uint64(t.jitter))).Truncate(time.Microsecond)
}

// RunID returns the ID of the run of a scheduled time.
func RunID(name string, at time.Time) string { return name + "@" + at.UTC().Format(time.RFC3339Nano) }

// ParseRunID returns the time in an ID that RunID returned, and reports whether there is one.
func ParseRunID(id string) (at time.Time, ok bool) {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '@' {
			at, err := time.Parse(time.RFC3339Nano, id[i+1:])
			return at.UTC(), err == nil && i > 0 && RunID(id[:i], at) == id
		}
	}
	return at, false
}
