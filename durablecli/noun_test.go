package durablecli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

func TestQueues(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		got := runOn(t, e, 0, "", "queue", "set", "mail", "--max-executing", "4", "--rate", "10/m", "--burst", "2", "--reason", "quota", "--actor", "ann").out
		got += runOn(t, e, 0, "", "queue", "set", "mail", "--max-in-progress", "9", "--rate", "none").out // executing stays
		got += runOn(t, e, 0, "", "queue", "pause", "mail", "--reason", "provider down", "--actor", "ann").out
		got += runOn(t, e, 0, "", "queue", "resume", "mail", "-o", "id").out
		golden(t, "queue-verbs", got)
		queues, err := e.Queues(within(t))
		if err != nil || len(queues) != 1 || queues[0].Settings.MaxExecuting != 4 || queues[0].Settings.MaxInProgress != 9 || queues[0].Settings.Rate.Count != 0 {
			t.Errorf("the queue is %+v, %v", queues, err)
		}
		runOn(t, e, 0, "", "queue", "delete", "mail")
		runOn(t, e, durablecli.ExitNotFound, "", "queue", "delete", "mail")
		runOn(t, e, durablecli.ExitNotFound, "", "queue", "reset", "mail")
		for _, args := range [][]string{{"queue", "bogus"}, {"queue", "set"}, {"queue", "set", "mail", "--rate", "fast"}, {"queue", "set", "mail", "--max-executing", "-1"}, {"queue", "set", "mail", "--depth", "0"}} {
			runOn(t, e, durablecli.ExitUsage, "", args...)
		}
		if got := runOn(t, e, 0, "", "queue"); !strings.Contains(got.out, "pause") {
			t.Errorf("durable queue shows no help: %s", got.out)
		}
	})
}

func TestWorkersAreMadeQuiet(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		until(t, "the worker", func() bool {
			workers, err := e.Workers(within(t))
			return err == nil && len(workers) == 1
		})
		got := runOn(t, e, 0, "", "worker", "quiet", "worker-1", "--reason", "maintenance", "--actor", "ann").out
		if !strings.Contains(got, "running, quiet: maintenance (by ann)") {
			t.Errorf("a quiet worker is shown as\n%s", got)
		}
		id := strings.TrimSpace(runOn(t, e, 0, "", "workers", "-o", "id").out)
		if got := runOn(t, e, 0, "", "worker", "resume", id).out; strings.Contains(got, "quiet") {
			t.Errorf("a worker that was resumed is shown as\n%s", got)
		}
		if got := runOn(t, e, durablecli.ExitNotFound, "", "worker", "quiet", "worker-2").err; !strings.Contains(got, "worker-2") {
			t.Errorf("the error is %s", got)
		}
		runOn(t, e, durablecli.ExitUsage, "", "worker", "quiet")
		stop()
	})
}

func TestLimits(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		got := runOn(t, e, 0, "", "limit", "set", "bank", "--concurrent", "4", "--rate", "20/s", "--actor", "ann").out
		got += runOn(t, e, 0, "", "limit", "set", "bank", "--concurrent", "2").out
		golden(t, "limit-verbs", got)
		for _, flag := range []string{"--concurrent", "--rate"} { // who writes 0 may mean that nothing executes
			if refused := runOn(t, e, durablecli.ExitUsage, "", "limit", "set", "bank", flag, "0"); !strings.Contains(refused.err, "none to remove the bound") {
				t.Errorf("%s 0: %s", flag, refused.err)
			}
		}
		if got := runOn(t, e, 0, "", "limit", "set", "bank", "--concurrent", "none").out; !strings.Contains(got, "rate 20 per") || strings.Contains(got, "concurrent") {
			t.Errorf("without the bound the limit is %s", got)
		}
		if got := runOn(t, e, 0, "", "limit", "set", "bank", "--rate", "none").out; !strings.Contains(got, "no bounds") {
			t.Errorf("without bounds the limit is %s", got)
		}
		runOn(t, e, 0, "", "limit", "delete", "bank")
		runOn(t, e, durablecli.ExitNotFound, "", "limit", "delete", "bank")
		runOn(t, e, durablecli.ExitNotFound, "", "limit", "reset", "bank")
		runOn(t, e, durablecli.ExitUsage, "", "limit", "set", "bank", "--rate", "1/0s")
	})
}

func TestSchedules(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e := p.client(t)
		got := runOn(t, e, 0, "", "schedule", "set", "nightly", "--cron", "30 2 * * *", "--location", "Europe/Berlin", "--workflow", "order", "--input", `"x"`, "--tag", "a.b=c", "--overlap", "wait", "--timeout", "1d").out
		got += runOn(t, e, 0, "", "schedule", "set", "nightly", "--every", "1h").out // the workflow, the input and the tags stay
		got += runOn(t, e, 0, "", "schedule", "pause", "nightly", "--reason", "maintenance", "--actor", "ann").out
		got += runOn(t, e, 0, "", "schedule", "resume", "nightly", "-o", "id").out
		golden(t, "schedule-verbs", got)
		schedules, err := e.Schedules(within(t))
		if err != nil || len(schedules) != 1 || schedules[0].Schedule.Every != time.Hour || schedules[0].Schedule.Timeout != 24*time.Hour || schedules[0].Schedule.Tags["a.b"] != "c" {
			t.Fatalf("the schedule is %+v, %v", schedules, err)
		}
		id := strings.TrimSpace(runOn(t, e, 0, "", "schedule", "trigger", "nightly").out)
		if s := status(t, e, id); s != durable.StatusPending {
			t.Errorf("the triggered run is %s", s)
		}
		if got := runOn(t, e, 0, "", "schedule", "backfill", "nightly", "--from", "3h"); !strings.Contains(got.err, "3 runs of nightly started") {
			t.Errorf("the backfill says %s", got.err)
		}
		if got := runOn(t, e, 0, "", "fires", "nightly").out; strings.Count(got, "backfill") != 3 || !strings.Contains(got, "triggered") {
			t.Errorf("the fires are %s", got)
		}
		runOn(t, e, 0, "", "schedule", "delete", "nightly")
		for _, verb := range []string{"delete", "pause", "resume", "reset", "trigger"} {
			runOn(t, e, durablecli.ExitNotFound, "", "schedule", verb, "nightly")
		}
		for _, args := range [][]string{
			{"schedule", "backfill", "nightly"},
			{"schedule", "backfill", "nightly", "--from", "x"},
			{"schedule", "set", "x", "--cron", "never", "--workflow", "order"},
			{"schedule", "set", "x", "--cron", "@daily", "--every", "1h"},
			{"schedule", "set", "x", "--input", "{"},
		} {
			runOn(t, e, durablecli.ExitUsage, "", args...)
		}
	})
}
