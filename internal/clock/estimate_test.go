package clock

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

var database = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// However long the query for the database's time took, nothing is due before its time: the result may be
// as old as the query.
func TestNothingIsDueEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, trip := range []time.Duration{0, time.Millisecond, 40 * time.Millisecond, time.Minute} {
			var e Estimate
			e.AddReading(database, time.Now().Add(-trip))
			if left := e.Until(database.Add(time.Hour)); left < time.Hour {
				t.Errorf("a round trip of %v: an hour after the result is due in %v", trip, left)
			}
			if left := e.Until(database.Add(-time.Hour)); left != 0 {
				t.Errorf("a round trip of %v: a time that has passed is due in %v", trip, left)
			}
		}
	})
}

// A reading replaces the estimate if it is at least as certain, or if the two cannot both be true. A slow
// reading is discarded until the estimate is as uncertain.
func TestTheMoreExactReadingOfTheClockIsKept(t *testing.T) {
	for what, c := range map[string]struct {
		age, trip, ahead time.Duration // of the second reading
		taken            bool
	}{
		"as good, at once":       {0, 2 * time.Millisecond, 0, true},
		"better":                 {0, 100 * time.Microsecond, 0, true},
		"worse, at once":         {0, 20 * time.Millisecond, 0, false},
		"worse, much later":      {10 * time.Minute, 20 * time.Millisecond, 0, true},
		"worse, an hour ahead":   {0, 20 * time.Millisecond, time.Hour, true},
		"worse, an hour behind":  {0, 20 * time.Millisecond, -time.Hour, true},
		"worse, and 5 ms behind": {0, 20 * time.Millisecond, -5 * time.Millisecond, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e Estimate
				e.AddReading(database, time.Now().Add(-2*time.Millisecond))
				first := e.lastReading.Load()
				time.Sleep(c.age)
				e.AddReading(first.databaseTime.Add(c.age+c.ahead), time.Now().Add(-c.trip))
				if taken := e.lastReading.Load() != first; taken != c.taken {
					t.Errorf("taken %v, want %v", taken, c.taken)
				}
			})
		})
	}
}

// databaseClock is a Reader of a database whose clock is shifted.
type databaseClock struct {
	shift time.Duration
	err   error
	reads int
}

func (c *databaseClock) Now(context.Context) (time.Time, error) {
	c.reads++
	return time.Now().Add(c.shift), c.err
}

// Ensure reads the clock again a minute after the last reading, so that a process without heartbeats notices that a clock has changed. If the
// database is not available then, the estimate stays.
func TestTheClockIsReadAgainEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Estimate
		c := &databaseClock{}
		ensure := func(when string, reads int, off time.Duration) {
			t.Helper()
			c.reads = 0
			if err := e.EnsureReading(t.Context(), c); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if got := time.Until(e.Now()).Round(time.Second); c.reads != reads || got != off {
				t.Errorf("%s: %d reads, want %d; the estimate is %v off, want %v", when, c.reads, reads, got, off)
			}
		}
		ensure("at first", 1, 0)
		c.shift = time.Hour
		ensure("at once", 0, 0)
		time.Sleep(59 * time.Second)
		ensure("59 s later", 0, 0)
		time.Sleep(time.Second)
		ensure("a minute later", 1, time.Hour)
		ensure("at once", 0, time.Hour)
		c.shift, c.err = 0, errors.New("away")
		time.Sleep(time.Minute)
		ensure("the database is away", 1, time.Hour)
		ensure("the database is away", 0, time.Hour)
		c.err = nil
		time.Sleep(time.Minute)
		ensure("it is back", 1, 0)
		time.Sleep(50 * time.Second)
		e.AddReading(time.Now(), time.Now().Add(-time.Second)) // less certain than the estimate, and in agreement with it
		time.Sleep(50 * time.Second)
		ensure("50 s after a heartbeat", 0, 0)
	})
}

// The time passes at the speed of the process's monotonic clock, in whole microseconds and in UTC.
func TestTimePassesBetweenReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Estimate
		e.AddReading(database.In(time.FixedZone("", 3600)), time.Now().Add(-2*time.Second))
		time.Sleep(time.Minute + 1234*time.Nanosecond)
		if now, want := e.Now(), database.Add(time.Second+time.Minute+time.Microsecond); now != want {
			t.Errorf("it is %v, want %v", now, want)
		}
	})
}

// Until adds the doubt, which is half of the round trip at first and grows by the drift of two clocks. CallAt
// calls its function when this time is over.
func TestWaitsAddTheUncertaintyOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Estimate
		e.AddReading(database, time.Now().Add(-40*time.Millisecond))
		now := database.Add(20 * time.Millisecond)
		if left := e.Until(now.Add(time.Hour)); left != time.Hour+20*time.Millisecond {
			t.Errorf("an hour from now is due in %v", left)
		}
		if left := e.Until(now.Add(-19 * time.Millisecond)); left != time.Millisecond {
			t.Errorf("a time that may not have passed yet is due in %v", left)
		}
		time.Sleep(10_000 * time.Second)
		if doubt := e.MaxError(); doubt != time.Second+20*time.Millisecond {
			t.Errorf("after 10,000 s the doubt is %v", doubt)
		}
		began, called := time.Now(), make(chan time.Duration, 2)
		e.CallAt(e.Now().Add(time.Hour), func() { called <- time.Since(began) })
		stopped := e.CallAt(e.Now().Add(time.Hour), func() { called <- 0 })
		if !stopped.Stop() || stopped.Stop() {
			t.Error("a timer was not stopped exactly once")
		}
		if late := <-called; late != time.Hour+time.Second+20*time.Millisecond {
			t.Errorf("an hour from then came after %v", late)
		}
	})
}

// The time until a date that is further away than a Duration reaches is long, not zero.
func TestTheFarFutureIsFarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Estimate
		e.AddReading(time.Now(), time.Now().Add(-time.Millisecond))
		for _, due := range []time.Time{time.Now().Add(math.MaxInt64), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
			if left := e.Until(due); left < math.MaxInt64-time.Second {
				t.Errorf("%v is due in %v", due, left)
			}
		}
	})
}

// readings is a database whose queries take the given times. A negative time is a query that fails.
type readings struct {
	trips []time.Duration
	asked int
}

var errUnreadable = errors.New("unreadable")

func (r *readings) Now(context.Context) (time.Time, error) {
	trip := r.trips[min(r.asked, len(r.trips)-1)]
	r.asked++
	if trip < 0 {
		return time.Time{}, errUnreadable
	}
	time.Sleep(trip)
	return database, nil
}

// Ensure repeats a slow first reading, keeps the best one, and reads nothing once the time is known.
func TestEnsureGetsAGoodReading(t *testing.T) {
	const slow = 100 * time.Millisecond
	for what, c := range map[string]struct {
		trips []time.Duration
		asked int
		doubt time.Duration
		err   error
	}{
		"good at once":             {trips: []time.Duration{goodRoundTrip}, asked: 1, doubt: goodRoundTrip / 2},
		"slow, then good":          {trips: []time.Duration{slow, goodRoundTrip}, asked: 2, doubt: goodRoundTrip / 2},
		"not much faster":          {trips: []time.Duration{slow, slow * 4 / 5}, asked: 2, doubt: slow * 2 / 5},
		"faster each time":         {trips: []time.Duration{slow, slow / 2, slow / 4, slow / 8, 0}, asked: maxReadings, doubt: slow / 16},
		"fails":                    {trips: []time.Duration{-1}, asked: 1, err: errUnreadable},
		"fails after a slow start": {trips: []time.Duration{slow, -1}, asked: 2, doubt: slow / 2},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e Estimate
				r := &readings{trips: c.trips}
				if err := e.EnsureReading(t.Context(), r); !errors.Is(err, c.err) || r.asked != c.asked {
					t.Errorf("%d queries, %v", r.asked, err)
				}
				if c.err != nil {
					return
				}
				if doubt := e.MaxError(); doubt != c.doubt {
					t.Errorf("the doubt is %v, want %v", doubt, c.doubt)
				}
				if err := e.EnsureReading(t.Context(), r); err != nil || r.asked != c.asked {
					t.Errorf("the known time was read again: %v", err)
				}
			})
		})
	}
}

// Steps read the time several times each, so this must cost no allocation.
func TestNowAllocatesNothing(t *testing.T) {
	c := Clock(new(Estimate))
	c.AddReading(database, time.Now())
	if n := testing.AllocsPerRun(100, func() { c.Now(); _ = c.EnsureReading(t.Context(), nil) }); n != 0 {
		t.Errorf("Now and Ensure allocate %v times", n)
	}
}

func BenchmarkNow(b *testing.B) {
	c := Clock(new(Estimate))
	c.AddReading(database, time.Now())
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}
