package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// While the database is not available, all loops of a worker fail several times a second. The log says so once, again after 10 s with the
// reason that the later failures have, then once a minute, and once that the database is available again.
func TestAnOutageIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		log := c.recordLog()
		lines := func() (all []string) {
			for line := range strings.Lines(log.String()) {
				all = append(all, line)
			}
			log.Reset()
			return all
		}
		heartbeat := func() {
			t.Helper()
			if _, err := c.w.renewLeases(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		outage := func(length time.Duration) {
			for began := time.Now(); time.Since(began) < length; time.Sleep(100 * time.Millisecond) {
				c.w.logFailure("could not claim runs", fmt.Errorf("claim: %w: refused", store.ErrUnavailable))
				c.w.logFailure("could not renew leases", fmt.Errorf("renew: %w: refused", store.ErrUnavailable))
			}
		}
		for range 2 {
			outage(5 * time.Minute)
			got := lines()
			if len(got) != 6 { // after 0, 10, 70, 130, 190 and 250 s
				t.Errorf("an outage of five minutes is logged %d times:\n%s", len(got), got)
			}
			for _, line := range got {
				if !strings.Contains(line, "level=WARN") || !strings.Contains(line, "the database is not available") || !strings.Contains(line, "refused") {
					t.Errorf("logged: %s", line)
				}
			}
			heartbeat()
			heartbeat()
			if got := lines(); len(got) != 1 || !strings.Contains(got[0], "level=INFO") || !strings.Contains(got[0], "available again") {
				t.Errorf("after the outage: %s", got)
			}
			time.Sleep(time.Minute)
		}
		for range 20 { // one loop fails, although the heartbeats succeed
			outage(time.Second)
			heartbeat()
		}
		if got := lines(); len(got) != 4 {
			t.Errorf("failures between successful heartbeats are logged %d times in 20 s, with their ends:\n%s", len(got), got)
		}
		c.ends(t)
	})
}

// A failure that is no outage is logged at once, when its error changes, and otherwise once a minute.
func TestARejectionIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		log := c.recordLog()
		for i := range 5 * 60 {
			err := errors.New("permission denied for table run")
			if i >= 90 {
				err = errors.New("permission denied for table step")
			}
			c.w.logFailure("could not claim runs", err)
			c.w.logFailure("could not look for due schedules", err)
			time.Sleep(time.Second)
		}
		for _, message := range []string{"could not claim runs", "could not look for due schedules"} {
			if n := strings.Count(log.String(), message); n != 6 { // after 0, 60, 90, 150, 210 and 270 s
				t.Errorf("%q is logged %d times in five minutes", message, n)
			}
		}
		c.ends(t)
	})
}
