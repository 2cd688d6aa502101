package model_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/schedule"
	"github.com/seed8ec063be/durable/internal/store"
)

// scheduleSight is what can be read of a schedule and its runs.
type scheduleSight struct {
	row   *store.Schedule
	state *schedule.State // of the row
	fires map[time.Time]store.ScheduleFire
	open  []*store.Run    // that have not ended
	runs  map[string]bool // the IDs of all runs
}

func (c *scheduleCheck) read() *scheduleSight {
	s := c.bed.handles[0]
	fail := func(err error) {
		if err != nil {
			c.diverge("read: %v", err)
		}
	}
	seen := &scheduleSight{fires: make(map[time.Time]store.ScheduleFire), runs: make(map[string]bool), state: new(schedule.State)}
	var err error
	seen.row, err = s.ScheduleByName(c.ctx, scheduleName)
	fail(err)
	if seen.row != nil {
		seen.state, err = schedule.DecodeState(seen.row)
		fail(err)
	}
	fires, err := s.LatestScheduleFires(c.ctx, scheduleName, time.Time{}, 1000)
	fail(err)
	ofTime := make(map[uuid.UUID]bool) // the runs of scheduled times
	for _, f := range fires {
		seen.fires[f.At.UTC()] = f
		ofTime[f.Run.UUID] = f.Kind == store.FireScheduled && f.Outcome == store.FireStarted
	}
	runs, err := s.ListRuns(c.ctx, store.Filter{}, uuid.UUID{}, 1000)
	fail(err)
	live := 0
	for _, r := range runs {
		if seen.runs[r.Name] {
			c.diverge("the ID %s is there twice", r.Name)
		}
		if seen.runs[r.Name] = true; !r.Status.IsTerminal() {
			seen.open = append(seen.open, r)
			if ofTime[r.UUID] {
				live++
			}
		}
	}
	if live > 1 && !c.overlaps {
		c.diverge("%d runs are live, and none may overlap: %+v", live, fires)
	}
	for _, f := range fires {
		started := f.Outcome == store.FireStarted
		if id := schedule.RunID(scheduleName, f.At); started != seen.runs[id] && !c.taken[id] || started && c.taken[id] {
			c.diverge("the fire %+v, and its run exists: %v", f, seen.runs[id])
		}
	}
	return seen
}

// checkDecided objects to a time that was forgotten, or started although it is too long ago.
func (c *scheduleCheck) checkDecided() {
	if c.settings == nil || c.paused || c.now.Before(c.decided) {
		return
	}
	every, oldest := time.Duration(c.settings.Every), c.now.Add(-time.Duration(c.settings.CatchUp))
	for at := c.decided.Truncate(every).Add(every); !at.After(c.now); at = at.Add(every) {
		switch f, fired := c.seen.fires[at]; {
		case at.Before(oldest) && fired && f.Kind == store.FireScheduled && f.Outcome != store.FireMissed && f.FiredAt.Equal(c.now):
			c.diverge("%s was decided at %s, later than it is made up for: %+v", offset(at), offset(c.now), f)
		case !at.Before(oldest) && !fired:
			c.diverge("%s was not decided at %s", offset(at), offset(c.now))
		}
	}
	c.decided = c.now
	for at, f := range c.seen.fires {
		if f.Outcome == store.FireWaiting && !at.Equal(c.seen.row.WaitingAt) {
			c.diverge("%s waits, and the row says that %s does", offset(at), offset(c.seen.row.WaitingAt))
		}
	}
}

func (c *scheduleCheck) claim() (string, call) {
	q := store.ClaimQuery{Worker: workers[0], EpochNonce: c.nonce(), Filter: served[0], Limit: 5, MaxSuspects: 1, Now: c.now, LeaseUntil: c.now.Add(1000 * time.Hour)}
	return "claim", func(ctx context.Context, s store.Store) error {
		_, err := s.Claim(ctx, q)
		return err
	}
}

// changeRun ends, pauses, resumes, cancels or terminates a run.
func (c *scheduleCheck) changeRun() (string, call) {
	if len(c.seen.open) == 0 {
		return c.claim()
	}
	r := pick(c.check, "run", c.seen.open)
	if r.Status == store.Running && c.dice("ends", 4) > 0 {
		return c.end(r)
	}
	o := store.ControlRequest{
		Verb: pick(c.check, "verb", []store.ControlVerb{store.VerbPause, store.VerbResume, store.VerbCancel, store.VerbTerminate}),
		Runs: []uuid.UUID{r.UUID}, Now: c.now, Error: []byte("cancelled"),
	}
	return fmt.Sprintf("verb %d for %s", o.Verb, r.Name), func(ctx context.Context, s store.Store) error {
		mine := o
		return s.ControlRuns(ctx, &mine)
	}
}

func (c *scheduleCheck) end(r *store.Run) (string, call) {
	w := store.OwnershipEnd{UUID: r.UUID, Now: c.now, Epoch: r.Epoch, Status: store.Completed, EndedAt: c.now}
	if r.Control&store.CancelRequested != 0 {
		w.Status = store.Cancelled
	}
	return fmt.Sprintf("%s becomes %s", r.Name, w.Status), func(ctx context.Context, s store.Store) error {
		mine := w
		return commitNow(ctx, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&mine}}, func() store.WriteOutcome { return mine.Outcome })
	}
}

// drain lets all runs end while the clock stands still: the time that waits is started, too.
func (c *scheduleCheck) drain() {
	c.now = c.latest
	if c.paused {
		c.pause()
	}
	for range 30 {
		c.fire()
		c.other(c.claim())
		if len(c.seen.open) == 0 {
			for at, f := range c.seen.fires {
				if f.Outcome == store.FireWaiting {
					c.diverge("%s waits for ever: %+v", offset(at), c.seen.row)
				}
			}
			return
		}
		for _, r := range c.seen.open {
			switch r.Status {
			case store.Paused:
				c.other("resume "+r.Name, func(ctx context.Context, s store.Store) error {
					return s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{r.UUID}, Now: c.now})
				})
			case store.Running:
				c.other(c.end(r))
			}
		}
	}
	c.diverge("runs never end: %+v", c.seen.row)
}
