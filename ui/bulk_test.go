package ui_test

import (
	"fmt"
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

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// fieldsOf returns the hidden fields of the form that a page of a bulk act has; nil: it has none.
func fieldsOf(page string) url.Values {
	var all url.Values
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		if all == nil {
			all = make(url.Values)
		}
		all.Add(m[1], html.UnescapeString(m[2]))
	}
	return all
}

func bulkPreview(t *testing.T, h http.Handler, q url.Values) string {
	t.Helper()
	got := send(h, "/bulk?"+q.Encode(), nil)
	if got.Code != http.StatusOK {
		t.Fatalf("the preview of %v gives %d: %s", q, got.Code, got.Body)
	}
	return got.Body.String()
}

func bulkPortion(t *testing.T, h http.Handler, f url.Values) string {
	t.Helper()
	got := send(h, "/bulk", f, "Sec-Fetch-Site", "same-origin")
	if got.Code != http.StatusOK {
		t.Fatalf("the portion %v gives %d: %s", f, got.Code, got.Body)
	}
	return got.Body.String()
}

// A bulk act reaches the runs of its preview in portions of 100, each from where the one before has ended, and no run that was
// started after the preview. Its author and reason are recorded with each run.
func TestBulkActsRunInPortions(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone), ui.SearchFor(time.Minute)) // the machine may be busy
		var starts []durable.StartItem[string]
		const runs = 130
		for i := range runs {
			starts = append(starts, durable.StartItem[string]{ID: fmt.Sprintf("w-%03d", i), Input: "in"})
		}
		if _, err := approval.StartMany(within(t), e, starts, durable.Delay(1<<40)); err != nil {
			t.Fatal(err)
		}
		start(t, e, order, "ended", "in")
		page := bulkPreview(t, h, url.Values{"verb": {"pause"}, "created_after": {"1h"}, "id_prefix": {"w-"}})
		if !strings.Contains(page, "would reach 130 runs") || strings.Contains(page, ">ended<") {
			t.Errorf("the preview is %s", page)
		}
		if run, err := e.Get(within(t), "w-000"); err != nil || run.Status == durable.StatusPaused {
			t.Fatalf("after the preview the run is %+v, %v", run, err)
		}
		if _, err := approval.Start(within(t), e, "in", durable.ID("w-late"), durable.Delay(1<<40)); err != nil {
			t.Fatal(err)
		}
		f := fieldsOf(page)
		f.Set("reason", "<audit>")
		page = bulkPortion(t, h, f)
		if !strings.Contains(page, "100 runs paused") || !strings.Contains(page, "data-portion") {
			t.Errorf("after the first portion: %s", page)
		}
		rest := fieldsOf(page)
		if left := bulkPreview(t, h, rest); !strings.Contains(left, "would reach 30 runs") {
			t.Errorf("what is left: %s", left)
		}
		if again := bulkPortion(t, h, f); !strings.Contains(again, "0 runs paused") {
			t.Errorf("the first portion once more: %s", again)
		}
		page = bulkPortion(t, h, rest)
		if !strings.Contains(page, "130 runs paused") || !strings.Contains(page, "There are no more") || fieldsOf(page) != nil {
			t.Errorf("after the last portion: %s", page)
		}
		for id, want := range map[string]durable.Status{"w-000": durable.StatusPaused, "w-129": durable.StatusPaused, "w-late": durable.StatusPending} {
			if run, err := e.Get(within(t), id); err != nil || run.Status != want || want == durable.StatusPaused && (run.PausedBy != "ann" || run.Reason != "<audit>") {
				t.Errorf("%s is %+v, %v", id, run, err)
			}
		}
	})
}

// Each verb considers the runs that it is for, and names those that it was refused for.
func TestBulkVerbs(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(func(_ *http.Request, a ui.Action) (string, error) {
			if a.Changes() && a.Tags["team.owner"] == "others" {
				return "", fmt.Errorf("not yours")
			}
			return "ann", nil
		}))
		start(t, e, approval, "waits", "in")
		start(t, e, approval, "foreign", "in", durable.Tag("team.owner", "others"))
		start(t, e, order, "bad", "declined")
		all := url.Values{"created_before": {"now"}}
		act := func(verb string, texts ...string) {
			t.Helper()
			all.Set("verb", verb)
			page := bulkPortion(t, h, fieldsOf(bulkPreview(t, h, all)))
			for _, text := range texts {
				if !strings.Contains(page, text) {
					t.Errorf("%s does not say %q: %s", verb, text, page)
				}
			}
		}
		act("pause", "1 run paused", "1 refused", "foreign", "not yours")
		act("resume", "1 run resumed")
		act("cancel", "1 run cancelled", "1 refused")
		act("retry", "1 run retried")
		if all, err := e.Generations(within(t), "bad"); err != nil || len(all) != 2 || all[1].Actor != "ann" {
			t.Errorf("the generations are %+v, %v", all, err)
		}
		for _, id := range []string{"waits", "bad"} {
			for info := new(durable.RunInfo); info.EndedAt.IsZero(); {
				var err error
				if info, err = e.Get(within(t), id); err != nil {
					t.Fatal(err)
				}
			}
		}
		act("delete", "2 runs deleted")
		if list, err := e.List(within(t), durable.Filter{}, durable.Page{}); err != nil || len(list.Runs) != 1 {
			t.Errorf("what is left is %+v, %v", list, err)
		}
	})
}

// A filter that chooses nothing is refused, and so are a verb that is not for many runs, another site and a dashboard that is
// read-only.
func TestBulkActsAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		start(t, e, approval, "waits", "in")
		some := url.Values{"verb": {"cancel"}, "workflow": {"approval"}}
		for _, c := range []struct {
			h    http.Handler
			q    url.Values
			code int
		}{
			{h, url.Values{"verb": {"cancel"}}, http.StatusBadRequest},
			{h, url.Values{"verb": {"cancel"}, "roots": {"yes"}, "workflow": {""}}, http.StatusBadRequest},
			{h, url.Values{"verb": {"signal"}, "workflow": {"approval"}}, http.StatusBadRequest},
			{h, url.Values{"verb": {"cancel"}, "created_before": {"soon"}}, http.StatusBadRequest},
			{ui.Handler(e), some, http.StatusForbidden},
			{ui.Handler(e, ui.Authorize(anyone), ui.ReadOnly()), some, http.StatusForbidden},
		} {
			if got := send(c.h, "/bulk?"+c.q.Encode(), nil); got.Code != c.code {
				t.Errorf("the preview of %v gives %d, want %d", c.q, got.Code, c.code)
			}
			if got := send(c.h, "/bulk", c.q, "Sec-Fetch-Site", "same-origin"); got.Code != c.code {
				t.Errorf("the portion of %v gives %d, want %d", c.q, got.Code, c.code)
			}
		}
		if got := send(h, "/bulk", some, "Sec-Fetch-Site", "cross-site"); got.Code != http.StatusForbidden {
			t.Errorf("another site's portion gives %d", got.Code)
		}
		bounded := ui.Handler(e, ui.Authorize(anyone), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "order"} }))
		if page := bulkPreview(t, bounded, some); strings.Contains(page, "waits") || !strings.Contains(page, "No run of") {
			t.Errorf("a hidden run is previewed: %s", page)
		}
		bulkPortion(t, bounded, some)
		if run, err := e.Get(within(t), "waits"); err != nil || run.Status != durable.StatusWaiting {
			t.Errorf("the run is %+v, %v", run, err)
		}
	})
}
