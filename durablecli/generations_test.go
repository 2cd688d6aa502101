package durablecli_test

import (
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// The command generations lists the latest ones in their order, and says how to get those before.
func TestGenerationsListsTheLatest(t *testing.T) {
	renewed := durable.Define("renewed", func(c *durable.Ctx, n int) (int, error) {
		if n < 5 {
			return 0, c.ContinueAsNew(n + 1)
		}
		return n, nil
	})
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t, renewed)
		if _, err := renewed.Call(within(t), e, 1, durable.ID("renewed")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ args, want, says string }{
			{"", "1 2 3 4 5", ""},
			{"-n 0", "1 2 3 4 5", ""},
			{"-n 2", "4 5", "--cursor 4"},
			{"-n 2 --cursor 4", "2 3", "--cursor 2"},
			{"-n 2 --cursor 2", "1", ""},
		} {
			got := commandOn(t, e, "", append([]string{"generations", "renewed", "-o", "id"}, strings.Fields(c.args)...)...)
			if ids := strings.Join(strings.Fields(got.out), " "); got.code != 0 || ids != c.want || !strings.Contains(got.err, c.says) || c.says == "" && got.err != "" {
				t.Errorf("generations %s lists %q and says %q, want %q and %q", c.args, ids, got.err, c.want, c.says)
			}
		}
		if got := commandOn(t, e, "", "generations", "renewed", "-n", "-1"); got.code != 2 {
			t.Errorf("a negative limit exits with %d: %s", got.code, got.err)
		}
	})
}
