package ui_test

import (
	"encoding/json/v2"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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

// A page of the audit has no more acts than its limit, loses none to the next page, and costs a bounded number of statements.
func TestAuditPagesAreBounded(t *testing.T) {
	t.Parallel()
	working, looking, count := counted(t)
	var starts []durable.StartItem[string]
	for i := range 200 {
		starts = append(starts, durable.StartItem[string]{ID: fmt.Sprintf("w-%03d", i), Input: "in"})
	}
	if _, err := approval.StartMany(within(t), working, starts, durable.Delay(1<<40)); err != nil {
		t.Fatal(err)
	}
	const acts = 7
	for i := range acts {
		if err := working.SetPriority(within(t), fmt.Sprintf("w-%03d", i), 1, durable.Actor("ann")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := working.TerminateAll(within(t), durable.Filter{Workflow: "approval"}); err != nil { // 200 events without an author
		t.Fatal(err)
	}
	type page struct {
		Runs []struct{ Name, Verb string }
		Next string
	}
	read := func(h http.Handler, query string) (p page) {
		t.Helper()
		before := count.sent.Load()
		got := send(h, "/api/v1/audit?"+query, nil)
		if n := count.sent.Load() - before; n > mostOfAPage {
			t.Errorf("%s costs %d statements", query, n)
		}
		if err := json.Unmarshal(got.Body.Bytes(), &p, json.MatchCaseInsensitiveNames(true)); err != nil || got.Code != http.StatusOK {
			t.Fatalf("%s gives %d: %v: %s", query, got.Code, err, got.Body)
		}
		return p
	}
	until(t, func() bool { // events are shown when all earlier transactions on the server have ended
		all, err := looking.LatestEvents(within(t), durable.Page{Limit: 1000})
		return err == nil && len(all) >= acts+len(starts)
	})
	some := ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{CreatedAfter: time.Unix(1, 0)} })
	for _, h := range []http.Handler{ui.Handler(looking, ui.Authorize(anyone)), ui.Handler(looking, ui.Authorize(anyone), some)} {
		for _, limit := range []int{1, 3, 1000} {
			var names []string
			for cursor, pages := "", 0; ; pages++ {
				p := read(h, fmt.Sprintf("limit=%d&cursor=%s", limit, cursor))
				if len(p.Runs) > limit {
					t.Errorf("%d acts with a limit of %d", len(p.Runs), limit)
				}
				for _, act := range p.Runs {
					names = append(names, act.Name)
				}
				if cursor = p.Next; cursor == "" || pages > acts {
					break
				}
			}
			if fmt.Sprint(names) != "[w-006 w-005 w-004 w-003 w-002 w-001 w-000]" {
				t.Errorf("with a limit of %d the acts are on %v", limit, names)
			}
		}
	}
}
