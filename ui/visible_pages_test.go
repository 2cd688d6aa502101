package ui_test

import (
	"encoding/json/v2"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// tenantA sees the runs of one tenant.
var tenantA = ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Tag: "tenant.id", TagValue: "a"} })

// Somebody who may not see all runs passes the events of hidden runs, and finds those of visible ones.
func TestEventsGoOnAfterHiddenOnes(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		for i := range 5 {
			start(t, e, order, fmt.Sprint("other-", i), "in", durable.Tag("tenant.id", "b"))
		}
		start(t, e, order, "mine", "in", durable.Tag("tenant.id", "a"))
		start(t, e, order, "other-last", "in", durable.Tag("tenant.id", "b"))
		until(t, func() bool { // events are shown when all earlier transactions on the server have ended
			all, err := e.LatestEvents(within(t), durable.Page{Limit: 1})
			return err == nil && len(all) == 1 && all[0].ID == "other-last"
		})
		h := ui.Handler(e, tenantA)
		for _, path := range []string{"events", "latest_events"} {
			cursor, found := "", 0
			for range 100 {
				var page struct {
					Events []struct{ ID string }
					Next   string
				}
				got := send(h, "/api/v1/"+path+"?limit=2&cursor="+url.QueryEscape(cursor), nil)
				if err := json.Unmarshal(got.Body.Bytes(), &page, json.MatchCaseInsensitiveNames(true)); err != nil || got.Code != http.StatusOK {
					t.Fatalf("%s gives %d, %v: %s", path, got.Code, err, got.Body)
				}
				for _, event := range page.Events {
					if found++; event.ID != "mine" {
						t.Errorf("%s shows an event of %s", path, event.ID)
					}
				}
				if page.Next == cursor || page.Next == "" {
					break
				}
				cursor = page.Next
			}
			if found == 0 || cursor == "" {
				t.Errorf("%s: %d events were found until the cursor %q", path, found, cursor)
			}
		}
	})
}

// A tag of the page is combined with another tag of Visible, in lists and in bulk acts.
func TestASecondTagIsAnotherCondition(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		for i := range 7 {
			id, tags := fmt.Sprint("run-", i), []durable.StartOption{durable.Tag("tenant.id", "a"), durable.Delay(1 << 40)}
			if i%2 == 0 {
				tags = append(tags, durable.Tag("team.owner", "pay"))
			}
			if _, err := approval.Start(within(t), e, "in", append(tags, durable.ID(id))...); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := approval.Start(within(t), e, "in", durable.ID("hidden"), durable.Delay(1<<40), durable.Tag("tenant.id", "b"), durable.Tag("team.owner", "pay")); err != nil {
			t.Fatal(err)
		}
		h := ui.Handler(e, tenantA, ui.Authorize(anyone), ui.SearchFor(time.Minute)) // the machine may be busy
		for q, want := range map[string]string{
			"tag=team.owner%3Dpay": "[run-6 run-4 run-2 run-0]", "tag=team.owner": "[run-6 run-4 run-2 run-0]", "tag=team.owner%3Dmail": "[]",
			"tag=tenant.id": "[run-6 run-5 run-4 run-3 run-2 run-1 run-0]", "tag=tenant.id%3Db": "[]",
		} {
			for _, limit := range []int{1, 3, 4, 100} {
				ids, pages := []string{}, 0
				for cursor := ""; ; pages++ {
					var page struct {
						Runs []struct{ ID string }
						Next string
					}
					got := send(h, fmt.Sprintf("/api/v1/runs?%s&limit=%d&cursor=%s", q, limit, cursor), nil)
					if err := json.Unmarshal(got.Body.Bytes(), &page, json.MatchCaseInsensitiveNames(true)); err != nil || got.Code != http.StatusOK {
						t.Fatalf("%s gives %d, %v: %s", q, got.Code, err, got.Body)
					}
					for _, run := range page.Runs {
						ids = append(ids, run.ID)
					}
					if cursor = page.Next; cursor == "" || pages > 10 {
						break
					}
				}
				if fmt.Sprint(ids) != want {
					t.Errorf("%s in pages of %d lists %v", q, limit, ids)
				}
			}
		}
		if got := send(h, "/api/v1/failures?tag=team.owner", nil); got.Code != http.StatusBadRequest {
			t.Errorf("groups of failures with a second tag give %d: %s", got.Code, got.Body)
		}
		page := bulkPortion(t, h, fieldsOf(bulkPreview(t, h, url.Values{"verb": {"pause"}, "tag": {"team.owner=pay"}})))
		if !strings.Contains(page, "4 runs paused") || !strings.Contains(page, "There are no more") {
			t.Errorf("the bulk act is %s", page)
		}
		if run, err := e.Get(within(t), "hidden"); err != nil || run.Status == durable.StatusPaused {
			t.Errorf("the hidden run is %+v, %v", run, err)
		}
	})
}

// A page whose search stopped has a cursor that names no hidden run, and with which another process continues too.
func TestCursorsOfSearchesNameNoHiddenRun(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		startMany(t, e)
		oldest, err := e.Get(within(t), "oldest")
		if err != nil {
			t.Fatal(err)
		}
		handler := func() http.Handler {
			return ui.Handler(e, ui.SearchFor(1), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "approval"} }))
		}
		h, cursor, found := handler(), "", ""
		for pages := 0; found == ""; pages++ {
			var page struct {
				Runs []struct{ ID string }
				Next string
			}
			got := send(h, "/api/v1/runs?cursor="+url.QueryEscape(cursor), nil)
			if err := json.Unmarshal(got.Body.Bytes(), &page, json.MatchCaseInsensitiveNames(true)); err != nil || got.Code != http.StatusOK || pages > 100 {
				t.Fatalf("page %d gives %d, %v: %s", pages, got.Code, err, got.Body)
			}
			if cursor = page.Next; len(page.Runs) > 0 {
				found = page.Runs[0].ID
			} else if len(cursor) < 50 || !strings.HasPrefix(cursor, ".") {
				t.Errorf("page %d ends with the cursor %q", pages, cursor)
			}
			if got := send(handler(), "/api/v1/runs?cursor="+url.QueryEscape(cursor), nil); got.Code != http.StatusOK {
				t.Errorf("another process gives %d: %s", got.Code, got.Body)
			}
		}
		if found != oldest.ID {
			t.Errorf("the search finds %q", found)
		}
		for _, cursor := range []string{"x", "x.y", oldest.RunID + "x.y"} {
			if got := send(h, "/api/v1/runs?cursor="+cursor, nil); got.Code != http.StatusBadRequest {
				t.Errorf("the cursor %q gives %d: %s", cursor, got.Code, got.Body)
			}
		}
	})
}
