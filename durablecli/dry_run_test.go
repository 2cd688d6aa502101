package durablecli_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// A dry run of a control of one run says what the same command then does, errors included, and changes nothing.
func TestControlDryRun(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		for _, id := range []string{"a", "b", "c", "d"} {
			start(t, e, family, id, "book") // waits for its second child, which waits for a signal
			until(t, "the child waits", func() bool {
				run, err := e.Get(within(t), id)
				if err != nil {
					t.Fatal(err)
				}
				counts, err := e.TreeCounts(within(t), run.RunID)
				return err == nil && counts.Statuses[durable.StatusWaiting] == 2
			})
		}
		await(t, start(t, e, order, "ended", "book"))
		stop()
		statuses := func() (all []string) {
			runs, err := e.List(within(t), durable.Filter{}, durable.Page{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs.Runs {
				all = append(all, strings.Join([]string{r.ID, string(r.Status), string(r.Requested)}, " "))
			}
			return all
		}
		for _, c := range []struct {
			command string
			code    int
			numbers string // what the result contains
		}{
			{"cancel a --only-itself", 0, `"requested":1`},
			{"cancel b --only-unstarted", 0, `"requested":1`},
			{"cancel c", 0, `"requested":2`},
			{"cancel c", 0, `"requested":2`},
			{"pause c", durablecli.ExitError, ""},
			{"pause d", 0, `"done":2`},
			{"pause d", 0, `"done":0`},
			{"resume d --freeze-timers", 0, `"done":2`},
			{"resume d", durablecli.ExitError, ""},
			{"terminate d", 0, `"done":2`},
			{"pause ended", durablecli.ExitError, ""},
			{"terminate ended", durablecli.ExitError, ""},
			{"cancel missing", durablecli.ExitNotFound, ""},
		} {
			args := append(strings.Fields(c.command), "-o", "jsonl")
			before := statuses()
			dry := runOn(t, e, c.code, "", append(args, "--dry-run")...)
			if after := statuses(); !slices.Equal(before, after) {
				t.Errorf("%s --dry-run changed %q to %q", c.command, before, after)
			}
			if wet := runOn(t, e, c.code, "", args...); wet.out != dry.out || wet.err != dry.err || !strings.Contains(wet.out, c.numbers) {
				t.Errorf("%s does %s%s, and its dry run says %s%s", c.command, wet.out, wet.err, dry.out, dry.err)
			}
		}
	})
}

// If all runs of a filter would be refused, a retry without --yes says so, and why.
func TestRetryOfRefusedRuns(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		for _, id := range []string{"a-1", "a-2"} {
			await(t, start(t, e, order, id, "declined"))
		}
		stop()
		for _, more := range [][]string{nil, {"--dry-run"}, {"--yes"}} {
			got := runOn(t, e, durablecli.ExitError, "", append([]string{"retry", "-w", "order", "--from", "nosuch", "-o", "id"}, more...)...)
			if got.out != "" || strings.Count(got.err, "was refused") != 2 || !strings.Contains(got.err, "nosuch") {
				t.Errorf("with %q: %s%s", more, got.out, got.err)
			}
		}
		if got := runOn(t, e, 0, "", "retry", "-w", "nosuch"); !strings.Contains(got.err, "no run matches") {
			t.Errorf("without a match: %s", got.err)
		}
		start(t, e, order, "live", "book")
		if got := runOn(t, e, durablecli.ExitError, "", "delete", "--id-prefix", "live", "-s", "live"); !strings.Contains(got.err, "live was refused") {
			t.Errorf("a live run: %s", got.err)
		}
	})
}

// The exit code for invalid arguments says that nothing was done, so it is another if something was.
func TestExitCodeAfterSomeWereDone(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		panics := durable.Define("panics", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("book", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return "", errDeclined
		})
		e, stop := p.engine(t, panics)
		await(t, start(t, e, order, "ok", "declined"))
		for _, id := range []string{"needs-from", "needs-from-too"} {
			await(t, start(t, e, panics, id, ""))
		}
		stop()
		runOn(t, e, durablecli.ExitUsage, "", "retry", "needs-from", "needs-from-too")
		if got := runOn(t, e, durablecli.ExitError, "", "retry", "ok", "needs-from"); got.out == "" || !strings.Contains(got.err, "from which step") {
			t.Errorf("one was retried: %s%s", got.out, got.err)
		}
		start(t, e, order, "live", "book")
		runOn(t, e, durablecli.ExitError, "", "move", "mail", "live", "needs-from")
		runOn(t, e, durablecli.ExitUsage, "", "move", "mail\n", "live")
	})
}
