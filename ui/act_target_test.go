package ui_test

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// post sends a form of pairs of names and values, and fails the test if the status is another.
func post(t *testing.T, h http.Handler, code int, pairs ...string) string {
	t.Helper()
	f := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	got := send(h, "/act", f, "Sec-Fetch-Site", "same-origin")
	if got.Code != code {
		t.Fatalf("%q gives %d, not %d: %s", pairs, got.Code, code, got.Body)
	}
	return got.Body.String()
}

// An identifier may begin or end with a space, so an act does not reach the run, queue or signal whose name has none.
func TestActsDoNotTrimIdentifiers(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		start(t, e, approval, "waits", "in")
		start(t, e, approval, "waits ", "in")
		post(t, h, http.StatusSeeOther, "verb", "signal", "run", "waits", "name", "approve ", "payload", " \"yes\" ")
		if run, err := e.Get(within(t), "waits"); err != nil || run.Unreceived["approve "] != 1 {
			t.Errorf("the signal is among %v, %v", run.Unreceived, err)
		}
		post(t, h, http.StatusSeeOther, "verb", "terminate", "run", "waits ")
		for id, ended := range map[string]bool{"waits": false, "waits ": true} {
			if run, err := e.Get(within(t), id); err != nil || run.EndedAt.IsZero() == ended {
				t.Errorf("%q is %+v, %v", id, run, err)
			}
		}
		post(t, h, http.StatusSeeOther, "verb", "set", "queue_name", " mail", "max_executing", " 3 ")
		if all, err := e.Queues(within(t)); err != nil || len(all) != 1 || all[0].Name != " mail" {
			t.Errorf("the queues are %+v, %v", all, err)
		}
	})
}

// A page that was loaded before its run was deleted does not act on the run that took over the ID.
func TestAStalePageDoesNotReachAnotherRun(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		start(t, e, approval, "order-1", "in")
		page := send(h, runPage("order-1"), nil).Body.String()
		named := regexp.MustCompile(`name="run" value="([^"]*)"><input type="hidden" name="verb" value="terminate"`).FindStringSubmatch(page)
		if named == nil {
			t.Fatalf("the page has no form to terminate: %s", page)
		}
		target := html.UnescapeString(named[1])
		if _, err := e.Terminate(within(t), "order-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Delete(within(t), "order-1"); err != nil {
			t.Fatal(err)
		}
		start(t, e, approval, "order-1", "in")
		post(t, h, http.StatusNotFound, "verb", "terminate", "run", target)
		if run, err := e.Get(within(t), "order-1"); err != nil || run.Status != durable.StatusWaiting {
			t.Errorf("the new run is %+v, %v", run, err)
		}
	})
}

// Authorize sees the tags of a run as they are, also if Redact hides them.
func TestAuthorizeSeesTagsUnredacted(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "mine", "in", durable.Tag("tenant.id", "acme"))
		start(t, e, approval, "theirs", "in", durable.Tag("tenant.id", "other"))
		h := ui.Handler(e, ui.Redact(func(ui.Field) string { return "***" }), ui.Authorize(func(_ *http.Request, a ui.Action) (string, error) {
			if a.Changes() && a.Tags["tenant.id"] != "acme" {
				return "", errors.New("the tenant is " + a.Tags["tenant.id"])
			}
			return "ann", nil
		}))
		post(t, h, http.StatusSeeOther, "verb", "pause", "run", "mine")
		post(t, h, http.StatusForbidden, "verb", "pause", "run", "theirs")
		if page := send(h, runPage("mine"), nil).Body.String(); strings.Contains(page, "acme") {
			t.Errorf("the page shows the tag: %s", page)
		}
	})
}

var hrefs = regexp.MustCompile(`href="([^"]*)"`)

// The links of a group of failures of the last seven days lead to these only.
func TestLinksOfFailuresHaveThePeriod(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "bad", "declined")
		h, links := ui.Handler(e, ui.Authorize(anyone)), 0
		for _, m := range hrefs.FindAllStringSubmatch(send(h, "/", nil).Body.String(), -1) {
			link, err := url.Parse(html.UnescapeString(m[1]))
			if err != nil || !link.Query().Has("failed_type") {
				continue
			}
			links++
			after, err := time.Parse(time.RFC3339, link.Query().Get("created_after"))
			if age := time.Since(after); err != nil || age < 7*24*time.Hour || age > 7*24*time.Hour+2*time.Minute {
				t.Errorf("%s begins %v ago, %v", link, age, err)
			}
			if body := send(h, link.String(), nil).Body.String(); !strings.Contains(body, ">bad</a>") {
				t.Errorf("%s does not show the run: %s", link, body)
			}
		}
		if links != 2 {
			t.Errorf("the overview has %d links to failures", links)
		}
	})
}

// An act with two targets would be authorized for one of them and performed on the other, so it is refused, and so is one without.
func TestAnActHasOneTarget(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(func(_ *http.Request, a ui.Action) (string, error) {
			if a.Changes() && a.Workflow != "approval" {
				return "", errors.New("only approval")
			}
			return "ann", nil
		}))
		start(t, e, approval, "mail", "in")
		if err := e.SetQueue(within(t), "mail", durable.QueueSettings{MaxExecuting: 1}); err != nil {
			t.Fatal(err)
		}
		post(t, h, http.StatusForbidden, "verb", "pause", "queue_name", "mail")
		for _, field := range []string{"queue_name", "limit_name", "schedule", "worker"} {
			post(t, h, http.StatusBadRequest, "verb", "pause", field, "mail", "run", "mail")
			post(t, h, http.StatusBadRequest, "verb", "pause", field, "mail", "run", "")
		}
		post(t, h, http.StatusBadRequest, "verb", "reset", "queue_name", "mail", "limit_name", "mail")
		post(t, h, http.StatusBadRequest, "verb", "pause")
		if got := send(h, "/act", url.Values{"verb": {"pause"}, "run": {"mail", "mail"}}, "Sec-Fetch-Site", "same-origin"); got.Code != http.StatusBadRequest {
			t.Errorf("two runs give %d: %s", got.Code, got.Body)
		}
		if all, err := e.Queues(within(t)); err != nil || len(all) != 1 || !all[0].PausedAt.IsZero() {
			t.Errorf("the queue is %+v, %v", all, err)
		}
		if run, err := e.Get(within(t), "mail"); err != nil || run.Status != durable.StatusWaiting {
			t.Errorf("the run is %+v, %v", run, err)
		}
		post(t, h, http.StatusSeeOther, "verb", "pause", "run", "mail")
	})
}
