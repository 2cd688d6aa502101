package durable_test

import (
	"encoding/json/v2"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Get shows the input with which a debounced run will begin, also while the run is paused and with a codec: the input of the last
// start, although the row of the run holds that of the first. An export and a fork have this input, too.
func TestGetShowsTheLastInputOfADebouncedRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		for what, codec := range map[string]durable.Codec{"plain": nil, "with a codec": bothCodecs(t, "a")} {
			e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}, Codec: codec})
			start := func(in int) string {
				t.Helper()
				return orFail(w.Start(ctx, e, in, durable.Debounce(what, time.Hour, time.Hour)))(t).ID()
			}
			check := func(id, when, want string) {
				t.Helper()
				if info := orFail(e.Get(ctx, id))(t); string(info.Input) != want || info.KeyWait == nil {
					t.Errorf("%s, %s: the input is %s, want %s; it waits for %v", what, when, info.Input, want, info.KeyWait)
				}
			}
			id := start(1)
			check(id, "after the first start", "1")
			start(2)
			check(id, "after the second start", "2")
			must(t)(e.Pause(ctx, id))
			start(3)
			check(id, "while it is paused", "3")
			var exported durable.Exported
			if err := json.Unmarshal(orFail(e.Export(ctx, id, durable.DecodePayloads()))(t), &exported); err != nil || string(exported.Run.Input) != "3" {
				t.Errorf("%s: the export has the input %s, %v", what, exported.Run.Input, err)
			}
			orFail(e.Fork(ctx, id, durable.FromEnd(), durable.NewID("copy, "+what)))(t)
			if info := orFail(e.Get(ctx, "copy, "+what))(t); string(info.Input) != "3" {
				t.Errorf("%s: the fork has the input %s", what, info.Input)
			}
		}
	})
}
