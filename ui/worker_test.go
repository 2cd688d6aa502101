package ui_test

import (
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// The page of workers makes a worker quiet and resumes it, with the actor and the reason; a request that may not see all runs cannot.
func TestAWorkerIsMadeQuiet(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		var workers []durable.WorkerInfo
		for ctx := within(t); len(workers) == 0; runtime.Gosched() {
			var err error
			if workers, err = e.Workers(ctx); err != nil {
				t.Fatal(err)
			}
		}
		id := workers[0].ID
		act := func(h http.Handler, verb string) int {
			return send(h, "/act", url.Values{"verb": {verb}, "worker": {id}, "reason": {"<its disk>"}}, "Sec-Fetch-Site", "same-origin").Code
		}
		for _, verb := range []string{"quiet", "resume"} {
			if code := act(h, verb); code != http.StatusSeeOther {
				t.Errorf("%s: %d", verb, code)
			}
			workers, err := e.Workers(within(t))
			if err != nil || workers[0].Quiet != (verb == "quiet") || workers[0].LastChange.By != "ann" || workers[0].LastChange.Reason != "<its disk>" {
				t.Errorf("after %s the worker is %+v, %v", verb, workers, err)
			}
		}
		if body := send(ui.Handler(e, ui.Authorize(anyone)), "/workers", nil).Body.String(); !strings.Contains(body, "&lt;its disk&gt;") || !strings.Contains(body, "Make quiet") {
			t.Errorf("the page of workers is\n%s", body)
		}
		bounded := ui.Handler(e, ui.Authorize(anyone), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "order"} }))
		if code := act(bounded, "quiet"); code != http.StatusForbidden {
			t.Errorf("a worker of all is changed by who may not see all runs: %d", code)
		}
		if code := act(ui.Handler(e), "quiet"); code != http.StatusForbidden {
			t.Errorf("a dashboard without Authorize changes a worker: %d", code)
		}
	})
}
