package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// Two filters whose texts are the same when they are written one after the other share nothing in a round, or in the time for which a read counts.
func TestFiltersOfARoundAreDistinguished(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "odd", "declined", durable.InQueue("y Queue:"))
		h := ui.Handler(e)
		first := url.Values{"workflow": {"order Queue:y"}}.Encode()
		second := url.Values{"workflow": {"order"}, "queue": {"y Queue:"}}.Encode()
		round := ui.StartRound(h)
		for _, path := range []string{"/api/v1/runs?", "/api/v1/failures?"} {
			if body := send(h, path+first, nil, "Durable-Round", round).Body.String(); strings.Contains(body, "odd") {
				t.Errorf("%s%s: %s", path, first, body)
			}
			if got := send(h, path+second, nil, "Durable-Round", round); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "odd") {
				t.Errorf("%s%s is answered with what the other filter found: %d %s", path, second, got.Code, got.Body)
			}
		}
		part := func(call, generation string) string {
			return "/api/v1/history_page?" + url.Values{"id": {"odd"}, "call": {call}, "generation": {generation}}.Encode()
		}
		if got := send(h, part("charge", "1"), nil, "Durable-Round", round); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "declined") {
			t.Errorf("the call: %d %s", got.Code, got.Body)
		}
	})
}
