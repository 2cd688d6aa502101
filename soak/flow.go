package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	fewAtOnce    = 3  // units of limit few, until that is changed
	pacedRate    = 20 // units of limit paced in a second, until that is changed
	pacedBurst   = 2
	keyedAtOnce  = 2 // units of each key of limit keyed
	keyedRate    = 20
	keyedBurst   = 2
	keyedKeys    = 3
	limitedLive  = 12 // runs of workflow limited that are live at a time
	limitedSteps = 3
	tickEvery    = time.Second // of schedule tick
)

var (
	few   = durable.NewLimit("few", durable.Concurrent(fewAtOnce))
	paced = durable.NewLimit("paced", durable.Rate(pacedRate, time.Second), durable.Burst(pacedBurst))
	keyed = durable.NewLimit("keyed", durable.Concurrent(keyedAtOnce), durable.Rate(keyedRate, time.Second), durable.Burst(keyedBurst))
)

// limitKeyName returns the name of a limit key in the ledger.
func limitKeyName(limit, key string) string {
	if key == "" {
		return limit
	}
	return limit + "/" + key
}

// limited returns the workflow whose steps have limits. The ledger says when each function begins and ends.
func limited(book *ledger) *durable.Workflow[int, int] {
	return durable.Define("limited", func(c *durable.Ctx, n int) (int, error) {
		hold := func(limitKey string) func(context.Context) error {
			return func(ctx context.Context) error {
				e := entry{Kind: kindPermitHeld, Run: c.RunID(), Exec: rand.Text(), Step: limitKey, Attempt: durable.Attempt(ctx)}
				book.add(e)
				err := sleepCtx(ctx, time.Duration(10+n*7%50)*time.Millisecond)
				e.Kind = kindPermitFreed
				book.add(e)
				return err
			}
		}
		key := strconv.Itoa(n % keyedKeys)
		for i := range limitedSteps {
			err := c.Do("few-"+strconv.Itoa(i), hold(few.Name()), few.Permit(), durable.Retry(retryPolicy))
			if err != nil {
				return 0, err
			}
			err = c.Do("keyed-"+strconv.Itoa(i), hold(limitKeyName(keyed.Name(), key)), keyed.Permit(durable.LimitKey(key)), durable.Retry(retryPolicy))
			if err != nil {
				return 0, err
			}
			if err := c.Do("paced-"+strconv.Itoa(i), func(context.Context) error { return nil }, paced.Permit()); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// tick returns the workflow of the schedule of the same name.
func tick(book *ledger) *durable.Workflow[int, int] {
	return durable.Define(tickName, func(c *durable.Ctx, n int) (int, error) {
		book.add(entry{Kind: kindScheduled, Run: c.RunID(), Value: durable.ScheduledAt(c).Format(time.RFC3339)})
		return n, nil
	})
}

// tickName is the name of the schedule, and of its workflow.
const tickName = "tick"

// flow starts the runs of workflow limited, changes the limits, and sets the schedule.
type flow struct {
	controller *controller
	limited    *durable.Workflow[int, int]

	followers
}

func newFlow(c *controller) *flow { return &flow{controller: c, limited: limited(c.ledger)} }

// begin sets the schedule, and starts runs and changes limits until ctx ends. The function that it returns waits for the last start.
func (l *flow) begin(ctx context.Context) (done func(), err error) {
	err = l.controller.SetSchedule(ctx, tick(l.controller.ledger).Schedule(1, durable.Schedule{Name: tickName, Every: tickEvery, Overlap: durable.OverlapAllow}))
	if err != nil {
		return nil, err
	}
	var atWork sync.WaitGroup
	atWork.Go(func() { l.fail(changeLimits(ctx, l.controller)) })
	atWork.Go(func() { l.followers.begin(ctx, 100*time.Millisecond, limitedLive, l.follow) })
	return atWork.Wait, nil
}

// follow starts a run, and waits until it has completed. It gives up some time after the workers have stopped settling.
func (l *flow) follow(ctx context.Context, n int) error {
	id := fmt.Sprint("limited-", n)
	var run *durable.Run[int]
	_, err := l.controller.retry(ctx, func() (err error) {
		run, err = l.limited.Start(ctx, l.controller.Engine, n, durable.ID(id))
		return err
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", id, err)
	}
	_, err = l.controller.retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, 2*finishTimeout)
		defer cancel()
		_, err := run.Result(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("I7: result of %s: %w", id, err)
	}
	return nil
}

// finish pauses the schedule when it has fired what is due, and waits until all runs have ended.
func (l *flow) finish(ctx context.Context) error {
	l.followed.Wait()
	begun := time.Now()
	for {
		var fires []durable.ScheduleFire
		_, err := l.controller.retry(ctx, func() (err error) {
			fires, err = l.controller.ScheduleFires(ctx, tickName, durable.Page{Limit: 1})
			return err
		})
		if err != nil {
			return fmt.Errorf("fires of the schedule: %w", err)
		}
		if len(fires) > 0 && fires[0].At.After(begun) {
			break
		}
		if sleepCtx(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("I7: the schedule has not fired since %v: %+v", begun, fires)
		}
	}
	_, err := l.controller.retry(ctx, func() error { return l.controller.PauseSchedule(ctx, tickName) })
	if err != nil {
		return fmt.Errorf("pause the schedule: %w", err)
	}
	if err := l.controller.awaitAll(ctx, tickName); err != nil {
		return err
	}
	return l.joined()
}
