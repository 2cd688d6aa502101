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
