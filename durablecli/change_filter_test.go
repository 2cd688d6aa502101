package durablecli_test

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// signal, tag, move, priority and timeout change the runs of a filter whose state allows it: they count them and ask, and a filter without a condition
// is refused.
func TestChangeRunsOfFilter(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		start(t, e, approval, "begun", "")
		until(t, "the run waits", func() bool { return status(t, e, "begun") == durable.StatusWaiting })
		await(t, start(t, e, order, "ended", "book"))
		stop()
		start(t, e, order, "a-1", "book")
		start(t, e, order, "a-2", "book")
		all := []string{"--created-before", "now"}
		for _, c := range []struct {
			args    []string
			asks    string // the question
			changed []string
			holds   func(*durable.RunInfo) bool // after the change
		}{
			{
				[]string{"signal", "approve", `"yes"`, "--signal-key", "k"},
				`send signal "approve" to 3 runs`,
				[]string{"begun", "a-1", "a-2"},
				func(r *durable.RunInfo) bool { return r.Unreceived["approve"] == 1 },
			},
			{[]string{"tag", "team.owner=pay"}, `tag 4 runs with team.owner=pay`, []string{"begun", "ended", "a-1", "a-2"}, func(r *durable.RunInfo) bool { return r.Tags["team.owner"] == "pay" }},
			{[]string{"move", "mail"}, `move 2 runs to queue "mail"`, []string{"a-1", "a-2"}, func(r *durable.RunInfo) bool { return r.Queue == "mail" }},
			{[]string{"priority", "2"}, `set the priority of 2 runs to 2`, []string{"a-1", "a-2"}, func(r *durable.RunInfo) bool { return r.Priority == 2 }},
			{[]string{"timeout", "2d"}, `set the timeout of 3 runs to 2d`, []string{"begun", "a-1", "a-2"}, func(r *durable.RunInfo) bool { return !r.Deadline.IsZero() }},
		} {
			changed := func(ids []string) (n int) {
				for _, id := range ids {
					if run, err := e.Get(within(t), id); err != nil {
						t.Fatal(err)
					} else if c.holds(run) {
						n++
					}
				}
				return n
			}
			filtered := append(c.args, all...)
			before := changed([]string{"begun", "ended", "a-1", "a-2"})
			for _, args := range [][]string{c.args[:2], append(c.args, "--workflow", ""), append(append(c.args, "--yes"), "--tag", "x=")} {
				runOn(t, e, durablecli.ExitUsage, "", args...)
			}
			if got := runOn(t, e, durablecli.ExitUsage, "", filtered...).err; !strings.Contains(got, "this would "+c.asks+":") {
				t.Errorf("%q asks: %s", c.args, got)
			}
			if got := runOn(t, e, 0, "", append(filtered, "--dry-run", "-o", "jsonl")...).out; !strings.Contains(got, `"changed":`+string('0'+rune(len(c.changed)))) {
				t.Errorf("%q --dry-run says %s", c.args, got)
			}
			if got := changed([]string{"begun", "ended", "a-1", "a-2"}); got != before {
				t.Errorf("%q: %d runs were changed without --yes", c.args, got)
			}
			runOn(t, e, 0, "", append(filtered, "--yes")...)
			if got, most := changed(c.changed), changed([]string{"begun", "ended", "a-1", "a-2"}); got != len(c.changed) || most != before+got {
				t.Errorf("%q changed %d of %q, and %d in all", c.args, got, c.changed, most)
			}
			if got := runOn(t, e, 0, "", append(c.args, "--workflow", "none", "--yes")...).err; !strings.Contains(got, "no run matches") {
				t.Errorf("%q without a match: %s", c.args, got)
			}
		}
		runOn(t, e, durablecli.ExitUsage, "", "move", "mail", "a-1", "--workflow", "order")
		if err := e.SetQueue(within(t), "closed", durable.QueueSettings{Closed: true}); err != nil {
			t.Fatal(err)
		}
		if got := runOn(t, e, durablecli.ExitError, "", "move", "closed", "--workflow", "order", "--yes"); strings.Count(got.err, "was refused") != 2 || !strings.Contains(got.out, "(filter)") {
			t.Errorf("a closed queue: %s%s", got.out, got.err)
		}
		if got := runOn(t, e, 0, "", "move", "desk", "-s", "ended").err; !strings.Contains(got, "whose state allows it") {
			t.Errorf("ended runs: %s", got)
		}
	})
}

// With IDs, a dry run finds the runs that do not exist or whose state does not allow the change. IDs come from standard input too.
func TestChangeRunsByID(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		await(t, start(t, e, order, "ended", "book"))
		stop()
		start(t, e, order, "a-1", "book")
		for _, more := range [][]string{{"--dry-run"}, nil} {
			runOn(t, e, durablecli.ExitNotFound, "", append([]string{"tag", "missing", "team.owner=pay"}, more...)...)
			runOn(t, e, durablecli.ExitError, "", append([]string{"move", "mail", "ended", "a-1"}, more...)...)
			runOn(t, e, durablecli.ExitError, "ended\na-1\n", append([]string{"signal", "-", "approve"}, more...)...)
			runOn(t, e, 0, "a-1\nended\n", append([]string{"tag", "-", "team.owner=pay"}, more...)...)
			run, err := e.Get(within(t), "a-1")
			if wet := more == nil; err != nil || (run.Queue == "mail") != wet || (run.Unreceived["approve"] == 1) != wet || (run.Tags["team.owner"] == "pay") != wet {
				t.Errorf("with %q: %+v, %v", more, run, err)
			}
		}
		runOn(t, e, durablecli.ExitUsage, "a-1\n", "signal", "-", "approve", "-") // both from standard input
	})
}
