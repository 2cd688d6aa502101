package durablecli_test

import (
	"slices"
	"strings"
	"testing"
)

// Without a cursor, events shows the latest ones, in the order in which they came.
func TestEventsShowsTheLatest(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		populate(t, p)
		e := p.client(t)
		lines := func(limit string) (ids []string, said string) {
			got := commandOn(t, e, "", "events", "-n", limit, "-o", "id")
			if got.code != 0 {
				t.Fatalf("it exits with %d: %s", got.code, got.err)
			}
			return strings.Fields(got.out), got.err
		}
		var all, latest, whole []string
		var said, saidOfAll string
		until(t, "the same events before and after", func() bool { // an event is shown when all earlier transactions on the server have ended
			all, _ = lines("0")
			latest, said = lines("2")
			whole, saidOfAll = lines("1000")
			again, _ := lines("0")
			return len(all) >= 3 && slices.Equal(all, again)
		})
		if !slices.Equal(latest, all[len(all)-2:]) || !strings.Contains(said, "earlier events") {
			t.Errorf("the latest events are %q (%s), of %q", latest, said, all)
		}
		if !slices.Equal(whole, all) || saidOfAll != "" {
			t.Errorf("all events are %q (%s), want %q", whole, saidOfAll, all)
		}
	})
}
