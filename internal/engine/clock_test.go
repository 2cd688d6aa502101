package engine

import (
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
