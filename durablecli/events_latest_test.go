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
		for { // events of the last transactions can come meanwhile
			all, _ := lines("0")
			latest, said := lines("2")
			again, _ := lines("0")
			if !slices.Equal(all, again) {
				continue
			}
			if len(all) < 3 || !slices.Equal(latest, all[len(all)-2:]) || !strings.Contains(said, "earlier events") {
				t.Errorf("the latest events are %q (%s), of %q", latest, said, all)
			}
			if whole, said := lines("1000"); !slices.Equal(whole, all) || said != "" {
				t.Errorf("all events are %q (%s), want %q", whole, said, all)
			}
			return
		}
	})
}
