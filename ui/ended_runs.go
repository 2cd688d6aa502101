package ui

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// endedTally counts the runs that ended in each minute of the last hour, by the events that the hub reads for its pages anyway. Therefore the sums
// cost the database nothing more, except for the first reading, which reads backwards from the newest event. If there are more new events than a
// reading reads, the remaining ones are estimated from those that were read.
type endedTally struct {
	mu           sync.Mutex
	hasCursor    bool   // there is a cursor
	cursor       string // the cursor of the last event that was read
	readAt       time.Time
	countedSince time.Time // the time from which events are counted
	sumsByMinute map[int64]*minuteEndCounts
}

// minuteEndCounts is how many runs ended in one minute.
type minuteEndCounts struct {
	ended, failed float64 // failed counts the runs that failed or expired
	estimated     bool
}

const (
	tallyPeriod       = time.Hour
	tallyReadInterval = 5 * time.Second // without a hub, an overview reads events at most once in this interval
	eventsPerRead     = 1000
	// mostTallyPages is how many pages of events are read when nothing is known, or nothing was read for a while.
	mostTallyPages = 5
	// minEstimateSpan is the shortest time span whose events are used for an estimate, because all events of one transaction have the same
	// time.
	minEstimateSpan = 100 * time.Millisecond
)

// endOfEvent reports whether the event is the end of a run, and whether the run failed.
func endOfEvent(e *durable.Event) (ended, failed bool) {
	switch e.Type {
	case durable.EventFailed, durable.EventExpired:
		return true, true
	case durable.EventCompleted, durable.EventCancelled:
		return true, false
	}
	return false, false
}

// countsForMinute returns the sum of the minute that contains at, and adds one to the tally if there is none.
func (t *endedTally) countsForMinute(at time.Time) *minuteEndCounts {
	minute := at.Unix() / 60
	s := t.sumsByMinute[minute]
	if s == nil {
		s = new(minuteEndCounts)
		t.sumsByMinute[minute] = s
	}
	return s
}

func (t *endedTally) countEvents(events []durable.Event) {
	for i := range events {
		ended, failed := endOfEvent(&events[i])
		if ended {
			t.countsForMinute(events[i].At).ended++
		}
		if failed {
			t.countsForMinute(events[i].At).failed++
		}
	}
}

// addEstimatedCounts adds the estimated counts between the last of the events and a later time, at the rate of the given events.
func (t *endedTally) addEstimatedCounts(events []durable.Event, to time.Time) {
	from := events[len(events)-1].At
	span := max(from.Sub(events[0].At), minEstimateSpan)
	var ended, failed float64
	for i := range events {
		e, f := endOfEvent(&events[i])
		if e {
			ended++
		}
		if f {
			failed++
		}
	}
	for from.Before(to) {
		next := from.Truncate(time.Minute).Add(time.Minute)
		if next.After(to) {
			next = to
		}
		share := float64(next.Sub(from)) / float64(span)
		s := t.countsForMinute(from)
		s.ended, s.failed, s.estimated = s.ended+ended*share, s.failed+failed*share, true
		from = next
	}
}

// refreshIfOld calls readNewEvents if nobody has called it for tallyReadInterval.
func (t *endedTally) refreshIfOld(ctx context.Context, e *durable.Engine) error {
	t.mu.Lock()
	recent := t.hasCursor && time.Since(t.readAt) < tallyReadInterval
	t.mu.Unlock()
	if recent {
		return nil
	}
	_, err := t.readNewEvents(ctx, e)
	return err
}

// readNewEvents reads and counts the events since the last call, and returns them. The first call, and the first call after an error, returns
// no events.
func (t *endedTally) readNewEvents(ctx context.Context, e *durable.Engine) (events []durable.Event, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.hasCursor && now.Sub(t.readAt) < tallyPeriod {
		events, err = t.countNewEvents(ctx, e, now)
	} else {
		err = t.countLastHour(ctx, e, now)
	}
	t.hasCursor, t.readAt = err == nil, now
	for minute := range t.sumsByMinute {
		if minute < now.Add(-tallyPeriod).Unix()/60 {
			delete(t.sumsByMinute, minute)
		}
	}
	return events, err
}

// countLastHour counts the events of the last hour, the newest first, in at most mostTallyPages pages.
func (t *endedTally) countLastHour(ctx context.Context, e *durable.Engine, now time.Time) error {
	t.sumsByMinute, t.cursor, t.countedSince = make(map[int64]*minuteEndCounts), "", now.Add(-tallyPeriod)
	p, oldest := durable.Page{Limit: eventsPerRead}, t.countedSince
	for range mostTallyPages {
		events, err := e.LatestEvents(ctx, p)
		if err != nil {
			return err
		}
		if p.Cursor == "" && len(events) > 0 {
			t.cursor = events[0].Cursor
		}
		t.countEvents(events)
		if len(events) < eventsPerRead {
			return nil
		}
		last := &events[len(events)-1]
		if last.At.Before(t.countedSince) {
			return nil
		}
		p.Cursor, oldest = last.Cursor, last.At
	}
	t.countedSince = oldest
	return nil
}

// countNewEvents counts the events after the last event that was read, and returns them. Events that it does not read are estimated.
func (t *endedTally) countNewEvents(ctx context.Context, e *durable.Engine, now time.Time) (all []durable.Event, err error) {
	pages := 1
	if now.Sub(t.readAt) > 2*tallyReadInterval {
		pages = mostTallyPages
	}
	for range pages {
		events, err := e.Events(ctx, durable.Page{Cursor: t.cursor, Limit: eventsPerRead})
		if err != nil {
			return nil, err
		}
		t.countEvents(events)
		if all = append(all, events...); len(events) > 0 {
			t.cursor = events[len(events)-1].Cursor
		}
		if len(events) < eventsPerRead {
			return all, nil
		}
	}
	newest, err := e.LatestEvents(ctx, durable.Page{Limit: 1})
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	t.addEstimatedCounts(all, newest[0].At)
	t.cursor = newest[0].Cursor
	return all, nil
}

// sparkline is a small drawing of the sums of the last hour, a bar for each minute.
type sparkline struct {
	Title, Path, Class string
	Sum, Label         string
}

// The size of a sparkline, in units of its viewBox.
const (
	sparkMinutes = 60
	sparkWidth   = 4 // of a minute
	sparkHeight  = 32
)

// newSparkline draws the sums, the oldest first.
func newSparkline(title, class string, sums []float64, estimated bool) sparkline {
	most, sum := 0.0, 0.0
	for _, n := range sums {
		most, sum = max(most, n), sum+n
	}
	var path strings.Builder
	for i, n := range sums {
		if n > 0 {
			h := max(math.Round(n/most*sparkHeight), 1)
			fmt.Fprintf(&path, "M%d %dv%gh%dv%gz", (sparkMinutes-len(sums)+i)*sparkWidth, sparkHeight, -h, sparkWidth-1, h)
		}
	}
	about := ""
	if estimated {
		about = "about "
	}
	return sparkline{title, path.String(), class, about + withThousandsCommas(int(math.Round(sum))), fmt.Sprintf("%s per minute: %s%s at most", title, about, withThousandsCommas(int(math.Round(most))))}
}

// endedRunsData is what the overview shows about the runs that ended.
type endedRunsData struct {
	Sparks []sparkline
	Note   string // for how long the runs were counted, if it is less than an hour
}

// endedRunsData draws the sums of the last hour.
func (v *requestView) endedRunsData() (*endedRunsData, error) {
	if v.hasLimitedVisibility() {
		return &endedRunsData{Note: "Runs that end are not counted here, because you may not see all runs."}, nil
	}
	if err := v.hub.ended.refreshIfOld(v.ctx(), v.engine); err != nil {
		return nil, err
	}
	return v.hub.ended.drawSparklines(v.at), nil
}

func (t *endedTally) drawSparklines(now time.Time) *endedRunsData {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ended, failed []float64
	estimated := false
	last := now.Unix() / 60
	for minute := max(last-sparkMinutes+1, t.countedSince.Unix()/60); minute <= last; minute++ {
		s := t.sumsByMinute[minute]
		if s == nil {
			s = new(minuteEndCounts)
		}
		ended, failed, estimated = append(ended, s.ended), append(failed, s.failed), estimated || s.estimated
	}
	d := &endedRunsData{Sparks: []sparkline{newSparkline("Ended", "completed", ended, estimated), newSparkline("Failed or expired", "failed", failed, estimated)}}
	if counted := now.Sub(t.countedSince); counted < tallyPeriod-time.Minute {
		d.Note = fmt.Sprintf("Only the last %s are counted: more events came before than are read at once. The rest of the hour fills while this page is followed.", wording.RoughDuration(max(counted, 0)))
	}
	return d
}
