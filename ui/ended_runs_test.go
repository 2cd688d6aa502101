package ui

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Events that were not read are estimated by those that were, minute by minute, and the drawing says that it is an estimate.
func TestEndedRunsAreEstimated(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 30, 30, 0, time.UTC)
	count := &endedTally{sumsByMinute: make(map[int64]*minuteEndCounts), countedSince: now.Add(-tallyPeriod)}
	var events []durable.Event
	for i := range 100 { // within ten seconds, one of four fails, and every other is of a run that goes on
		kind := [4]durable.EventType{durable.EventCompleted, durable.EventLeaseLost, durable.EventFailed, durable.EventLeaseLost}[i%4]
		events = append(events, durable.Event{Type: kind, At: now.Add(-100*time.Second + time.Duration(i)*100*time.Millisecond)})
	}
	count.countEvents(events)
	if d := count.drawSparklines(now); d.Note != "" || d.Sparks[0].Sum != "50" || d.Sparks[1].Sum != "25" || strings.Contains(d.Sparks[0].Label, "about") {
		t.Errorf("100 events are drawn as %+v", d)
	}
	count.addEstimatedCounts(events, now) // nine tenths of the time
	d := count.drawSparklines(now)
	if d.Sparks[0].Sum != "about 505" || !strings.HasPrefix(d.Sparks[1].Sum, "about 25") {
		t.Errorf("ten times as long is drawn as %+v", d)
	}
	if n := strings.Count(d.Sparks[0].Path, "M"); n != 3 {
		t.Errorf("100 s from 12:28:50 have %d bars: %s", n, d.Sparks[0].Path)
	}
	for minute, want := range map[int]float64{28: 50, 29: 303, 30: 152} {
		if got := count.sumsByMinute[now.Truncate(time.Hour).Unix()/60+int64(minute)]; got == nil || math.Abs(got.ended-want) > 3 {
			t.Errorf("in minute %d %+v runs ended, not %g", minute, got, want)
		}
	}
	count.countedSince = now.Add(-5 * time.Minute)
	if d := count.drawSparklines(now); !strings.Contains(d.Note, "Only the last 5m are counted") {
		t.Errorf("the note of a count of five minutes is %q", d.Note)
	}
	burst := make([]durable.Event, 1000)
	for i := range burst {
		burst[i] = durable.Event{Type: durable.EventCancelled, At: now}
	}
	one := &endedTally{sumsByMinute: make(map[int64]*minuteEndCounts)}
	one.addEstimatedCounts(burst, now.Add(time.Second))
	if got := one.sumsByMinute[now.Unix()/60].ended; got > 10_001 {
		t.Errorf("a second after 1000 events of one transaction is estimated as %g", got)
	}
}

// A bar is as high as its share of the highest, and each minute has its place.
func TestSpark(t *testing.T) {
	t.Parallel()
	sums := make([]float64, sparkMinutes)
	sums[0], sums[58], sums[59] = 1000, 500, 0.4
	got := newSparkline("Ended", "completed", sums, false)
	want := fmt.Sprintf("M0 %dv-32h3v32zM232 %[1]dv-16h3v16zM236 %[1]dv-1h3v1z", sparkHeight)
	if got.Path != want || got.Sum != "1,500" || got.Label != "Ended per minute: 1,000 at most" {
		t.Errorf("the spark is %+v", got)
	}
	if got := newSparkline("Ended", "completed", []float64{3}, false).Path; !strings.HasPrefix(got, "M236 ") {
		t.Errorf("the only minute is drawn at %s", got)
	}
	if got := newSparkline("Ended", "completed", make([]float64, 60), false); got.Path != "" || got.Sum != "0" {
		t.Errorf("nothing is drawn as %+v", got)
	}
}
