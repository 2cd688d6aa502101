package clock

import (
	"math"
	"slices"
	"testing"
	"time"
)

// still is a Manual with the timers that were scheduled on it.
type still struct {
	now time.Time
	due []time.Time
}

type stillTimer struct {
	of  *still
	due time.Time
}

func (s *still) Now() time.Time { return s.now }

func (s *still) CallAt(due time.Time, _ func()) Timer {
	s.due = append(s.due, due)
	return &stillTimer{s, due}
}

func (t *stillTimer) Stop() bool {
	i := slices.Index(t.of.due, t.due)
	if i >= 0 {
		t.of.due = slices.Delete(t.of.due, i, i+1)
	}
	return i >= 0
}

// The clock of a test is exact: neither the database nor the process's own clock changes its time.
func TestManualIsExact(t *testing.T) {
	m := &still{now: database}
	c := FromManualClock(m)
	if err := c.EnsureReading(t.Context(), nil); err != nil {
		t.Error(err)
	}
	c.AddReading(database.Add(time.Hour), time.Now())
	if c.Now() != database || c.RowTimeOverride() != database || c.MaxError() != 0 || !c.IsManual() {
		t.Errorf("it is %v; a row arrives at %v; the doubt is %v", c.Now(), c.RowTimeOverride(), c.MaxError())
	}
	for due, want := range map[time.Time]time.Duration{
		database.Add(-1):                     0,
		database:                             0,
		database.Add(time.Minute):            time.Minute,
		database.AddDate(1000, 0, 0):         math.MaxInt64,
		database.Add(-math.MaxInt64).Add(-1): 0,
	} {
		if left := c.Until(due); left != want {
			t.Errorf("%v is due in %v, want %v", due, left, want)
		}
	}
}

// The timers of a manual clock follow its time.
func TestManualTimers(t *testing.T) {
	m := &still{now: database}
	c := FromManualClock(m)
	at := c.CallAt(database.Add(time.Hour), func() {})
	after := c.AfterFunc(time.Second, func() {})
	if want := []time.Time{database.Add(time.Hour), database.Add(time.Second)}; !slices.Equal(m.due, want) {
		t.Errorf("scheduled for %v, want %v", m.due, want)
	}
	if !at.Stop() || !after.Stop() || after.Stop() || len(m.due) != 0 {
		t.Errorf("after the timers were stopped, %v is scheduled", m.due)
	}
	m.now = database.Add(time.Minute)
	if after.Reset(time.Second) || !after.Reset(2*time.Second) {
		t.Error("Reset does not report whether the timer was active")
	}
	if want := []time.Time{database.Add(time.Minute + 2*time.Second)}; !slices.Equal(m.due, want) {
		t.Errorf("scheduled again for %v, want %v", m.due, want)
	}
}

// The estimate leaves the times of arrival to the database, and needs no test to move it.
func TestEstimateIsNotManual(t *testing.T) {
	var e Estimate
	e.AddReading(database, time.Now())
	if e.IsManual() || !e.RowTimeOverride().IsZero() {
		t.Errorf("manual: %v; a row arrives at %v", e.IsManual(), e.RowTimeOverride())
	}
}
