package browsertest

import (
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// mostStops bounds the stops of the tab key that are tried on a page.
const mostStops = 80

// On each page the tab key leads to all that a person can use, in the order of the page, and the focus is seen.
func TestKeyboardOnEachPage(t *testing.T) {
	t.Parallel()
	s := startShop(t, "127.0.0.1:0")
	ctx := browser(t, s, 1280, 800, false)
	until(t, ctx, `fetch("api/v1/run?id=order-declined").then(r => r.json()).then(r => r.status == "failed")`)
	for name, path := range pages {
		do(t, ctx, chromedp.Navigate(s.url(path)), chromedp.WaitVisible("main"), chromedp.Evaluate(`
			stream?.close(); // so that the page does not load itself again meanwhile
			window.stops = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
				.filter(e => e.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true }) && !e.disabled);
			window.at = -1; undefined`, nil))
		n := eval[int](t, ctx, `window.stops.length`)
		if n < 10 {
			t.Errorf("%s: only %d elements can have the focus", name, n)
		}
		for i := range min(n, mostStops) {
			do(t, ctx, chromedp.KeyEvent(kb.Tab))
			if got := eval[int](t, ctx, `window.stops.indexOf(document.activeElement)`); got != i {
				t.Errorf("%s: stop %d of the tab key is %s, not %s", name, i, eval[string](t, ctx, `document.activeElement.outerHTML.slice(0, 200)`), eval[string](t, ctx, `window.stops[Math.min(`+strconv.Itoa(i)+`, window.stops.length - 1)].outerHTML.slice(0, 200)`))
				break
			}
			if !eval[bool](t, ctx, `(e => e.matches(":focus-visible") && (getComputedStyle(e).outlineStyle != "none" || getComputedStyle(e.nextElementSibling ?? e).outlineStyle != "none"))(document.activeElement)`) {
				t.Errorf("%s: the focus on stop %d is not seen: %s", name, i, eval[string](t, ctx, `document.activeElement.outerHTML.slice(0, 200)`))
			}
		}
	}
}

// Each page fits a screen of 375 pixels: only tables and drawings scroll sideways, and nothing that a finger has to hit is outside.
func TestPhoneOnEachPage(t *testing.T) {
	t.Parallel()
	s := startShop(t, "127.0.0.1:0")
	ctx := browser(t, s, 375, 720, false)
	until(t, ctx, `fetch("api/v1/run?id=order-declined").then(r => r.json()).then(r => r.status == "failed")`)
	for name, path := range pages {
		do(t, ctx, chromedp.Navigate(s.url(path)), chromedp.WaitVisible("main"))
		if w := eval[int](t, ctx, `document.scrollingElement.scrollWidth`); w > 375 {
			t.Errorf("%s is %d pixels wide", name, w)
		}
		if outside := eval[string](t, ctx, `[...document.querySelectorAll("button, input:not([type=hidden]), select, textarea, summary, header a")].filter(e => e.checkVisibility() && !e.closest(".scroll, .hush, .skip")).filter(e => (r => r.right > 376 || r.left < 0)(e.getBoundingClientRect())).map(e => e.outerHTML.slice(0, 150)).join("\n")`); outside != "" {
			t.Errorf("%s: outside of the screen is %s", name, outside)
		}
	}
}
