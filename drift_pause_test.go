package durable_test

import (
	"testing"

	"github.com/seed8ec063be/durable"
)

// The pause of a run that is held is an event with the actor and the reason, once, as the pause of any run is.
func TestPauseOfAHeldRunIsAnEvent(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, _ := x.waiting(t, s)
		stop := atVersion(t, s, "v2", x.define(asSleep))
		waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Diverged })
		stop()
		for range 2 {
			if _, err := client.Pause(within(t), "run", durable.Actor("ann"), durable.Reason("look")); err != nil {
				t.Fatal(err)
			}
		}
		run := read(client.Get(within(t), "run"))(t)
		if !run.Diverged || run.PausedBy != "ann" || run.Reason != "look" {
			t.Errorf("%+v", run)
		}
		var paused []durable.Event
		waitFor(t, func() bool { // events wait for older transactions of other tests
			paused = nil
			for _, e := range read(client.Events(within(t), durable.Page{}))(t) {
				if e.Type == durable.EventPaused {
					paused = append(paused, e)
				}
			}
			return len(paused) > 1
		})
		if len(paused) != 2 || paused[1].Actor != "ann" || paused[1].Reason != "look" || paused[0].Actor != "" {
			t.Errorf("%+v", paused)
		}
	})
}
