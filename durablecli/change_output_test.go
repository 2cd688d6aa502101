package durablecli_test

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/durablecli"
)

// A command that changes nothing because of an error writes the error, and no table without rows. JSON stays an array.
func TestRefusedChangesWriteNoTable(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		await(t, start(t, e, order, "ended", "book"))
		stop()
		for _, command := range []string{
			"pause ended", "resume ended", "cancel ended", "terminate ended", "retry ended", "move mail ended", "priority 2 ended", "timeout 1h ended",
			"signal ended go", "retry -w order --yes -s completed",
		} {
			for _, format := range []string{"table", "wide"} {
				if got := runOn(t, e, durablecli.ExitError, "", append(strings.Fields(command), "-o", format)...); got.out != "" || got.err == "" {
					t.Errorf("%s -o %s writes %q and the message %q", command, format, got.out, got.err)
				}
			}
			if got := runOn(t, e, durablecli.ExitError, "", append(strings.Fields(command), "-o", "json")...); got.out != "[]\n" {
				t.Errorf("%s -o json writes %q", command, got.out)
			}
		}
		if got := runOn(t, e, durablecli.ExitNotFound, "", "delete", "missing"); got.out != "" {
			t.Errorf("a deletion of nothing writes %q", got.out)
		}
	})
}

// The table of a repair names the step whose value is set, and says that a dry run has changed nothing.
func TestRepairsNameTheStepWhoseValueIsSet(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, stop := p.engine(t)
		await(t, start(t, e, order, "paid", "book"))
		await(t, start(t, e, order, "unpaid", "declined"))
		await(t, start(t, e, order, "ended", "declined"))
		stop()
		if got := runOn(t, e, durablecli.ExitUsage, "", "delete", "--dry-run"); strings.Contains(got.err, "dry run") {
			t.Errorf("without runs, delete says %q", got.err)
		}
		const isDry = "this was a dry run: nothing was changed\n"
		for _, args := range [][]string{
			{"override", "paid", "charge", `"paid twice"`},
			{"skip", "unpaid", "charge", `"by hand"`},
			{"fork", "paid", "--from-end", "--with", `charge="paid twice"`, "--new-id", "other"},
		} {
			dry, wet := runOn(t, e, 0, "", append(args, "--dry-run")...), runOn(t, e, 0, "", args...)
			if dry.out != wet.out || dry.err != isDry || wet.err != "" {
				t.Errorf("%q writes %s%s\nand its dry run %s%s", args, wet.out, wet.err, dry.out, dry.err)
			}
			title, row, _ := strings.Cut(wet.out, "\n")
			if at := strings.Index(title, "VALUE SET"); at < 0 || !strings.HasPrefix(row[at:], "charge ") {
				t.Errorf("%q writes\n%s", args, wet.out)
			}
		}
		if got := runOn(t, e, 0, "", "rerun", "paid", "charge", "--dry-run"); strings.Contains(got.out, "VALUE SET") {
			t.Errorf("a rerun sets no value, and writes\n%s", got.out)
		}
		for _, args := range [][]string{{"delete", "ended"}, {"prune", "--older-than", "1ms"}, {"tag", "ended", "a.b=c"}, {"delete", "-s", "failed", "--id-prefix", "nosuch"}} {
			if got := runOn(t, e, 0, "", append(args, "--dry-run")...); !strings.HasSuffix(got.err, isDry) {
				t.Errorf("the dry run of %q says %q", args, got.err)
			}
			if got := runOn(t, e, 0, "", append(args, "--dry-run", "-o", "jsonl")...); strings.Contains(got.err, isDry) {
				t.Errorf("the dry run of %q for a program says %q", args, got.err)
			}
		}
	})
}
