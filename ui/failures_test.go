package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// The page of failures shows the groups of the last seven days, or of the filter of its address, whose conditions its links keep.
func TestFailuresPage(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "one", "declined")
		start(t, e, order, "two", "declined", durable.InQueue("mail"))
		h := ui.Handler(e, ui.Authorize(anyone))
		all := send(h, "/failures", nil)
		if body := all.Body.String(); all.Code != http.StatusOK || !strings.Contains(body, `<td class="num">2</td>`) || !strings.Contains(body, "declined") || !strings.Contains(body, "of the last seven days") {
			t.Errorf("%d %s", all.Code, body)
		}
		if body := send(h, "/", nil).Body.String(); !strings.Contains(body, `href="/failures"`) || !strings.Contains(body, `<td class="num">2</td>`) {
			t.Errorf("the overview does not lead to the failures: %s", body)
		}
		query := url.Values{"queue": {"mail"}, "created_after": {"2020-01-01"}}.Encode()
		some := send(h, "/failures?"+query, nil)
		body := some.Body.String()
		if some.Code != http.StatusOK || !strings.Contains(body, `<td class="num">1</td>`) || strings.Contains(body, "seven days") {
			t.Errorf("%d %s", some.Code, body)
		}
		for _, link := range []string{`href="/runs?`, `href="/bulk?`} {
			_, address, _ := strings.Cut(body, link)
			address, _, _ = strings.Cut(address, `"`)
			q, err := url.ParseQuery(strings.ReplaceAll(address, "&amp;", "&"))
			if err != nil || q.Get("queue") != "mail" || q.Get("created_after") != "2020-01-01" || q.Get("workflow") != "order" || q.Get("failed_step") != "charge" || q.Get("failed_type") == "" {
				t.Errorf("%s%s loses a condition (%v)", link, address, err)
			}
		}
		if got := send(h, "/failures?tag=x=", nil); got.Code != http.StatusBadRequest {
			t.Errorf("an incomplete condition: %d", got.Code)
		}
	})
}
