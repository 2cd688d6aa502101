package ui_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// wordy has a call with a short result, one with a long result, and one that fails. Their names have a scope.
var wordy = durable.Define("wordy", func(c *durable.Ctx, _ string) (string, error) {
	_, err := c.Go("branch", func(c *durable.Ctx) (int, error) {
		if _, err := c.Step("short", func(context.Context) (string, error) { return "brief", nil }); err != nil {
			return 0, err
		}
		_, err := c.Step("long", func(context.Context) (string, error) { return strings.Repeat("lengthy ", 100), nil })
		_ = c.Do("fails", func(context.Context) error { return errors.New("refused") }, durable.Retry(durable.NoRetry))
		return 0, err
	}).Wait()
	return "", err
})

// A page of a run has short results only. A long one is a page of its own, which hides and redacts as all pages do.
func TestLongResultIsAPageOfItsOwn(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		if _, err := wordy.Call(within(t), e, "", durable.ID("wordy")); err != nil {
			t.Fatal(err)
		}
		h := ui.Handler(e, ui.Authorize(anyone))
		body := send(h, runPage("wordy"), nil).Body.String()
		if !strings.Contains(body, "brief") || strings.Contains(body, "lengthy") || !strings.Contains(body, "802 bytes") || !strings.Contains(body, "refused") {
			t.Errorf("the page of the run is %s", body)
		}
		_, link, _ := strings.Cut(body, `data-load="#result" href="`)
		link, _, _ = strings.Cut(link, `"`)
		link = strings.ReplaceAll(link, "&amp;", "&")
		if body := send(h, link, nil).Body.String(); strings.Count(body, "lengthy") != 100 {
			t.Errorf("the page of the call at %s is %s", link, body)
		}
		if body := send(h, "/api/v1/history_page?id=wordy&from=1&limit=1", nil).Body.String(); strings.Contains(body, "lengthy") || !strings.Contains(body, `"output_size": 802`) {
			t.Errorf("the JSON of the page is %s", body)
		}
		for _, hiding := range []http.Handler{ui.Handler(e), ui.Handler(e, ui.Authorize(anyone), ui.Redact(func(f ui.Field) string {
			if f.Kind == ui.FieldStepResult {
				return "black"
			}
			return f.Value
		}))} {
			for _, address := range []string{runPage("wordy"), link, "/api/v1/history_page?id=wordy&call=branch/long"} {
				if body := send(hiding, address, nil).Body.String(); strings.Contains(body, "lengthy") || strings.Contains(body, "brief") || !strings.Contains(body, "black") && !strings.Contains(body, "(hidden)") {
					t.Errorf("the page %s of a hidden result is %s", address, body)
				}
			}
		}
		for address, want := range map[string]int{
			"/call?id=wordy": http.StatusBadRequest, "/call?id=wordy&call=none": http.StatusNotFound, "/call?id=none&call=a": http.StatusNotFound,
			runPage("wordy") + "&from=x": http.StatusBadRequest, runPage("wordy") + "&from=5000": http.StatusOK, runPage("wordy") + "&generation=0": http.StatusBadRequest,
		} {
			if got := send(h, address, nil); got.Code != want {
				t.Errorf("%s gives %d, not %d", address, got.Code, want)
			}
		}
	})
}

// The density of a long history leads to the calls of the part that is clicked.
func TestDensityLeadsToCalls(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		if _, err := large.Call(within(t), e, [2]int{0, 1500}, durable.ID("long")); err != nil {
			t.Fatal(err)
		}
		h := ui.Handler(e)
		_, density, _ := strings.Cut(send(h, runPage("long")+"&from=100", nil).Body.String(), `<svg class="density"`)
		density, _, _ = strings.Cut(density, "</svg>")
		links := regexp.MustCompile(`<a href="([^"]*)" aria-label="Calls ([\d,]*) to [^"]*"( aria-current="page")?>`).FindAllStringSubmatch(density, -1)
		if len(links) < 3 || len(links) > 40 || strings.Count(density, "aria-current") != 1 {
			t.Fatalf("the density has the links %v: %s", links, density)
		}
		page, err := e.HistoryPage(within(t), "long", durable.HistoryPart{})
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			first, err := strconv.Atoi(strings.ReplaceAll(link[2], ",", ""))
			body := send(h, html.UnescapeString(link[1]), nil).Body.String()
			if err != nil || !strings.Contains(body, "<code>"+page.Outline[first-1].Name+"</code>") {
				t.Errorf("%s leads to a page without call %s", link[1], link[2])
			}
		}
	})
}

// The pages of a long history have all of its calls.
func TestPagesOfALongHistory(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		const items = 230
		if _, err := large.Call(within(t), e, [2]int{0, items}, durable.ID("long")); err != nil {
			t.Fatal(err)
		}
		h := ui.Handler(e)
		seen := make(map[string]bool)
		for from := 0; from <= items; from += 100 {
			body := send(h, fmt.Sprintf("%s&from=%d", runPage("long"), from), nil).Body.String()
			if !strings.Contains(body, `<svg class="density"`) {
				t.Errorf("the page from %d has no overview of the calls", from)
			}
			for _, row := range strings.Split(body, `<tr><th scope="row"><code>`)[1:] {
				name, _, _ := strings.Cut(row, "<")
				seen[name] = true
			}
			if next := fmt.Sprint("from=", from+100); strings.Contains(body, "amp;"+next) != (from+100 <= items) {
				t.Errorf("the page from %d leads to %s, or not", from, next)
			}
		}
		if len(seen) != items+1 {
			t.Errorf("the pages have %d calls", len(seen))
		}
	})
}

// A list has filters by version, worker and end; a bulk act has them too.
func TestListsByVersionWorkerAndEnd(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "ended", "in")
		start(t, e, approval, "waits", "in")
		h := ui.Handler(e, ui.Authorize(anyone))
		for query, want := range map[string][2]bool{ // of the run that has ended, and of the one that waits
			"run_version=v1": {true, true}, "run_version=v2": {}, "worker=00000000-0000-7000-8000-000000000001": {},
			"ended_after=1h": {true, false}, "ended_before=1h": {}, "ended_after=1h&workflow=approval": {},
		} {
			body := send(h, "/runs?"+query, nil).Body.String()
			for i, id := range []string{"ended", "waits"} {
				if strings.Contains(body, ">"+id+"</a>") != want[i] {
					t.Errorf("the list %s has run %s, or not: %s", query, id, body)
				}
			}
		}
		if got := send(h, "/runs?worker=none", nil); got.Code != http.StatusBadRequest {
			t.Errorf("a worker that is no UUID gives %d", got.Code)
		}
	})
}
