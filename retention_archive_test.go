package durable_test

import (
	"context"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// The archive gets a superseded generation with its input and its result: after the deletion of the run, nothing else has them.
func TestRetentionArchivesPayloadsOfSupersededGenerations(t *testing.T) {
	onRawDatabases(t, func(t *testing.T, d *rawDatabase) {
		ctx := within(t)
		flow := durable.Define("flow", func(*durable.Ctx, string) (string, error) { return "", errDeclined })
		endedTree(t, d.Store, "flow", "old", 2*day, store.Completed)
		e := engineOn(t, d.Store, flow)
		stop := running(t, e)
		for range 2 {
			orFail(e.Fork(ctx, "old", durable.FromEnd()))(t)
			awaitStatus(t, e, "old", durable.StatusFailed)
		}
		stop()
		want := orFail(e.Generations(ctx, "old"))(t)
		ago := " - interval '2 days'"
		if d.prefix == "durable_" {
			ago = " - 172800000000"
		}
		if _, err := d.exec(ctx, "UPDATE "+d.prefix+"run SET ended_at = ended_at"+ago); err != nil {
			t.Fatal(err)
		}
		var sweeper *durable.Engine
		archived := make(chan durable.Exported, 10)
		sweeper, log := sweeping(t, d.Store, durable.Retention{Runs: durable.KeepFor(day), Archive: func(_ context.Context, x *durable.Exported) error {
			err := sweeper.DecodeExport(x)
			if x.Generation > 0 {
				archived <- *x
			}
			return err
		}}, flow)
		running(t, sweeper)
		log.await(t, "retention deleted what is no longer kept")
		close(archived)
		n := 0
		for x := range archived {
			n++
			g := want[x.Generation-1]
			if string(x.Run.Input) != string(g.Input) || len(g.Input) == 0 || string(x.Run.Output) != string(g.Output) || (len(x.Run.Error) > 0) != (g.Err != nil) {
				t.Errorf("generation %d: archived input %s, output %s, error %s, want %s, %s, %v", x.Generation, x.Run.Input, x.Run.Output, x.Run.Error, g.Input, g.Output, g.Err)
			}
		}
		if n != 2 || exists(t, sweeper, "old") {
			t.Errorf("%d superseded generations were archived, want 2", n)
		}
	})
}
