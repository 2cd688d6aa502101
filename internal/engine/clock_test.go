package engine

import (
	"math"
	"testing"
	"time"
)

// However long the question for the database's time took, nothing is due before its time:
// the answer may be as old as the question.
func TestNothingIsDueEarly(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{0, time.Millisecond, 40 * time.Millisecond, time.Minute} {
		var c clock
		asked := time.Now()
		database := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		c.set(database, asked.Add(-trip))
		left := c.until(database.Add(time.Hour))
		if least := time.Hour - time.Since(asked); left < least {
			t.Errorf("a round trip of %v: an hour after the answer is due in %v", trip, left)
		}
		if c.until(database.Add(-time.Hour)) != 0 {
			t.Errorf("a round trip of %v: what has passed is not due", trip)
		}
	}
}

// A reading gives way to one that is less doubtful, to any when it is old enough, and to one
// that contradicts it.
func TestTheBetterReadingStays(t *testing.T) {
	t.Parallel()
	database := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for what, c := range map[string]struct {
		age, trip, ahead time.Duration // of the second reading, as it says
		taken            bool
	}{
		"as good, at once":       {0, time.Millisecond, 0, true},
		"better":                 {0, 100 * time.Microsecond, 0, true},
		"worse, at once":         {0, 20 * time.Millisecond, 0, false},
		"worse, much later":      {10 * time.Minute, 20 * time.Millisecond, 0, true},
		"worse, an hour ahead":   {0, 20 * time.Millisecond, time.Hour, true},
		"worse, an hour behind":  {0, 20 * time.Millisecond, -time.Hour, true},
		"worse, and 5 ms behind": {0, 20 * time.Millisecond, -5 * time.Millisecond, false},
	} {
		var k clock
		k.last.Store(&reading{database: database, local: time.Now().Add(-c.age), trip: 2 * time.Millisecond})
		first := k.last.Load()
		k.set(database.Add(c.age+c.ahead), time.Now().Add(-c.trip))
		if taken := k.last.Load() != first; taken != c.taken {
			t.Errorf("%s: taken %v, want %v", what, taken, c.taken)
		}
	}
}

// The time until what is further away than a Duration reaches is long, not zero.
func TestTheFarFutureIsFarAway(t *testing.T) {
	var c clock
	c.set(time.Now(), time.Now().Add(-time.Millisecond))
	for _, due := range []time.Time{time.Now().Add(math.MaxInt64), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
		if d := c.until(due); d == 0 {
			t.Errorf("it is nothing until %v", due)
		}
	}
}

// AG
func TestOverdueAfterOverflow(t *testing.T) {
	r := &run{e: &Engine{cfg: Config{ParkAfter: math.MaxInt64}}}
	if d := r.overdueAfter(); d < time.Hour {
		t.Errorf("with the longest ParkAfter a function has %v to return", d)
	}
}
