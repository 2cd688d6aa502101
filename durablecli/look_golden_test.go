package durablecli_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// clockAhead finds how far the clock of a worker is ahead, which is left out if it is zero.
var clockAhead = regexp.MustCompile(`\s*"clock_ahead": "[^"]*",`)

// The tables of workers, acts and fires, and what top writes for a script, are as they were.
func TestGoldenTables(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		await(t, start(t, e, order, "order-1", "declined"))
		until(t, "the heartbeat of the worker", func() bool {
			workers, err := e.Workers(within(t))
			return err == nil && len(workers) == 1 && workers[0].Active == 0
		})
		golden(t, "workers", runOn(t, e, 0, "", "workers").out)
		golden(t, "top", clockAhead.ReplaceAllString(runOn(t, e, 0, "", "top", "-o", "json").out, ""))
		if err := e.SetSchedule(within(t), durable.Schedule{Name: "nightly", Workflow: "order", Every: 24 * time.Hour, Input: "book"}, durable.Actor("ann")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.TriggerSchedule(within(t), "nightly"); err != nil {
			t.Fatal(err)
		}
		until(t, "the run of the schedule", func() bool {
			fires, err := e.ScheduleFires(within(t), "nightly", durable.Page{Limit: 1})
			return err == nil && len(fires) == 1 && fires[0].RunStatus == durable.StatusCompleted
		})
		golden(t, "fires", runOn(t, e, 0, "", "fires", "nightly").out)
		stop()
		runOn(t, e, 0, "", "queue", "set", "mail", "--max-executing", "4", "--actor", "ann", "--reason", "quota")
		golden(t, "audit", runOn(t, e, 0, "", "audit").out)
	})
}
