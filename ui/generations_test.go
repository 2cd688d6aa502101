package ui_test

import (
	"encoding/json/v2"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// renewed continues as new until the number.
var renewed = durable.Define("renewed", func(c *durable.Ctx, in [2]int) (int, error) {
	if in[0] < in[1] {
		return 0, c.ContinueAsNew([2]int{in[0] + 1, in[1]})
	}
	return in[0], nil
})

// A run that continued as new many times has its generations in pages, the newest first.
func TestGenerationsArePaged(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		const generations = 45
		if _, err := renewed.Call(within(t), e, [2]int{1, generations}, durable.ID("renewed")); err != nil {
			t.Fatal(err)
		}
		h := ui.Handler(e)
		number, sizes := generations, []int(nil)
		for next := ""; ; {
			got := send(h, "/api/v1/generations?id=renewed&limit=20&cursor="+next, nil)
			var page struct {
				Generations []struct{ Number int }
				Next        string
			}
			if err := json.Unmarshal(got.Body.Bytes(), &page, json.MatchCaseInsensitiveNames(true)); err != nil || got.Code != http.StatusOK {
				t.Fatal(got.Code, err, got.Body)
			}
			for _, g := range page.Generations {
				if g.Number != number {
					t.Fatalf("a page has the generation %d, want %d", g.Number, number)
				}
				number--
			}
			sizes = append(sizes, len(page.Generations))
			if next = page.Next; next == "" {
				break
			}
		}
		if fmt.Sprint(sizes) != "[20 20 5]" {
			t.Errorf("the pages have %v generations", sizes)
		}
		for _, query := range []string{"&cursor=x", "&limit=1001"} {
			if got := send(h, "/api/v1/generations?id=renewed"+query, nil); got.Code != http.StatusBadRequest {
				t.Errorf("%s gives %d: %s", query, got.Code, got.Body)
			}
		}
		shown := 0
		for address := runPage("renewed"); address != ""; {
			body := send(h, address, nil).Body.String()
			_, body, _ = strings.Cut(body, "<h2>Generations</h2>")
			rows := strings.Count(body, `<th scope="row" class="num">`)
			if shown += rows; rows > 20 || rows == 0 {
				t.Fatalf("%s shows %d generations: %s", address, rows, body)
			}
			_, rest, more := strings.Cut(body, `rel="next" href="`)
			address, _, _ = strings.Cut(rest, `#`)
			if address = strings.ReplaceAll(address, "&amp;", "&"); !more {
				address = ""
			}
		}
		if shown != generations {
			t.Errorf("the pages of the run show %d generations", shown)
		}
	})
}
