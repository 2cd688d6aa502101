package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// bulky has steps with results of 4 MB.
var bulky = durable.Define("bulky", func(c *durable.Ctx, steps int) (int, error) {
	for i := range steps {
		if _, err := c.Step(fmt.Sprint("step ", i), func(context.Context) (string, error) { return strings.Repeat("x", 4_000_000), nil }); err != nil {
			return 0, err
		}
	}
	return steps, nil
})

// The JSON of a history or a tree has a bound, so that one request cannot fill the memory of the process.
func TestJSONOfHistoriesAndTreesIsBounded(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		for id, in := range map[string][2]int{"wide": {0, 1001}, "narrow": {3, 5}} {
			if _, err := large.Call(within(t), e, in, durable.ID(id)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := bulky.Call(within(t), e, 5, durable.ID("bulky")); err != nil {
			t.Fatal(err)
		}
		for address, code := range map[string]int{
			"history?id=wide": http.StatusRequestEntityTooLarge, "history?id=bulky": http.StatusRequestEntityTooLarge, "history?id=narrow": http.StatusOK, "history?id=narrow&generation=7": http.StatusNotFound,
		} {
			if got := send(h, "/api/v1/"+address, nil); got.Code != code || code == http.StatusRequestEntityTooLarge && !strings.Contains(got.Body.String(), "history_page") {
				t.Errorf("%s gives %d: %.300s", address, got.Code, got.Body)
			}
		}
		for limit, more := range map[int]bool{1000: false, 4: false, 3: true, 2: true} {
			got := send(h, fmt.Sprintf("/api/v1/tree?id=narrow&limit=%d", limit), nil)
			body := got.Body.String()
			if n := strings.Count(body, `"name": "kid `); got.Code != http.StatusOK || n != min(limit, 3) || strings.Contains(body, `"more": true`) != more || !strings.Contains(body, `"id": "narrow"`) {
				t.Errorf("with a limit of %d the tree has %d children: %s", limit, n, body)
			}
		}
	})
}

// A form, and a body with JSON, that are too long are refused with status 413 and a text, and nothing is done.
func TestAFormThatIsTooLong(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		long := strings.Repeat("x", 17<<20)
		for _, path := range []string{"/act", "/bulk"} {
			got := send(h, path, url.Values{"verb": {"pause"}, "queue_name": {"mail"}, "reason": {long}}, "Sec-Fetch-Site", "same-origin")
			if got.Code != http.StatusRequestEntityTooLarge || !strings.Contains(got.Body.String(), "longer than 16 MiB, so nothing was done") {
				t.Errorf("%s gives %d: %.300s", path, got.Code, got.Body)
			}
		}
		if got := postJSON(t, h, http.StatusRequestEntityTooLarge, `{"verb": "pause", "queue_name": "mail", "reason": "`+long+`"}`); !strings.Contains(got, "longer than 16 MiB") {
			t.Errorf("the refusal of the body says %.300s", got)
		}
		if all, err := e.Queues(within(t)); err != nil || len(all) != 0 {
			t.Errorf("the queues are %+v, %v", all, err)
		}
	})
}
