package durablecli_test

import (
	"encoding/json/jsontext"
	"regexp"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// populate makes one run of each interesting state, executed and then left without a worker.
func populate(t *testing.T, p *place) {
	t.Helper()
	e, stop := p.engine(t)
	await(t, start(t, e, order, "order-1", "book", durable.Tag("team.owner", "payments")))
	await(t, start(t, e, order, "order-2", "declined"))
	await(t, start(t, e, order, "order-3", "declined"))
	start(t, e, approval, "approval-1", "budget")
	family := start(t, e, family, "family-1", "book")
	until(t, "the start of the second child", func() bool {
		tree, err := e.Tree(within(t), family.ID())
		return err == nil && len(tree.Children) == 2
	})
	until(t, "the first execution of the approval", func() bool {
		run, err := e.Get(within(t), "approval-1")
		return err == nil && len(run.OpenCalls) == 1
	})
	for _, id := range []string{"approval-1", "family-1"} { // live runs would change while they are shown
		if _, err := e.Pause(within(t), id, durable.Reason("audit"), durable.Actor("ann")); err != nil {
			t.Fatal(err)
		}
		until(t, "the pause", func() bool {
			tree, err := e.Tree(within(t), id)
			return err == nil && tree.Status == durable.StatusPaused && (len(tree.Children) == 0 || tree.Children[1].Status == durable.StatusPaused)
		})
	}
	stop()
	if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 4, Rate: durable.QueueRate{Count: 10, Period: 60e9}}, durable.Actor("bob"), durable.Reason("quota")); err != nil {
		t.Fatal(err)
	}
	if err := e.PauseQueue(within(t), "mail", durable.Reason("provider down"), durable.Actor("bob")); err != nil {
		t.Fatal(err)
	}
	if err := e.SetLimit(within(t), "bank", durable.LimitBounds{Concurrent: 2, Rate: 5, Period: 1e9}); err != nil {
		t.Fatal(err)
	}
	if err := e.SetSchedule(within(t), durable.Schedule{Name: "nightly", Cron: "30 2 * * *", Location: "Europe/Berlin", Workflow: "order", Input: "x"}); err != nil {
		t.Fatal(err)
	}
}

// Each command that looks has a golden output in each format, and both stores have the same.
func TestLook(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		populate(t, p)
		e := p.client(t)
		for name, args := range map[string][]string{
			"list":        {"list", "--roots"},
			"get-failed":  {"get", "order-2"},
			"get-paused":  {"get", "approval-1"},
			"get-tagged":  {"get", "order-1"},
			"history":     {"history", "family-1"},
			"generations": {"generations", "order-1"},
			"tree":        {"tree", "family-1"},
			"counts":      {"counts"},
			"counts-tree": {"counts", "family-1"},
			"failures":    {"failures"},
			"events":      {"events", "--type", "failed,expired"},
			"queues":      {"queues"},
			"limits":      {"limits"},
			"schedules":   {"schedules"},
		} {
			var all strings.Builder
			for _, format := range []string{"table", "wide", "json", "jsonl", "id"} {
				got := commandOn(t, e, "", append(args, "-o", format)...)
				if got.code != 0 || got.err != "" {
					t.Errorf("durable %q exits with %d: %s", args, got.code, got.err)
				}
				if format == "json" && !jsontext.Value(got.out).IsValid() {
					t.Errorf("%s writes no JSON: %s", args, got.out)
				}
				if format == "json" { // its fields are those of jsonl
					continue
				}
				all.WriteString("$ durable " + strings.Join(append(args, "-o", format), " ") + "\n" + got.out)
			}
			golden(t, name, steady(all.String()))
		}
	})
}

// cursors finds what differs between the stores: cursors, and how often a run was claimed.
var cursors = regexp.MustCompile(`"cursor":"[^"]*",|"epoch":\d+,|(?m)^Claims .*\n|  \d\S*-\d{16}\b`)

// steady returns the output without what differs between the stores.
func steady(text string) string { return cursors.ReplaceAllString(text, "") }
