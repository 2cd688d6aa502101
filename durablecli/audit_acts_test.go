package durablecli_test

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// Each command with --reason and --actor is in the audit and among the events.
func TestEachActIsInTheAudit(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		start(t, e, approval, "approval-1", "budget")
		until(t, "the wait", func() bool { return status(t, e, "approval-1") == durable.StatusWaiting })
		stop()
		by := []string{"--actor", "ann", "--reason", "the bank is back"}
		for _, args := range [][]string{
			{"queue", "set", "mail", "--max-executing", "4"},
			{"limit", "set", "bank", "--concurrent", "4"},
			{"schedule", "set", "daily", "--cron", "@daily", "--workflow", "approval", "--input", `"in"`},
			{"pause", "approval-1"},
			{"resume", "approval-1"},
			{"signal", "approval-1", "go", "1"},
			{"tag", "approval-1", "team.owner=pay"},
			{"timeout", "2h", "approval-1"},
			{"schedule", "trigger", "daily"},
			{"schedule", "backfill", "daily", "--from", "2d", "--to", "1d"},
			{"schedule", "delete", "daily"},
			{"limit", "delete", "bank"},
			{"queue", "delete", "mail"},
		} {
			runOn(t, e, 0, "", append(args, by...)...)
		}
		audit := ""
		until(t, "the events, which are shown when all earlier transactions on the server have ended", func() bool {
			audit = runOn(t, e, 0, "", "audit", "-o", "wide").out
			return strings.Contains(audit, "mail")
		})
		var lines strings.Builder
		for line := range strings.Lines(audit) {
			lines.WriteString(normal(strings.TrimSpace(line)) + "\n")
		}
		for _, want := range []string{
			"pause  run  approval-1  approval  ann  the bank is back", "resume  run  approval-1  approval  ann  the bank is back", "signal  run  approval-1  approval  ann  the bank is back  go",
			"tag  run  approval-1  approval  ann  the bank is back  team.owner=pay", "timeout  run  approval-1  approval  ann  the bank is back  TIME", "trigger  run  daily@", "backfill  run  daily@",
			"delete  schedule  daily  ann  the bank is back", "delete  limit  bank  ann  the bank is back", "delete  queue  mail  ann  the bank is back",
		} {
			if !strings.Contains(lines.String(), want) {
				t.Errorf("the audit lacks %q:\n%s", want, lines.String())
			}
		}
		events := runOn(t, e, 0, "", "events", "--type", "signalled,queue_deleted").out
		if !strings.Contains(events, "go the bank is back (by ann)") || !strings.Contains(events, "mail") {
			t.Errorf("the events are\n%s", events)
		}
	})
}
