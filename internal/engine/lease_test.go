package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A lease whose row others hold is the worker's until it looks again, which is soon; one that is
// renewed is its own for a whole lease; one that is lost ends the run here.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		r := c.run("first")
		for _, step := range []struct {
			what  string
			pulse store.Pulse
			busy  bool
			left  time.Duration
			gone  bool
		}{
			{"renewed", store.Pulse{}, false, time.Minute, false},
			{"busy", store.Pulse{Busy: []uuid.UUID{r.row.ID}}, true, 20 * time.Second, false},
			{"lost", store.Pulse{Lost: []uuid.UUID{r.row.ID}}, false, 5 * time.Second, true},
		} {
			r.extend(c.w.e.clock.now().Add(5 * time.Second))
			c.pulse = step.pulse
			busy, err := c.w.renew(t.Context(), []*run{r})
			if err != nil || busy != step.busy {
				t.Errorf("%s: busy %v, %v", step.what, busy, err)
			}
			if left := r.lease().Sub(c.w.e.clock.now()); left != step.left || r.gone() != step.gone {
				t.Errorf("%s: %v are left of the lease, want %v; gone: %v", step.what, left, step.left, r.gone())
			}
		}
		synctest.Wait()
		c.ends(t)
	})
}
