package ui_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// The page of the health shows what durable doctor finds in runs, workers, queues and schedules, and so does the JSON.
func TestHealthPage(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		for _, err := range []error{
			e.SetSchedule(within(t), durable.Schedule{Name: "nightly", Workflow: "order", Cron: "0 0 1 1 *", Input: "in"}),
			e.PauseSchedule(within(t), "nightly", durable.Reason("<audit>"), durable.Actor("ann")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		h := ui.Handler(e)
		page := send(h, "/health", nil)
		if body := page.Body.String(); page.Code != http.StatusOK || !strings.Contains(body, "schedule nightly is paused") || !strings.Contains(body, "&lt;audit&gt;") || !strings.Contains(body, "durable schedule resume nightly") || !strings.Contains(body, `aria-current="page">Health`) {
			t.Errorf("%d %s", page.Code, body)
		}
		if body := send(h, "/api/v1/health", nil).Body.String(); !strings.Contains(body, `"level": "warning"`) || !strings.Contains(body, `"check": "schedules"`) || !strings.Contains(body, `"fix": "durable schedule resume nightly`) {
			t.Errorf("the JSON is %s", body)
		}
		bounded := ui.Handler(e, ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "approval"} }))
		if got := send(bounded, "/health", nil); got.Code != http.StatusForbidden || strings.Contains(got.Body.String(), "nightly") {
			t.Errorf("bounded: %d %s", got.Code, got.Body)
		}
	})
}
