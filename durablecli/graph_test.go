package durablecli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

var assembly = durable.DefineGraph("assembly", func(g *durable.Graph[string]) *durable.Node[string] {
	parts := g.Step("parts", func(_ context.Context, in *durable.NodeInput) (string, error) { return g.Input(in) + " parts", nil })
	return g.Step("whole", func(_ context.Context, in *durable.NodeInput) (string, error) { return parts.Of(in) + " joined", nil }, durable.Needs(parts))
})

func TestGraph(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t, assembly)
		await(t, start(t, e, assembly, "a-1", "chair"))
		await(t, start(t, e, order, "a-2", "book"))
		stop()
		golden(t, "graph", steady(runOn(t, e, 0, "", "graph", "a-1").out+runOn(t, e, 0, "", "graph", "a-1", "-o", "jsonl").out))
		if got := runOn(t, e, 0, "", "graph", "a-1", "--mermaid").out; !strings.Contains(got, "parts") {
			t.Errorf("the diagram is %s", got)
		}
		start(t, e, assembly, "a-3", "table") // no worker lives
		if got := runOn(t, e, 0, "", "graph", "a-3").out; strings.Count(got, "waiting") != 2 {
			t.Errorf("a run that has not begun is shown as %s", got)
		}
		runOn(t, e, durablecli.ExitNotFound, "", "graph", "a-2")
		runOn(t, e, durablecli.ExitNotFound, "", "graph", "missing")
	})
}

// A run that is held because the code was changed shows the call that does not fit.
func TestADivergedRunIsExplained(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		old := durable.Define("shift", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("book", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return c.Receive[string]("go")
		})
		e, stop := p.engine(t, old)
		start(t, e, old, "a-1", "")
		until(t, "the wait for the signal", func() bool {
			run, err := e.Get(within(t), "a-1")
			return err == nil && len(run.OpenCalls) == 1 && run.OpenCalls[0].Kind == durable.KindReceive
		})
		stop()
		changed := durable.Define("shift", func(c *durable.Ctx, _ string) (string, error) { return "", c.Sleep("book", time.Hour) })
		e, _ = p.engine(t, changed)
		if err := e.Signal(within(t), "a-1", "go", "on"); err != nil { // executes the run again if it had left memory
			t.Fatal(err)
		}
		until(t, "the hold", func() bool {
			run, err := e.Get(within(t), "a-1")
			return err == nil && run.Diverged
		})
		if got := runOn(t, e, 0, "", "get", "a-1").out; !strings.Contains(got, `the code of version "v1" does not fit its history`) || !strings.Contains(got, `call "book"`) {
			t.Errorf("the run is %s", got)
		}
		if got := runOn(t, e, durablecli.ExitError, "", "doctor").out; !strings.Contains(got, "diverged runs") {
			t.Errorf("the doctor says %s", got)
		}
	})
}
