package durablecli_test

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// The audit lists acts on runs, queues, limits and workers with their authors and reasons, the latest first, and nothing else.
func TestAudit(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		bad := start(t, e, order, "order-1", "declined")
		await(t, bad)
		start(t, e, order, "order-2", "book")
		start(t, e, approval, "approval-1", "budget")
		start(t, e, approval, "approval-2", "budget")
		by := func(actor, reason string) []string { return []string{"--actor", actor, "--reason", reason} }
		for _, args := range [][]string{
			append([]string{"limit", "set", "bank", "--concurrent", "4"}, by("ann", "agreed")...),
			append([]string{"queue", "set", "mail", "--max-executing", "4"}, by("ann", "quota")...),
			append([]string{"queue", "pause", "mail"}, by("bob", "bounces")...),
			append([]string{"retry", "order-1"}, by("ann", "the bank is back")...),
			append([]string{"pause", "approval-1"}, by("cid", "audit\x1b[2J")...),
			append([]string{"cancel", "approval-2"}, by("dan", "a mistake")...),
		} {
			runOn(t, e, 0, "", args...)
		}
		until(t, "the pause and the cancel", func() bool {
			return status(t, e, "approval-1") == durable.StatusPaused && status(t, e, "approval-2") == durable.StatusCancelled && status(t, e, "order-1") == durable.StatusFailed && status(t, e, "order-2") == durable.StatusCompleted
		})
		stop()
		until(t, "the events of the last acts, which are shown when all earlier transactions on the server have ended", func() bool {
			got := runOn(t, e, 0, "", "audit", "-o", "wide").out
			return strings.Contains(got, "approval-2") && strings.Contains(got, "approval-1") && strings.Contains(got, "order-1")
		})
		var wide []string
		for line := range strings.Lines(runOn(t, e, 0, "", "audit", "-o", "wide").out) {
			wide = append(wide, normal(strings.TrimSpace(line)))
		}
		got := strings.Join(wide, "\n")
		for _, want := range []string{"pause  queue  mail  bob  bounces", "set  limit  bank  ann  agreed", "repair  run  order-1  order  ann  the bank is back  1 to 2", `pause  run  approval-1  approval  cid  audit\x1b[2J`, "cancel  run  approval-2  approval  dan  a mistake"} {
			if !strings.Contains(got, want) {
				t.Errorf("the audit lacks %q:\n%s", want, got)
			}
		}
		if len(wide) != 6 || strings.Contains(got, "order-2") {
			t.Errorf("the audit has %d lines:\n%s", len(wide), got)
		}
		runOn(t, e, 0, "", append([]string{"delete", "approval-2", "--yes"}, by("eve", "privacy")...)...)
		until(t, "the event of the deletion", func() bool { return strings.Contains(runOn(t, e, 0, "", "audit").out, "privacy") })
		if got := runOn(t, e, 0, "", "audit", "-o", "jsonl").out; strings.Count(got, `"verb":"cancel"`) != 1 || !strings.Contains(got, `"actor":"dan","reason":"a mistake"`) {
			t.Errorf("after the deletion of the cancelled run the audit is\n%s", got)
		}
		if got := runOn(t, e, 0, "", "audit", "-n", "1"); strings.Count(got.out, "\n") != 2 || !strings.Contains(got.err, "earlier acts") {
			t.Errorf("with a limit: %s%s", got.out, got.err)
		}
		if got := runOn(t, e, 0, "", "audit", "--after", "now", "-o", "jsonl").out; got != "" {
			t.Errorf("after now: %s", got)
		}
		runOn(t, e, durablecli.ExitUsage, "", "audit", "--after", "someday")
	})
}
