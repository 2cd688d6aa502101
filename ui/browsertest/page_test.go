package browsertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed8ec063be/durable"
)

// A failed run is retried with the keyboard and the forms of its page, up to its row.
func TestActInTheBrowser(t *testing.T) {
	t.Parallel()
	s := startShop(t, "127.0.0.1:0")
	ctx := browser(t, s, 1280, 800, false)
	until(t, ctx, `fetch("api/v1/run?id=order-declined").then(r => r.json()).then(r => r.status == "failed")`)
	do(t, ctx, chromedp.Navigate(s.url("/run?id=order-declined")), chromedp.WaitVisible("main"))
	open := `[...document.querySelectorAll("details.act")].find(d => d.querySelector("input[name=verb][value=retry]"))`
	if !eval[bool](t, ctx, open+` !== undefined`) {
		t.Fatal("the page has no form for a retry")
	}
	do(t, ctx, chromedp.Evaluate(open+`.querySelector("summary").click()`, nil),
		chromedp.Evaluate(open+`.querySelector("input[name=reason]").value = "the bank has changed its mind"`, nil),
		chromedp.Evaluate(open+`.querySelector("button:not(.quiet)[type=submit], .buttons button").click()`, nil))
	until(t, ctx, `document.querySelector(".notice")?.textContent.includes("Retried")`)
	until(t, ctx, `fetch("api/v1/generations?id=order-declined").then(r => r.json()).then(g => g.generations.length == 2 && g.generations[0].reason == "the bank has changed its mind")`)
}

// A bulk act reaches more runs than a portion has: the page sends the portions by itself, up to the end.
func TestBulkInTheBrowser(t *testing.T) {
	t.Parallel()
	e := working(t)
	address, stop := serve(t, e, "127.0.0.1:0")
	defer stop()
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := approval.StartMany(within, e, make([]durable.StartItem[string], 230), durable.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	ctx := browser(t, at(address, "/runs", "workflow=approval"), 1280, 800, false)
	do(t, ctx, chromedp.Evaluate(`document.querySelector("form[action$='/bulk'] select").value = "cancel"`, nil),
		chromedp.Evaluate(`document.querySelector("form[action$='/bulk'] button").click()`, nil))
	until(t, ctx, `document.querySelector("h1")?.textContent.startsWith("Preview: cancel")`)
	do(t, ctx, chromedp.Evaluate(`document.querySelector("form[action$='/bulk'] button").click()`, nil))
	until(t, ctx, `document.querySelector("h1")?.textContent.startsWith("Going on")`)
	until(t, ctx, `document.querySelector("h1")?.textContent.startsWith("Done")`)
	if text := eval[string](t, ctx, `document.querySelector(".notice").textContent`); !strings.HasPrefix(text, "230 runs cancelled") {
		t.Errorf("the page says %q", text)
	}
}

// No page scrolls sideways on a phone, in light and in dark.
func TestPhone(t *testing.T) {
	t.Parallel()
	s := startShop(t, "127.0.0.1:0")
	for _, dark := range []bool{false, true} {
		ctx := browser(t, s, 375, 720, dark)
		until(t, ctx, `fetch("api/v1/run?id=order-declined").then(r => r.json()).then(r => r.status == "failed")`)
		for name, path := range pages {
			do(t, ctx, chromedp.Navigate(s.url(path)), chromedp.WaitVisible("main"))
			if width := eval[int](t, ctx, `document.documentElement.scrollWidth`); width > 375 {
				t.Errorf("%s is %d pixels wide", name, width)
			}
			if got := eval[bool](t, ctx, `matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.body).backgroundColor == "rgb(21, 25, 23)"`); got != dark {
				t.Errorf("%s is dark: %t", name, got)
			}
		}
	}
}
