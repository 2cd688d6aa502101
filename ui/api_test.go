package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// What the pages show of failures, acts, events and schedules is available as JSON, and hides what the pages hide.
func TestJSONOfFailuresAuditEventsAndFires(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "bad", "declined 4711")
		start(t, e, approval, "waits", "in")
		if _, err := e.Terminate(within(t), "waits", durable.Actor("ann"), durable.Reason("obsolete")); err != nil {
			t.Fatal(err)
		}
		nightly := durable.Schedule{Name: "nightly", Workflow: "order", Every: 24 * time.Hour, Input: "in"}
		if err := e.SetSchedule(within(t), nightly); err != nil {
			t.Fatal(err)
		}
		if _, err := e.TriggerSchedule(within(t), "nightly"); err != nil {
			t.Fatal(err)
		}
		redact := ui.Redact(func(f ui.Field) string { return strings.ReplaceAll(f.Value, "4711", "****") })
		h := ui.Handler(e, ui.Authorize(anyone), redact)
		for path, want := range map[string][]string{
			"failures":                    {`"step": "charge"`, "declined ****", `"runs": 1`},
			"failures?created_before=2d":  {"[]"},
			"audit":                       {`"last": [`, `"verb": "terminate"`, `"actor": "ann"`, "obsolete"},
			"latest_events":               {`"type": "cancelled"`},
			"divergences?id=bad":          {"[]"},
			"schedule_fires?name=nightly": {`"outcome": `},
			"schedule_fires?name=nightly&cursor=2000-01-01T00:00:00Z": {"[]"},
		} {
			until(t, func() bool { // events are shown when all earlier transactions on the server have ended
				got := send(h, "/api/v1/"+path, nil)
				if got.Code != http.StatusOK || strings.Contains(got.Body.String(), "4711") {
					t.Fatalf("%s gives %d: %s", path, got.Code, got.Body)
				}
				for _, text := range want {
					if !strings.Contains(got.Body.String(), text) {
						t.Logf("%s does not say %q yet: %s", path, text, got.Body)
						return false
					}
				}
				return true
			})
		}
		for path, code := range map[string]int{"name=nightly2": http.StatusNotFound, "name=nightly&cursor=x": http.StatusBadRequest} {
			if got := send(h, "/api/v1/schedule_fires?"+path, nil); got.Code != code {
				t.Errorf("the fires of %s: %d: %s", path, got.Code, got.Body)
			}
		}
		bounded := ui.Handler(e, ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "approval"} }))
		for path, code := range map[string]int{"failures": http.StatusOK, "audit": http.StatusOK, "latest_events": http.StatusOK, "divergences?id=bad": http.StatusNotFound, "schedule_fires?name=nightly": http.StatusNotFound} {
			if got := send(bounded, "/api/v1/"+path, nil); got.Code != code || strings.Contains(got.Body.String(), "bad") || strings.Contains(got.Body.String(), "declined") {
				t.Errorf("bounded, %s gives %d: %s", path, got.Code, got.Body)
			}
		}
	})
}

// The runs of a filter are terminated in portions, as they are cancelled.
func TestManyRunsAreTerminated(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "a-1", "in")
		start(t, e, approval, "a-2", "in")
		start(t, e, approval, "b-1", "in")
		h := ui.Handler(e, ui.Authorize(anyone))
		page := bulkPreview(t, h, url.Values{"verb": {"terminate"}, "id_prefix": {"a-"}})
		if !strings.Contains(page, `class="danger"`) || !strings.Contains(page, "durable terminate --id-prefix a-") {
			t.Errorf("the preview is %s", page)
		}
		if page = bulkPortion(t, h, fieldsOf(page)); !strings.Contains(page, "2 runs terminated") {
			t.Errorf("the portion is %s", page)
		}
		for id, want := range map[string]durable.Status{"a-1": durable.StatusCancelled, "a-2": durable.StatusCancelled, "b-1": durable.StatusWaiting} {
			if run, err := e.Get(within(t), id); err != nil || run.Status != want {
				t.Errorf("%s is %+v, %v", id, run, err)
			}
		}
	})
}
