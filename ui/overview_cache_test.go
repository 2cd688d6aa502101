package ui_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// An overview is read once for all who load it within a second, and again for those who are told of a change. Those who follow it do not wait for the
// database: it has been read before they are told.
func TestOverviewIsReadBeforeItIsLoaded(t *testing.T) {
	t.Parallel()
	working, looking, count := counted(t)
	start(t, working, order, "good", "in")
	h := ui.Handler(looking, ui.Authorize(anyone))
	load := func(round string) (statements int64) {
		before := count.sent.Load()
		if got := send(h, "/", nil, "Durable-Round", round); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), ">good</a>") {
			t.Errorf("the overview is %d: %s", got.Code, got.Body)
		}
		return count.sent.Load() - before
	}
	round := ui.StartRound(h)
	if n := load(round); n < 5 {
		t.Errorf("the first load in a round sends %d statements", n)
	}
	if n := load(round) + load(round) + load(""); n != 0 {
		t.Errorf("further loads send %d statements", n)
	}
	if n := load(ui.StartRound(h)); n < 5 {
		t.Errorf("after a change, the overview is not read again: %d statements", n)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	_, next := stream(t, within(t), server.URL, "/live?"+url.Values{"page": {"/"}}.Encode())
	for line := next(); line != ""; line = next() {
		if round, told := strings.CutPrefix(line, "data: "); told && load(round) == 0 { // else the stream has read its events meanwhile
			return
		}
	}
	t.Error("who is told to load the overview waits for the database")
}

// The overview that people share has only runs that each of them may see, and is shown to nobody who may not read.
func TestSharedOverviewKeepsToWhatEachMaySee(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "of sales", "in", durable.Tag("team.name", "sales"))
		start(t, e, order, "of support", "in", durable.Tag("team.name", "support"))
		h := ui.Handler(e, ui.Visible(func(r *http.Request) durable.Filter {
			return durable.Filter{Tag: "team.name", TagValue: r.Header.Get("Team")}
		}), ui.Authorize(func(r *http.Request, _ ui.Action) (string, error) {
			if r.Header.Get("Team") == "" {
				return "", errors.New("log in")
			}
			return "somebody", nil
		}))
		for range 2 { // the second time, from the copy
			for team, other := range map[string]string{"sales": "support", "support": "sales"} {
				body := send(h, "/", nil, "Team", team).Body.String()
				if !strings.Contains(body, ">of "+team+"</a>") || strings.Contains(body, "of "+other) {
					t.Errorf("%s sees %s", team, body)
				}
			}
			if got := send(h, "/", nil); got.Code != http.StatusForbidden || strings.Contains(got.Body.String(), "of sales") {
				t.Errorf("without a login: %d %s", got.Code, got.Body)
			}
		}
	})
}

// Who acts sees the effect in the overview at once.
func TestOverviewShowsAnActAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in")
		h := ui.Handler(e, ui.Authorize(anyone))
		const paused = `class="status paused">paused</span></a>`
		if body := send(h, "/", nil).Body.String(); strings.Contains(body, paused) {
			t.Fatalf("before: %s", body)
		}
		if got := send(h, "/act", url.Values{"verb": {"pause"}, "run": {"waits"}, "reason": {"look"}}); got.Code != http.StatusSeeOther {
			t.Fatal(got.Code, got.Body)
		}
		if body := send(h, "/", nil).Body.String(); !strings.Contains(body, paused) {
			t.Errorf("after: %s", body)
		}
	})
}
