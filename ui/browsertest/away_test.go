package browsertest

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/sqlite"
)

// awayStore is a store whose runs cannot be counted while it is away.
type awayStore struct {
	durable.Store
	away atomic.Bool
}

// StatusCounts fails as everything does when nothing listens at the address of the server.
func (s *awayStore) StatusCounts(ctx context.Context, now time.Time, most int) ([]store.StatusCount, error) {
	if s.away.Load() {
		return nil, errors.New("dial tcp 10.0.0.7:5432: connect: connection refused")
	}
	return s.Store.StatusCounts(ctx, now, most)
}

// While the database is away a page says so, and what to expect; a page that follows changes keeps what it shows, and goes on afterwards.
func TestDatabaseIsAwayInTheBrowser(t *testing.T) {
	t.Parallel()
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "ui.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	away := &awayStore{Store: file}
	e, err := durable.New(away, durable.Config{})
	if err != nil {
		t.Fatal(err)
	}
	address, stop := serve(t, e, "127.0.0.1:0")
	defer stop()
	ctx := browser(t, at(address, "/", ""), 1280, 800, false)
	until(t, ctx, `document.querySelector("h1").textContent == "Overview"`)
	do(t, ctx, chromedp.Evaluate(`window.sameDocument = true`, nil))
	away.away.Store(true)
	until(t, ctx, `fetch("/").then(r => r.status == 503 && r.headers.get("Retry-After") == "5")`)
	if !eval[bool](t, ctx, `window.sameDocument && document.querySelector("h1").textContent == "Overview"`) {
		t.Error("a page that follows changes does not keep what it shows")
	}
	do(t, ctx, chromedp.Navigate("http://"+address+"/"), chromedp.WaitVisible("main"))
	if !eval[bool](t, ctx, `document.querySelector("h1").textContent == "The database is away" && document.querySelector("[role=alert]").textContent.includes("connection refused") && document.body.textContent.includes("nothing that was acknowledged is lost")`) {
		t.Errorf("the page says %s", eval[string](t, ctx, `document.querySelector("main").innerHTML`))
	}
	away.away.Store(false)
	do(t, ctx, chromedp.Reload())
	until(t, ctx, `document.querySelector("h1").textContent == "Overview"`)
}

// No part of a page moves while it is loaded, nor when it loads itself again and nothing has changed.
func TestNoLayoutShift(t *testing.T) {
	t.Parallel()
	s := startShop(t, "127.0.0.1:0")
	ctx := browser(t, s, 1280, 800, false)
	until(t, ctx, `fetch("api/v1/run?id=order-declined").then(r => r.json()).then(r => r.status == "failed")`)
	const observe = `window.shifts = []; new PerformanceObserver(list => { for (const e of list.getEntries()) shifts.push(e.value + " " + e.sources.map(s => s.node?.outerHTML?.slice(0, 80))) }).observe({ type: "layout-shift", buffered: true });`
	do(t, ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(observe).Do(ctx)
		return err
	}))
	settled := `new Promise(r => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => r(true))), 100))`
	check := func(name string) {
		t.Helper()
		until(t, ctx, settled)
		const most = "0.002" // a fiftieth of what counts as good: the rows of a long table may widen its columns while they arrive
		if shifts := eval[string](t, ctx, `shifts.reduce((sum, s) => sum + parseFloat(s), 0) > `+most+` ? shifts.join("\n") : ""`); shifts != "" {
			t.Errorf("%s: parts move by %s", name, shifts)
		}
	}
	for name, path := range pages {
		do(t, ctx, chromedp.Navigate(s.url(path)), chromedp.WaitVisible("main"))
		check(name)
	}

	e := working(t)
	address, stop := serve(t, e, "127.0.0.1:0")
	defer stop()
	startWaiting(t, e, "still")
	until(t, ctx, `true`)
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for r, err := e.Get(within, "still"); err != nil || r.Status != durable.StatusWaiting; r, err = e.Get(within, "still") {
		if within.Err() != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/", "/run?id=still", "/runs"} {
		do(t, ctx, chromedp.Navigate("http://"+address+path), chromedp.WaitVisible("main"), chromedp.Evaluate(`main().dataset.before = "yes"; undefined`, nil))
		until(t, ctx, `load().then(() => main().dataset.before === undefined)`)
		check("the reload of " + path)
	}
	// What is measured is seen: a part that moves is reported.
	do(t, ctx, chromedp.Evaluate(`main().prepend(Object.assign(document.createElement("div"), { style: "height:200px" })); undefined`, nil))
	until(t, ctx, `shifts.length > 0`)
}
