package ui_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

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

// The form of a queue has all its bounds, and sets what it shows.
func TestTheFormOfAQueueHasAllBounds(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		want := durable.QueueSettings{
			MaxExecuting: 1, MaxExecutingPerWorker: 1, MaxInProgress: 9, MaxExecutingPerKey: 1, MaxInProgressPerKey: 4, Depth: 50, Closed: true,
			Rate: durable.QueueRate{Count: 10, Period: time.Second, Burst: 3}, RatePerKey: durable.QueueRate{Count: 5, Period: time.Minute, Burst: 2},
		}
		if err := e.SetQueue(within(t), "mail", want); err != nil {
			t.Fatal(err)
		}
		_, form, _ := strings.Cut(send(h, "/queues", nil).Body.String(), `<input type="hidden" name="verb" value="set">`)
		form, _, _ = strings.Cut(form, "</form>")
		fields := []string{"verb", "set", "queue_name", "mail"}
		for _, m := range regexp.MustCompile(`<input name="([a-z_]+)"[^>]*? value="([^"]*)"|<select name="([a-z_]+)">.*?<option value="([a-z]+)" selected>`).FindAllStringSubmatch(form, -1) {
			fields = append(fields, m[1]+m[3], m[2]+m[4])
		}
		for _, name := range []string{"rate", "rate_per_key", "closed"} {
			if !strings.Contains(form, ` name="`+name+`"`) {
				t.Errorf("the form has no %s: %s", name, form)
			}
		}
		if err := e.SetQueue(within(t), "mail", durable.QueueSettings{Rate: want.Rate, RatePerKey: want.RatePerKey}); err != nil {
			t.Fatal(err)
		}
		post(t, h, http.StatusSeeOther, fields...)
		if all, err := e.Queues(within(t)); err != nil || all[0].Settings != want {
			t.Errorf("after %v the queue is %+v, %v", fields, all[0].Settings, err)
		}
		postJSON(t, h, http.StatusOK, `{"verb": "set", "queue_name": "mail", "rate_per_key": "7/h", "burst_per_key": 4, "burst": 2, "closed": false}`)
		want.Closed, want.Rate.Burst, want.RatePerKey = false, 2, durable.QueueRate{Count: 7, Period: time.Hour, Burst: 4}
		if all, err := e.Queues(within(t)); err != nil || all[0].Settings != want {
			t.Errorf("the queue is %+v, %v", all[0].Settings, err)
		}
		postJSON(t, h, http.StatusOK, `{"verb": "set", "limit_name": "api", "concurrent": 2, "rate": "7/h", "burst": 4}`)
		if all, err := e.Limits(within(t)); err != nil || all[0].LimitBounds != (durable.LimitBounds{Concurrent: 2, Rate: 7, Period: time.Hour, Burst: 4}) {
			t.Errorf("the limit is %+v, %v", all, err)
		}
	})
}

// A zero does not remove a bound: who writes it may mean that nothing executes. The text none does, and the form shows it.
func TestAZeroDoesNotRemoveABound(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		bounds := durable.LimitBounds{Concurrent: 2, Rate: 7, Period: time.Hour, Burst: 4}
		if err := e.SetLimit(within(t), "api", bounds); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"concurrent", "rate"} {
			if got := post(t, h, http.StatusBadRequest, "verb", "set", "limit_name", "api", field, "0"); !strings.Contains(got, "none to remove the bound") {
				t.Errorf("%s 0: %s", field, got)
			}
		}
		postJSON(t, h, http.StatusBadRequest, `{"verb": "set", "queue_name": "mail", "depth": 0}`)
		if all, err := e.Limits(within(t)); err != nil || all[0].LimitBounds != bounds {
			t.Errorf("the limit is %+v, %v", all, err)
		}
		post(t, h, http.StatusSeeOther, "verb", "set", "limit_name", "api", "concurrent", "none", "rate", "none")
		if all, err := e.Limits(within(t)); err != nil || all[0].LimitBounds != (durable.LimitBounds{}) {
			t.Errorf("the limit is %+v, %v", all, err)
		}
		if page := send(h, "/limits", nil).Body.String(); !strings.Contains(page, `<input name="concurrent" size="7" value="none">`) {
			t.Errorf("the form of a limit without bounds: %s", page)
		}
	})
}
