package browsertest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The tests need axe.min.js of axe-core, which make deps-ui fetches. Its version is in the Makefile, and its hash here.
const axeSHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(".axe", "axe.min.js"))
	if err != nil {
		t.Fatalf("%v: fetch it with make deps-ui", err)
	}
	if sum := sha256.Sum256(script); hex.EncodeToString(sum[:]) != axeSHA256 {
		t.Fatalf("axe.min.js has the hash %x, not the one that is pinned: delete it, and run make deps-ui", sum)
	}
	return string(script)
}

// axe-core finds no violation on any page, in light and in dark, with every part of it opened.
func TestAccessible(t *testing.T) {
	t.Parallel()
	script := axe(t)
	s := startShop(t, "127.0.0.1:0")
	for _, dark := range []bool{false, true} {
		t.Run(fmt.Sprintf("dark=%t", dark), func(t *testing.T) {
			t.Parallel()
			rules, least := "{}", 10
			if dark { // nothing but the colours differs
				rules, least = `{ runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } }`, 1
			}
			ctx := browser(t, s, 1280, 800, dark)
			until(t, ctx, `fetch("api/v1/run?id=order-declined").then(r => r.json()).then(r => r.status == "failed")`)
			for name, path := range pages {
				do(t, ctx, chromedp.Navigate(s.url(path)), chromedp.WaitVisible("main"),
					chromedp.Evaluate(`for (const part of document.querySelectorAll("details")) part.open = true`, nil),
					chromedp.Evaluate(script, nil),
					chromedp.Evaluate(`window.found = null; axe.run(`+rules+`).then(r => { window.checks = r.passes.length; window.found = r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html).join(" ")).join("\n"); }); undefined`, nil))
				until(t, ctx, `window.found !== null`)
				if n := eval[int](t, ctx, `window.checks`); n < least {
					t.Errorf("%s: only %d rules were checked", name, n)
				}
				if found := eval[string](t, ctx, `window.found`); found != "" {
					t.Errorf("%s:\n%s", name, found)
				}
			}
		})
	}
}

// A run is paused with the keyboard alone: from the search by a slash, through the tab order, to the reply.
func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	e := working(t)
	address, stop := serve(t, e, "127.0.0.1:0")
	defer stop()
	ctx := browser(t, at(address, "/", ""), 1280, 800, false)
	startWaiting(t, e, "keys")
	active := func() string {
		return eval[string](t, ctx, `(document.activeElement.closest("summary, button, a, input")?.textContent.trim() || document.activeElement.name || document.activeElement.tagName)`)
	}
	do(t, ctx, chromedp.KeyEvent(kb.Tab))
	if text := active(); text != "Skip to the content" {
		t.Errorf("the first stop is %q", text)
	}
	do(t, ctx, chromedp.KeyEvent("/"))
	if !eval[bool](t, ctx, `document.activeElement.id == "jump"`) {
		t.Fatalf("a slash leads to %q", active())
	}
	do(t, ctx, chromedp.Evaluate(`document.activeElement.value = ""`, nil)) // chromedp types the slash although the page prevents it
	do(t, ctx, chromedp.KeyEvent("keys"), chromedp.KeyEvent(kb.Enter))
	until(t, ctx, `document.querySelector("h1")?.textContent.includes("keys")`)
	tabTo := func(what string, wanted func(string) bool) {
		t.Helper()
		var stops []string
		for range 60 {
			do(t, ctx, chromedp.KeyEvent(kb.Tab))
			text := active()
			if wanted(text) {
				if !eval[bool](t, ctx, `document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle != "none"`) {
					t.Errorf("the focus on %s is not seen", what)
				}
				return
			}
			stops = append(stops, text)
		}
		t.Fatalf("no tab leads to %s: %q", what, stops)
	}
	tabTo("the act", func(text string) bool { return strings.HasPrefix(text, "Pause") })
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	tabTo("its reason", func(text string) bool { return text == "reason" })
	do(t, ctx, chromedp.KeyEvent(kb.Escape))
	if text := active(); !strings.HasPrefix(text, "Pause") {
		t.Errorf("Escape leads to %q", text)
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	tabTo("its reason", func(text string) bool { return text == "reason" })
	do(t, ctx, chromedp.KeyEvent("typed"), chromedp.KeyEvent(kb.Enter))
	until(t, ctx, `document.querySelector("h1 .status")?.textContent == "paused" && document.body.textContent.includes("typed (by ann)")`)
}
