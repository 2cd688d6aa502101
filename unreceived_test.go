package durable_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A signal that was accepted and not received stays visible after the run has ended, and is logged once.
func TestUnreceivedSignalsAreTold(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		hold := newGate()
		w := durable.Define("forgetful", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Do("hold", hold.pass); err != nil {
				return 0, err
			}
			return c.Receive[int]("paid")
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w, noted}, Lease: 300 * time.Millisecond})
		e := engineWith(t, s, cfg)
		stop := running(t, e)
		ctx := within(t)
		if _, err := noted.Call(ctx, e, "x"); err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(ctx, e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-hold.entered
		for range 3 {
			if err := e.Signal(ctx, "run", "paid", 7); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Signal(ctx, "run", "changed", 1); err != nil {
			t.Fatal(err)
		}
		info, err := e.Get(ctx, "run")
		if err != nil || !maps.Equal(info.Unreceived, map[string]int{"paid": 3, "changed": 1}) {
			t.Errorf("unreceived %v, %v", info.Unreceived, err)
		}
		close(hold.open)
		if _, err := run.Result(ctx); err != nil {
			t.Fatal(err)
		}
		info, err = e.Get(ctx, "run")
		if err != nil || !maps.Equal(info.Unreceived, map[string]int{"paid": 2, "changed": 1}) {
			t.Errorf("unreceived at the end %v, %v", info.Unreceived, err)
		}
		const text = "a run has ended with signals that nobody received"
		log.await(t, text)
		stop()
		has(t, log.only(t, text), "WARN", map[string]any{"run": run.RunID(), "name": "run", "workflow": "forgetful", "count": 3.0})
		if !strings.Contains(log.String(), `"signals":["changed (1)","paid (2)"]`) {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// A worker that stops has logged the signals of runs that ended before.
func TestUnreceivedSignalsAreToldByAWorkerThatStops(t *testing.T) {
	w := durable.Define("forgetful", func(c *durable.Ctx, _ int) (int, error) {
		return c.Receive[int]("paid")
	})
	cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}, Lease: time.Hour})
	e := engineWith(t, openFile(t), cfg)
	stop := running(t, e)
	ctx := within(t)
	run, err := w.Start(ctx, e, 0, durable.ID("run"), durable.Delay(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Signal(ctx, "run", "paid", 7); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run.Result(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	log.only(t, "a run has ended with signals that nobody received")
}
