package durable

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/schedule"
	"github.com/seed8ec063be/durable/internal/store"
)

// Schedule starts runs of a workflow at given times. Each scheduled time starts at most one run, however many workers there
// are. The fields Overlap and CatchUp determine which scheduled times start no run. Declare a schedule in Config.Schedules,
// with the typed input of [Workflow.Schedule], or set a schedule with [Engine.SetSchedule].
//
// The ID of a scheduled run is the name of the schedule, an at sign and the scheduled time in UTC:
// "nightly@2026-11-22T01:30:00Z". [ScheduledAt] returns the scheduled time inside the run. If a run with the ID of the
// scheduled run exists already, the schedule records the scheduled time as failed, and starts no run for that time.
//
// # Times
//
// Cron has five fields: minute, hour, day of the month, month, day of the week. A field is a star, a number, a range 1-5, a
// step */15 or 8-18/2, or a list of numbers, ranges and steps. Months and days of the week may be names: JAN, MON. Sunday is 0
// or 7. If both the day of the month and the day of the week are other than a star, a day that matches one of them is enough.
// @yearly, @monthly, @weekly, @daily and @hourly are short forms.
//
// Cron times are local times in Location. On a day when summer time begins or ends, the hour field decides which times fire. If
// the hour field begins with a star, or Cron is @hourly, the schedule follows elapsed time: times in an hour that exists twice
// fire twice, and times in an hour that does not exist do not fire. With any other hour field, the schedule follows the wall
// clock: 30 2 * * * fires once on every day. On a day with two times 02:30, the schedule fires at the first 02:30; on a day
// without a 02:30, at the moment of the change (03:00 of the new time).
//
// Every is aligned as [time.Time.Truncate] is: to multiples of the interval since the beginning of the year 1 in UTC, which was
// a Monday. An Every of one hour fires on the hour, one of a day at midnight in UTC, and one of a week on Monday.
type Schedule struct {
	// Name is the unique name of the schedule, of at most 480 bytes without control characters.
	Name string
	// Cron is a cron expression. A schedule sets either Cron or Every.
	Cron string
	// Every is an interval of whole seconds.
	Every time.Duration
	// Location is the time zone of Cron, such as Europe/Berlin. The default time zone is UTC.
	Location string

	// Workflow is the name of the workflow. If no worker executes the workflow yet, the runs wait until a worker does.
	Workflow string
	// Queue is the queue of the runs. The default queue is the queue of the workflow, if this engine executes the workflow, and
	// otherwise [DefaultQueue].
	Queue string
	// Priority is the priority of every run of the schedule, as with the option [Priority].
	Priority int
	// GroupKey and Weight are the group key and the weight of every run of the schedule, as with the options [GroupKey] and
	// [KeyWeight]. With a GroupKey, [Engine.SetSchedule] returns [ErrInvalidConfig] if the queue has no settings. While its queue
	// has no settings, a schedule with a GroupKey starts no run, and ScheduleInfo.Problem says so. A Weight of zero means 1.
	GroupKey string
	Weight   int
	// Input is the input of every run of the schedule. The input is encoded when the schedule is set.
	Input any
	// Timeout and Tags are the timeout and the tags of every run of the schedule, as with the options [Timeout] and [Tag]. A
	// Timeout of zero means no timeout.
	Timeout time.Duration
	Tags    map[string]string

	// Overlap determines what the schedule does if the previous run has not ended at a scheduled time. The default is
	// [OverlapSkip].
	Overlap Overlap
	// CatchUp is how late a scheduled time may start its run, if no worker was running at that time. Overlap applies to each
	// overdue time, from the oldest to the newest, so that only [OverlapAllow] starts a run for each overdue time. Scheduled
	// times that passed longer ago than CatchUp are recorded as missed; [Engine.Backfill] starts their runs. The default
	// CatchUp is one hour, the minimum 10 s.
	CatchUp time.Duration
	// Jitter delays each start by a random time of up to Jitter, so that many schedules do not start at once. The random delay
	// of a scheduled time is the same each time it is computed. Jitter does not change the scheduled time. The maximum is 24
	// hours.
	Jitter time.Duration

	encode func(limit int) ([]byte, error) // set by Workflow.Schedule
}

// Overlap determines what a schedule does if the previous run of the schedule has not ended when a scheduled time comes. Only
// runs that the schedule started itself count as previous runs, and not the runs of [Engine.TriggerSchedule] and
// [Engine.Backfill].
type Overlap string

// The values of Schedule.Overlap.
const (
	// OverlapSkip starts no run for a scheduled time at which the previous run has not ended. After an outage of all workers,
	// the oldest overdue time starts its run, unless the previous run has not ended. With OverlapSkip, the other overdue times
	// start no run.
	OverlapSkip Overlap = schedule.OverlapSkip
	// OverlapWait starts the run when the previous run has ended. At most one scheduled time waits for the end of the previous
	// run: a newer scheduled time replaces the scheduled time that waits. After an outage of all workers, the oldest overdue
	// time starts its run, the newest overdue time waits, and the times between the two start no run.
	OverlapWait Overlap = schedule.OverlapWait
	// OverlapCancel cancels the previous run, as [Engine.Cancel] does, and starts the run when the previous run has ended.
	// After an outage of all workers, the newest overdue time starts its run, and the other overdue times start no run.
	OverlapCancel Overlap = schedule.OverlapCancel
	// OverlapAllow starts the run at once, even if the previous run has not ended. After an outage of all workers, each overdue
	// time starts its run.
	OverlapAllow Overlap = schedule.OverlapAllow
)

const defaultCatchUp = time.Hour

// Schedule returns the schedule with this workflow, its queue, and a typed input:
//
//	durable.Config{Schedules: []durable.Schedule{
//		Report.Schedule(ReportInput{Format: "pdf"}, durable.Schedule{Name: "nightly", Cron: "30 2 * * *", Location: "Europe/Berlin"}),
//	}}
func (w *Workflow[I, O]) Schedule(in I, s Schedule) Schedule {
	s.Workflow, s.Input = w.Name(), in
	s.encode = func(limit int) ([]byte, error) {
		if err := w.checkUsable(); err != nil {
			return nil, err
		}
		return encodeAndCheckDecodes(in, limit)
	}
	if s.Queue == "" && w != nil {
		s.Queue = w.queue
	}
	return s
}

// ScheduledAt returns the scheduled time of the run, in UTC, if a [Schedule] started it. For a run that
// [Engine.TriggerSchedule] started, ScheduledAt returns the time of the TriggerSchedule call. For all other runs, including
// forks and children, ScheduledAt returns the zero time. Every replay returns the same time.
func ScheduledAt(c *Ctx) (at time.Time) {
	if store.IsScheduledUUID(c.scope.RunUUID()) {
		at, _ = schedule.ParseRunID(c.ID())
	}
	return at
}

// checkScheduleName returns ErrInvalidName for a name that no schedule can have.
func checkScheduleName(name string) error {
	if err := naming.Check("schedule", name); err != nil {
		return err
	}
	if len(name) > schedule.MaxName {
		return fmt.Errorf("%w: the name of schedule %.40q... has %d bytes: at most %d are allowed", ErrInvalidName, name, len(name), schedule.MaxName)
	}
	return nil
}

// toStoredSettings checks the schedule, and returns it as it is stored.
func (s *Schedule) toStoredSettings(cfg *Config) (*schedule.Settings, error) {
	if err := checkScheduleName(s.Name); err != nil {
		return nil, err
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: schedule %q: "+format, append([]any{ErrInvalidConfig, s.Name}, args...)...)
	}
	var workflow Definition
	for _, w := range cfg.Workflows {
		if w != nil && w.Name() == s.Workflow {
			workflow = w
		}
	}
	queue := s.Queue
	if queue == "" && workflow != nil {
		queue = workflow.queueName()
	}
	out := &schedule.Settings{
		Cron: strings.TrimSpace(s.Cron), Every: schedule.Duration(s.Every), Location: s.Location, Workflow: s.Workflow, Queue: firstNonZero(queue, DefaultQueue),
		Overlap: string(firstNonZero(s.Overlap, OverlapSkip)), CatchUp: schedule.Duration(firstNonZero(s.CatchUp, defaultCatchUp)), Jitter: schedule.Duration(s.Jitter),
		Timeout: schedule.Duration(atLeastMicrosecond(s.Timeout)), Priority: int16(s.Priority), GroupKey: s.GroupKey, Weight: int32(s.Weight),
	}
	if _, err := out.Timetable(s.Name); err != nil {
		return nil, refuse("%w", err)
	}
	switch Overlap(out.Overlap) {
	case OverlapSkip, OverlapWait, OverlapCancel, OverlapAllow:
	default:
		return nil, refuse("Overlap is %q: use OverlapSkip, OverlapWait, OverlapCancel or OverlapAllow", out.Overlap)
	}
	switch {
	case time.Duration(out.CatchUp) < schedule.MinCatchUp:
		return nil, refuse("CatchUp is %v: it must be at least %v, because a worker may be that late", s.CatchUp, schedule.MinCatchUp)
	case s.Jitter < 0 || s.Jitter > schedule.LongestJitter:
		return nil, refuse("Jitter is %v: it must be from 0 to %v", s.Jitter, schedule.LongestJitter)
	case s.Timeout < 0:
		return nil, refuse("Timeout is %v: it must be positive, or zero for none", s.Timeout)
	case s.Weight < 0 || s.Weight > MaxKeyWeight:
		return nil, refuse("Weight is %d: it must be from 1 to %d, or zero for 1", s.Weight, MaxKeyWeight)
	case s.Weight != 0 && s.GroupKey == "":
		return nil, refuse("Weight is %d without a GroupKey: set GroupKey, or leave Weight out", s.Weight)
	}
	if err := checkPriority(s.Priority); err != nil {
		return nil, fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	if s.GroupKey != "" {
		if err := naming.Check("group key", s.GroupKey); err != nil {
			return nil, fmt.Errorf("schedule %q: GroupKey: %w", s.Name, err)
		}
	}
	if err := errors.Join(naming.Check("workflow", out.Workflow), naming.Check("queue", out.Queue)); err != nil {
		return nil, fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	for key, value := range s.Tags {
		if err := naming.CheckTag(key, value); err != nil {
			return nil, fmt.Errorf("schedule %q: %w", s.Name, err)
		}
		if out.Tags == nil {
			out.Tags = make(map[string]string, len(s.Tags))
		}
		out.Tags[key] = value
	}
	input, err := s.encodeInput(cfg.MaxPayload)
	if err == nil && workflow != nil {
		err = workflow.checkInput(input)
	}
	if err != nil {
		return nil, fmt.Errorf("schedule %q: the input: %w", s.Name, err)
	}
	out.Input = input
	return out, nil
}

func (s *Schedule) encodeInput(limit int) ([]byte, error) {
	if s.encode != nil {
		return s.encode(limit)
	}
	if raw, ok := s.Input.(jsontext.Value); ok { // as Schedules returned it
		if !raw.IsValid() {
			return nil, fmt.Errorf("%w: it is not valid JSON", ErrNotEncodable)
		}
		return raw, nil
	}
	return encodeAndCheckDecodes(s.Input, limit)
}

// checkInput returns an error if the input does not decode into the workflow's type.
func (w *Workflow[I, O]) checkInput(input []byte) error {
	if _, err := decode[I](input); err != nil {
		return fmt.Errorf("%w: workflow %q cannot read it: %w", ErrNotEncodable, w.name, err)
	}
	return nil
}

func (w *Workflow[I, O]) queueName() string { return w.queue }

// declaredSchedules checks Config.Schedules.
func declaredSchedules(cfg *Config) ([]engine.DeclaredSchedule, error) {
	names := make(map[string]bool, len(cfg.Schedules))
	var all []engine.DeclaredSchedule
	for i := range cfg.Schedules {
		s := &cfg.Schedules[i]
		settings, err := s.toStoredSettings(cfg)
		if err != nil {
			return nil, fmt.Errorf("Config.Schedules[%d]: %w", i, err)
		}
		if names[s.Name] {
			return nil, fmt.Errorf("%w: schedule %q is in Config.Schedules twice: names are keys", ErrInvalidConfig, s.Name)
		}
		names[s.Name] = true
		all = append(all, engine.DeclaredSchedule{Name: s.Name, Settings: settings})
	}
	return all, nil
}
