package durablecli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// renewal is a workflow whose code comes in two versions: the step before the wait has another name.
func renewal(step string) *durable.Workflow[string, string] {
	return durable.Define("renewal", func(c *durable.Ctx, in string) (string, error) {
		if _, err := c.Step(step, func(context.Context) (int, error) { return 1, nil }); err != nil {
			return "", err
		}
		return c.Receive[string]("confirm", durable.Within(time.Hour))
	})
}

// Preflight lists the runs that the code would hold, and exits with 6; code that fits exits with 0.
func TestPreflight(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		old := renewal("price")
		e, stop := p.engine(t, old)
		start(t, e, old, "renewal-1", "ann")
		until(t, "the wait for the signal", func() bool {
			info, err := e.Get(within(t), "renewal-1")
			return err == nil && info.Status == durable.StatusWaiting
		})
		start(t, e, approval, "approval-1", "ann")
		stop()

		with := func(w ...durable.Definition) *durable.Engine {
			t.Helper()
			e, err := durable.New(p.store, durable.Config{Workflows: w})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		if got := commandOn(t, with(renewal("price"), approval), "", "preflight"); got.code != durablecli.ExitDone || got.out != "" || !strings.Contains(got.err, "2 fit, 0 would be held, 0 would fail, 0 unknown") {
			t.Errorf("code that fits gives %+v", got)
		}
		next := with(renewal("quote"))
		if got := commandOn(t, next, "", "preflight"); got.code != durablecli.ExitDiverged || !strings.Contains(got.out, "renewal-1") || !strings.Contains(got.out, "held") || !strings.Contains(got.out, "unknown") || !strings.Contains(got.err, "1 run would be held") {
			t.Errorf("code with a renamed step gives %+v", got)
		}
		fails := with(durable.Define("renewal", func(c *durable.Ctx, _ string) (string, error) {
			_, err := c.Step("price", func(context.Context) (int, error) { return 1, nil })
			return "", errors.Join(err, errors.New("no such customer"))
		}, durable.Retired("confirm")))
		if got := commandOn(t, fails, "", "preflight", "-w", "renewal"); got.code != durablecli.ExitDiverged || !strings.Contains(got.out, "no such customer") || !strings.Contains(got.err, "1 run would fail") {
			t.Errorf("code that fails gives %+v", got)
		}
		if got := commandOn(t, next, "", "preflight", "-w", "approval", "-o", "json"); got.code != durablecli.ExitDone || !strings.Contains(got.out, `"unknown": 1`) {
			t.Errorf("the JSON of a filter is %+v", got)
		}
		if info, err := e.Get(within(t), "renewal-1"); err != nil || info.Status != durable.StatusWaiting {
			t.Errorf("preflight changed the run to %+v, %v", info, err)
		}
		p.fails(t, durablecli.ExitUsage, []string{"embed durablecli.Command"}, "preflight")

		numbers := durable.Define("renewal", func(*durable.Ctx, int) (string, error) { return "", nil })
		if got := commandOn(t, with(numbers), "", "preflight", "-w", "renewal"); got.code != durablecli.ExitDiverged || !strings.Contains(normal(got.out), "held  its input  ") {
			t.Errorf("code that does not decode the input gives %+v", got)
		}
		p.run(t, "signal", "renewal-1", "confirm", `"yes"`)
		_, stop = p.engineWith(t, durable.Config{Workflows: []durable.Definition{numbers}, Version: "v9"})
		until(t, "the hold", func() bool {
			info, err := e.Get(within(t), "renewal-1")
			return err == nil && info.Diverged
		})
		stop()
		if got := p.run(t, "get", "renewal-1"); !strings.Contains(normal(got.out), `Does not fit  version "v9", AGE, its input: durable: `) {
			t.Errorf("the run is shown as %s", normal(got.out))
		}
	})
}

// Fork makes the next generation of a run, or another run, with given values; a preview makes nothing.
func TestFork(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t)
		await(t, start(t, e, order, "order-1", "declined"))
		p.fails(t, durablecli.ExitUsage, []string{"from which step"}, "fork", "order-1")
		p.fails(t, durablecli.ExitUsage, []string{"--with"}, "fork", "order-1", "--from", "charge", "--with", "charge=paid")
		p.fails(t, durablecli.ExitNotFound, nil, "fork", "order-2", "--from-end")
		p.run(t, "fork", "order-1", "--from", "charge", "--dry-run", "--new-id", "order-2")
		p.fails(t, durablecli.ExitNotFound, nil, "get", "order-2")

		if got := p.run(t, "fork", "order-1", "--from", "charge", "--new-id", "order-2", "--with", `charge="paid by hand"`, "-o", "id").out; got != "order-2\n" {
			t.Errorf("fork writes %q", got)
		}
		if got := p.run(t, "get", "order-2", "--wait").out; !strings.Contains(got, "paid by hand") {
			t.Errorf("the new run is %s", got)
		}
		p.run(t, "fork", "order-1", "--from-end", "--with", `charge="paid"`, "--reason", "by hand", "--actor", "ann")
		if got := p.run(t, "get", "order-1", "--wait").out; !strings.Contains(got, "completed") {
			t.Errorf("the forked run is %s", got)
		}
		if all, err := e.Generations(within(t), "order-1"); err != nil || len(all) != 2 || all[1].Actor != "ann" || all[1].Reason != "by hand" {
			t.Errorf("the generations are %+v, %v", all, err)
		}
	})
}

// Prune deletes what ended longer ago, and nothing that lives or that ended since.
func TestPrune(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t)
		const many = 230 // more than one transaction deletes
		for i := range many {
			start(t, e, order, fmt.Sprint("many-", i), "book")
		}
		until(t, "the ends of all", func() bool {
			page, err := e.List(within(t), durable.Filter{Status: []durable.Status{durable.StatusCompleted}}, durable.Page{Limit: 1000})
			return err == nil && len(page.Runs) == many
		})
		if got := p.run(t, "prune", "--older-than", "1us", "--yes", "-o", "jsonl").out; !strings.Contains(got, `"matched":230`) || !strings.Contains(got, `"deleted":230`) {
			t.Errorf("the prune of many runs is %s", got)
		}
		await(t, start(t, e, order, "done", "book"))
		await(t, start(t, e, order, "failed", "declined"))
		start(t, e, approval, "waits", "book")
		ids := func() string { t.Helper(); return strings.Join(strings.Fields(p.run(t, "list", "-o", "id").out), " ") }
		p.fails(t, durablecli.ExitUsage, []string{"--older-than"}, "prune")
		p.fails(t, durablecli.ExitUsage, []string{"delete 2 runs", "--yes"}, "prune", "--older-than", "1ms")
		if got := p.run(t, "prune", "--older-than", "1ms", "--dry-run", "-o", "jsonl").out; !strings.Contains(got, `"matched":2`) || !strings.Contains(got, `"deleted":0`) {
			t.Errorf("the preview is %s", got)
		}
		p.run(t, "prune", "--older-than", "1h", "--yes")
		if got := ids(); got != "waits failed done" {
			t.Errorf("nothing ended an hour ago, and the runs are %s", got)
		}
		p.run(t, "prune", "--older-than", "1ms", "--status", "completed", "--yes")
		if got := ids(); got != "waits failed" {
			t.Errorf("after a prune of completed runs, the runs are %s", got)
		}
		p.run(t, "prune", "--older-than", "1ms", "--yes")
		if got := ids(); got != "waits" {
			t.Errorf("after a prune of ended runs, the runs are %s", got)
		}
	})
}
