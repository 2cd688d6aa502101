package ui_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// The audit shows acts on runs and queues with their authors and reasons, in pages, and only those on visible runs.
func TestAuditShowsWhoAndWhy(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		if body := send(h, "/audit", nil).Body.String(); !strings.Contains(body, "No act on a run is recorded here.") {
			t.Errorf("without acts: %s", body)
		}
		start(t, e, order, "bad", "declined")
		if _, err := e.Retry(within(t), "bad", durable.Actor("ann"), durable.Reason("the bank is back")); err != nil {
			t.Fatal(err)
		}
		if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 1}, durable.Actor("bob"), durable.Reason("quota")); err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			id := fmt.Sprintf("waits-%d", i)
			if _, err := approval.Start(within(t), e, "in", durable.ID(id), durable.Delay(1<<40)); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Pause(within(t), id, durable.Actor("cid"), durable.Reason("audit")); err != nil {
				t.Fatal(err)
			}
		}
		h = ui.Handler(e, ui.Authorize(anyone)) // which has no queues in its cache
		until(t, func() bool {                  // events are shown when all earlier transactions on the server have ended
			return strings.Contains(send(h, "/audit", nil).Body.String(), ">waits-59<")
		})
		seen := make(map[string]bool)
		body := ""
		for path := "/audit?limit=20"; path != ""; {
			body = send(h, path, nil).Body.String()
			if path == "/audit?limit=20" && !strings.Contains(body, "quota") {
				t.Errorf("the first page lacks the queue: %s", body)
			}
			for i := range 60 {
				if id := fmt.Sprintf("waits-%d", i); strings.Contains(body, ">"+id+"<") {
					seen[id] = true
				}
			}
			_, next, more := strings.Cut(body, `<a rel="next" href="`)
			if path, _, _ = strings.Cut(next, `"`); !more {
				path = ""
			}
		}
		if len(seen) != 60 || !strings.Contains(body, "the bank is back") || !strings.Contains(body, ">ann<") {
			t.Errorf("%d pauses are shown, and the last page is %s", len(seen), body)
		}
		bounded := ui.Handler(e, ui.Authorize(anyone), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "order"} }))
		if body := send(bounded, "/audit", nil).Body.String(); strings.Contains(body, "waits-") || strings.Contains(body, "quota") || !strings.Contains(body, "the bank is back") {
			t.Errorf("a bounded audit is %s", body)
		}
	})
}
