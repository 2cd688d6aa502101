package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// An act with a field that its verb does not take, or with a value that the field does not have, is refused and changes nothing: it would
// reach more runs than its author meant.
func TestActsRefuseFieldsThatTheyWouldIgnore(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		start(t, e, approval, "waits", "in")
		start(t, e, order, "bad", "declined")
		if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 3}); err != nil {
			t.Fatal(err)
		}
		for fields, field := range map[string]string{
			`"run": "waits", "verb": "cancel", "reach": "only self"`:                             "reach",
			`"run": "waits", "verb": "cancel", "reach": true`:                                    "reach",
			`"run": "waits", "verb": "terminate", "reach": "only itself"`:                        "reach",
			`"run": "waits", "verb": "pause", "reach": "only itself"`:                            "reach",
			`"run": "waits", "verb": "cancel", "freeze_timers": true`:                            "freeze_timers",
			`"run": "waits", "verb": "terminate", "value": 5`:                                    "value",
			`"run": "bad", "verb": "retry", "step": "charge"`:                                    "step",
			`"run": "bad", "verb": "retry", "from": "charge", "from_end": true`:                  "from_end",
			`"run": "bad", "verb": "rerun", "step": "charge", "from": "charge"`:                  "from",
			`"run": "bad", "verb": "delete", "timeout": "1h"`:                                    "timeout",
			`"queue_name": "mail", "verb": "set", "max_executing": 4, "concurrent": 1`:           "concurrent",
			`"queue_name": "mail", "verb": "pause", "closed": false`:                             "closed",
			`"limit_name": "smtp", "verb": "set", "concurrent": 4, "max_executing": 1`:           "max_executing",
			`"schedule": "nightly", "verb": "trigger", "before": "now"`:                          "before",
			`"worker": "7a1ad4ac-7c4e-4b0f-8d5c-0d3f6f6c7a10", "verb": "quiet", "timeout": "1h"`: "timeout",
		} {
			if body := postJSON(t, h, http.StatusBadRequest, "{"+fields+"}"); !strings.Contains(body, field) {
				t.Errorf("the refusal of %s does not name %s: %s", fields, field, body)
			}
		}
		if got := send(h, "/act", url.Values{"verb": {"cancel"}, "run": {"waits"}, "reach": {"itself"}}, "Sec-Fetch-Site", "same-origin"); got.Code != http.StatusBadRequest {
			t.Errorf("a form with an unknown reach gives %d", got.Code)
		}
		for id, want := range map[string]durable.Status{"waits": durable.StatusWaiting, "bad": durable.StatusFailed} {
			if run, err := e.Get(within(t), id); err != nil || run.Status != want || run.Requested != "" || run.Cancellation != nil {
				t.Errorf("run %s is %+v, %v", id, run, err)
			}
		}
		all, err := e.Queues(within(t))
		if err != nil || len(all) != 1 || all[0].Settings.MaxExecuting != 3 || !all[0].PausedAt.IsZero() {
			t.Errorf("the queues are %+v, %v", all, err)
		}
		postJSON(t, h, http.StatusOK, `{"run": "waits", "verb": "cancel", "reach": "only itself", "payload": null, "from": "", "freeze_timers": false}`)
	})
}
