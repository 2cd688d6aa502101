package ui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// startMany starts more runs, which are due in years, than the first step of a search examines. The oldest one is of another workflow than the
// others, so no index leads to it.
func startMany(t *testing.T, e *durable.Engine) {
	t.Helper()
	start(t, e, approval, "oldest", "in")
	const runs = 2400
	var starts []durable.StartItem[string]
	for i := range runs {
		starts = append(starts, durable.StartItem[string]{ID: fmt.Sprint("later-", i), Input: "in"})
	}
	for part := range 4 {
		if _, err := order.StartMany(within(t), e, starts[part*runs/4:(part+1)*runs/4], durable.Delay(1<<40)); err != nil {
			t.Fatal(err)
		}
	}
}

// A bulk act to whose runs no index leads searches for a bounded time in each portion, says how far it has come, and goes on from there.
func TestBulkActsSearchInPortions(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		startMany(t, e)
		h := ui.Handler(e, ui.Authorize(anyone), ui.SearchFor(1))
		page := bulkPreview(t, h, url.Values{"verb": {"pause"}, "workflow": {"approval"}})
		if !strings.Contains(page, "0+ runs") || !strings.Contains(page, "Searched to") {
			t.Errorf("the preview is %s", page)
		}
		portions := 0
		for f := fieldsOf(page); f != nil; f = fieldsOf(page) {
			if page = bulkPortion(t, h, f); portions > 100 {
				t.Fatal("the act does not end")
			}
			if portions++; portions == 1 && (!strings.Contains(page, "0 runs paused") || !strings.Contains(page, "Searched to")) {
				t.Errorf("the first portion is %s", page)
			}
		}
		if !strings.Contains(page, "1 run paused") || !strings.Contains(page, "There are no more") || portions < 2 {
			t.Errorf("after %d portions: %s", portions, page)
		}
		if run, err := e.Get(within(t), "oldest"); err != nil || run.Status != durable.StatusPaused {
			t.Errorf("the run is %+v, %v", run, err)
		}
	})
}

// The overview of a request that may not see all runs does not walk all runs: numbers that were searched for too long have a plus.
func TestBoundedCountsSearchForABoundedTime(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		startMany(t, e)
		bound := ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "approval"} })
		for plus, h := range map[bool]http.Handler{true: ui.Handler(e, bound, ui.SearchFor(1)), false: ui.Handler(e, bound, ui.SearchFor(time.Minute))} {
			got := send(h, "/", nil)
			if body := got.Body.String(); got.Code != http.StatusOK || strings.Contains(body, `<span class="number">0&#43;</span> <span class="status waiting">`) != plus {
				t.Errorf("with a plus %v: %d %s", plus, got.Code, body)
			}
		}
	})
}

// The list has a filter for held runs, which is kept in the command and in the form of a bulk act.
func TestListOfHeldRuns(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in")
		h := ui.Handler(e, ui.Authorize(anyone))
		for path, shown := range map[string]bool{"/runs?id_prefix=waits": true, "/runs?id_prefix=waits&held=yes": false} {
			body := send(h, path, nil).Body.String()
			if strings.Contains(body, ">waits</a>") != shown || strings.Contains(body, "--held") == shown || strings.Contains(body, `name="held" value="yes" checked`) == shown {
				t.Errorf("%s: %s", path, body)
			}
		}
		if page := bulkPreview(t, h, url.Values{"verb": {"cancel"}, "held": {"yes"}}); !strings.Contains(page, "No run of") {
			t.Errorf("the preview is %s", page)
		}
	})
}
