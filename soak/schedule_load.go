package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	scheduleActor   = "planner"
	backfillBefore  = 10 * time.Second // how long before the schedules exist the first backfilled time may be
	longestBackfill = 20 * time.Second
	longestPause    = 3 * time.Second
	longestCall     = 5 * time.Second // of a trigger or a backfill
)

// scheduleLoad sets the schedules with overlap policies, pauses and resumes one of them, and triggers and backfills them.
type scheduleLoad struct {
	controller *controller
	shift      *durable.Workflow[string, string]
	seed       uint64
	began      time.Time
	setAt      map[string]time.Time // by schedule: when it had been set; from then on it decides all its times

	failures
	triggers  []*triggerCall
	backfills []*backfillCall
	pauses    []changePeriod
	ended     map[string]bool // IDs of the runs that finish has cancelled
}

// triggerCall is a call of TriggerSchedule. Its reason is unique.
type triggerCall struct {
	schedule, reason, id string
	failed               bool // whether it took effect is not known
}

// backfillCall is a call of Backfill. Its reason is unique.
type backfillCall struct {
	schedule, reason string
	from, to         time.Time
	decided          time.Time // the schedule had decided the times up to this one before the call
	result           durable.BackfillResult
	failed           bool // which of its runs were started is not known
}

// changePeriod is the time from before a pause until after its resume.
type changePeriod struct{ from, to time.Time }

func newScheduleLoad(c *controller, seed uint64) *scheduleLoad {
	return &scheduleLoad{controller: c, shift: shift(c.ledger), seed: seed, setAt: make(map[string]time.Time), ended: make(map[string]bool)}
}

// begin sets the schedules, and changes, triggers and backfills them until ctx ends. The function that it returns waits for the last call.
func (l *scheduleLoad) begin(ctx context.Context) (done func(), err error) {
	l.began = time.Now().UTC().Truncate(time.Second)
	for name, overlap := range shiftSchedules {
		err := l.controller.SetSchedule(ctx, l.shift.Schedule(name, durable.Schedule{Name: name, Every: shiftEvery, Overlap: overlap}))
		if err != nil {
			return nil, err
		}
		l.setAt[name] = time.Now()
	}
	life := context.WithoutCancel(ctx)
	var atWork sync.WaitGroup
	loop := func(stream uint64, least, most time.Duration, call func(n int, r *rand.Rand) error) {
		r := rand.New(rand.NewPCG(l.seed, stream))
		atWork.Go(func() {
			for n := 0; sleepCtx(ctx, least+time.Duration(r.Int64N(int64(most-least)))) == nil; n++ {
				if err := call(n, r); err != nil {
					l.fail(err)
					return
				}
			}
		})
	}
	for client := range 2 {
		loop(20+uint64(client), 300*time.Millisecond, 1500*time.Millisecond, func(n int, r *rand.Rand) error {
			return l.trigger(life, fmt.Sprintf("trigger-%d-%d", client, n), r)
		})
		loop(30+uint64(client), time.Second, 4*time.Second, func(n int, r *rand.Rand) error {
			return l.backfill(life, fmt.Sprintf("backfill-%d-%d", client, n), r)
		})
	}
	loop(40, 2*time.Second, 5*time.Second, func(_ int, r *rand.Rand) error { return l.pause(life, r) })
	return atWork.Wait, nil
}

// mayHaveHappened reports whether a call with this error may have taken effect, because the database was away.
func mayHaveHappened(ctx context.Context, err error) bool {
	return errors.Is(err, durable.ErrUnavailable) || errors.Is(err, durable.ErrLocked) || ctx.Err() != nil
}

// trigger starts a run of a schedule now. A repeated call could start a second run, so it is made once.
func (l *scheduleLoad) trigger(ctx context.Context, reason string, r *rand.Rand) error {
	names := []string{skippingSchedule, waitingSchedule, cancelingSchedule, pausedSchedule}
	t := &triggerCall{schedule: names[r.IntN(len(names))], reason: reason}
	bounded, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	id, err := l.controller.TriggerSchedule(bounded, t.schedule, durable.Actor(scheduleActor), durable.Reason(reason))
	if err != nil && !mayHaveHappened(bounded, err) {
		return fmt.Errorf("trigger schedule %s: %w", t.schedule, err)
	}
	t.id, t.failed = id, err != nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.triggers = append(l.triggers, t)
	return nil
}

// backfill starts the runs of a range of times. Some of the times have a run, some had none because of the overlap policy or a pause, and
// some are older than the schedule, or not decided yet.
func (l *scheduleLoad) backfill(ctx context.Context, reason string, r *rand.Rand) error {
	b := &backfillCall{schedule: skippingSchedule, reason: reason}
	if r.IntN(2) == 0 {
		b.schedule = pausedSchedule
	}
	decided, err := l.lastDecided(ctx, b.schedule)
	if err != nil || decided.IsZero() {
		return err
	}
	first := l.began.Add(-backfillBefore)
	b.decided = decided
	b.from = first.Add(time.Duration(r.Int64N(int64(decided.Sub(first)))))
	b.to = b.from.Add(time.Millisecond + time.Duration(r.Int64N(int64(longestBackfill))))
	bounded, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	b.result, err = l.controller.Backfill(bounded, b.schedule, b.from, b.to, durable.Actor(scheduleActor), durable.Reason(reason))
	if err != nil && !mayHaveHappened(bounded, err) {
		return fmt.Errorf("backfill schedule %s: %w", b.schedule, err)
	}
	b.failed = err != nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backfills = append(l.backfills, b)
	return nil
}

// lastDecided returns the newest scheduled time that the schedule itself has decided, or zero.
func (l *scheduleLoad) lastDecided(ctx context.Context, name string) (at time.Time, err error) {
	_, err = l.controller.retry(ctx, func() error {
		return l.controller.place.readReplicated(ctx, func() error {
			at = time.Time{}
			fires, err := l.controller.ScheduleFires(ctx, name, durable.Page{Limit: 100})
			for _, x := range fires {
				if x.Kind == durable.FireScheduled && x.At.After(at) {
					at = x.At
				}
			}
			return err
		})
	})
	if err != nil {
		return at, fmt.Errorf("fires of schedule %s: %w", name, err)
	}
	return at, nil
}

// fires returns all fires of the schedules.
func (l *scheduleLoad) fires(ctx context.Context) (map[string][]durable.ScheduleFire, error) {
	all := make(map[string][]durable.ScheduleFire)
	for name := range shiftSchedules {
		for cursor := ""; ; {
			page, err := l.controller.ScheduleFires(ctx, name, durable.Page{Cursor: cursor, Limit: 1000})
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			all[name], cursor = append(all[name], page...), page[len(page)-1].Cursor
		}
	}
	return all, nil
}

// pause pauses and resumes a schedule.
func (l *scheduleLoad) pause(ctx context.Context, r *rand.Rand) error {
	p := changePeriod{from: time.Now()}
	_, err := l.controller.retry(ctx, func() error {
		return l.controller.PauseSchedule(ctx, pausedSchedule, durable.Actor(scheduleActor))
	})
	if err != nil {
		return fmt.Errorf("pause schedule %s: %w", pausedSchedule, err)
	}
	_ = sleepCtx(ctx, time.Duration(r.Int64N(int64(longestPause)))) // ctx has no end
	tries, err := l.controller.retry(ctx, func() error {
		return l.controller.ResumeSchedule(ctx, pausedSchedule, durable.Actor(scheduleActor))
	})
	if err != nil && !(tries > 1 && errors.Is(err, durable.ErrState)) { // an earlier try has resumed it
		return fmt.Errorf("resume schedule %s: %w", pausedSchedule, err)
	}
	p.to = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pauses = append(l.pauses, p)
	return nil
}

// finish pauses the schedules when they have decided what is due, ends the runs that only a cancel ends, and waits until all runs have
// ended.
func (l *scheduleLoad) finish(ctx context.Context) error {
	begun := time.Now()
	for name := range shiftSchedules {
		for {
			decided, err := l.lastDecided(ctx, name)
			if err != nil {
				return err
			}
			if decided.After(begun) {
				break
			}
			if sleepCtx(ctx, 100*time.Millisecond) != nil {
				return fmt.Errorf("I7: schedule %s has decided no time since %v", name, begun)
			}
		}
		_, err := l.controller.retry(ctx, func() error { return l.controller.PauseSchedule(ctx, name) })
		if err != nil {
			return fmt.Errorf("pause schedule %s: %w", name, err)
		}
	}
	if err := l.endLast(ctx); err != nil {
		return err
	}
	if err := l.controller.awaitAll(ctx, shiftName); err != nil {
		return err
	}
	return l.joined()
}

// endLast cancels the runs of schedule canceling that have not ended: no later time does.
func (l *scheduleLoad) endLast(ctx context.Context) error {
	_, err := l.controller.retry(ctx, func() error {
		page, err := l.controller.List(ctx, durable.Filter{
			Workflow: shiftName, IDPrefix: cancelingSchedule + "@", Status: []durable.Status{durable.StatusPending, durable.StatusRunning, durable.StatusWaiting},
		}, durable.Page{Limit: 1000})
		if err != nil {
			return err
		}
		for i := range page.Runs {
			id := page.Runs[i].ID
			_, at, err := parseShift(id)
			if err != nil || !isEndless(cancelingSchedule, at) {
				continue
			}
			l.ended[id] = true
			if _, err := l.controller.Cancel(ctx, id, durable.Actor("controller")); err != nil && !errors.Is(err, durable.ErrState) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cancel the last run of schedule %s: %w", cancelingSchedule, err)
	}
	return nil
}
