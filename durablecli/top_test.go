package durablecli_test

import (
	"encoding/json"
	"testing"
)

// A script gets what top shows as one object.
func TestTopAsJSON(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t)
		await(t, start(t, e, order, "order-1", "declined"))
		until(t, "the heartbeat of the worker", func() bool {
			workers, err := e.Workers(within(t))
			return err == nil && len(workers) == 1
		})
		var state struct {
			Counts []struct {
				Status string `json:"status"`
				Runs   int    `json:"runs"`
			} `json:"counts"`
			Workers []struct {
				Name string `json:"name"`
			} `json:"workers"`
		}
		out := p.run(t, "top", "-o", "json").out
		if err := json.Unmarshal([]byte(out), &state); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if len(state.Counts) != 1 || state.Counts[0].Status != "failed" || state.Counts[0].Runs != 1 || len(state.Workers) != 1 || state.Workers[0].Name != "worker-1" {
			t.Errorf("the state is %s", out)
		}
	})
}
