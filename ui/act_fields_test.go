package ui_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// postJSON sends the act of a JSON object, and fails the test if the status is another.
func postJSON(t *testing.T, h http.Handler, code int, body string) string {
	t.Helper()
	got := httptest.NewRecorder()
	h.ServeHTTP(got, httptest.NewRequest(http.MethodPost, "/api/v1/act", strings.NewReader(body)))
	if got.Code != code {
		t.Fatalf("%s gives %d, not %d: %s", body, got.Code, code, got.Body)
	}
	return got.Body.String()
}

// The fields of a JSON act mean what their JSON says: true and false are yes and no, and null is as if the field were missing.
func TestFieldsOfJSONActs(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		for _, c := range []struct {
			closed       string
			code         int
			closedAtLast bool
		}{
			{"true", http.StatusOK, true},
			{"null", http.StatusOK, true},
			{`""`, http.StatusOK, true},
			{"false", http.StatusOK, false},
			{`"yes"`, http.StatusOK, true},
			{`"no"`, http.StatusOK, false},
			{`"open"`, http.StatusBadRequest, false},
			{"1", http.StatusBadRequest, false},
		} {
			postJSON(t, h, c.code, `{"verb": "set", "queue_name": "mail", "max_executing": 3, "closed": `+c.closed+`}`)
			if all, err := e.Queues(within(t)); err != nil || len(all) != 1 || all[0].Settings.Closed != c.closedAtLast || all[0].Settings.MaxExecuting != 3 {
				t.Errorf("after closed %s the queues are %+v, %v", c.closed, all, err)
			}
		}
		start(t, e, approval, "waits", "in")
		postJSON(t, h, http.StatusOK, `{"verb": "pause", "run": "waits", "queue_name": null, "reason": null, "dry_run": null}`)
		if run, err := e.Get(within(t), "waits"); err != nil || run.Status != durable.StatusPaused {
			t.Errorf("the run is %+v, %v", run, err)
		}
		postJSON(t, h, http.StatusOK, `{"verb": "resume", "run": "waits", "freeze_timers": false}`)
		for _, fields := range []string{`"run": ["waits"]`, `"run": "waits", "reason": {}`, `"run": "waits", "interrupt_steps": "perhaps"`, `"run": "waits", "dry-run": true`, `"run": "waits", "run": "bad"`} {
			postJSON(t, h, http.StatusBadRequest, `{"verb": "terminate", `+fields+`}`)
		}
		start(t, e, order, "bad", "declined")
		if body := postJSON(t, h, http.StatusOK, `{"verb": "retry", "run": "bad", "from_end": null, "interrupt_steps": false, "dry_run": true}`); !strings.Contains(body, "Made again: charge") {
			t.Errorf("the preview is %s", body)
		}
		postJSON(t, h, http.StatusOK, `{"verb": "signal", "run": "waits", "name": "approve", "payload": false}`)
		postJSON(t, h, http.StatusOK, `{"verb": "signal", "run": "waits", "name": "approve", "payload": null}`)
		if run, err := e.Get(within(t), "waits"); err != nil || run.Status == durable.StatusCancelled {
			t.Errorf("the run is %+v, %v", run, err)
		}
	})
}
