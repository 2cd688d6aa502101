package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// pages are the pages of the shop, by the names of their pictures.
var pages = map[string]string{
	"overview": "/", "runs": "/runs", "failures": "/failures", "queues": "/queues", "limits": "/limits", "schedules": "/schedules", "workers": "/workers", "events": "/events", "audit": "/audit", "health": "/health", "bulk": "/bulk?verb=retry&status=failed",
	"call": "/call?id=order-3&call=charge", "run": "/run?id=order-3", "run-failed": "/run?id=order-declined", "run-many": "/run?id=catalogue", "run-waits": "/run?id=refund-7", "run-held": "/run?id=renewal-3", "run-graph": "/run?id=report-now", "run-undone": "/run?id=booking-lisbon",
}

// TestShots writes a picture of each page, for people to look at: on a wide screen, dark, and on a phone.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("no folder is given with -shots")
	}
	s := startShop(t, "127.0.0.1:0")
	for kind, open := range map[string]func() context.Context{
		"light": func() context.Context { return browser(t, s, 1280, 800, false) },
		"dark":  func() context.Context { return browser(t, s, 1280, 800, true) },
		"phone": func() context.Context { return browser(t, s, 375, 720, false) },
	} {
		ctx := open()
		do(t, ctx, chromedp.Navigate(s.url("/run?id=catalogue")))
		until(t, ctx, `fetch("api/v1/run?id=catalogue").then(r => r.json()).then(r => r.status == "completed")`)
		until(t, ctx, `fetch("api/v1/run?id=order-3").then(r => r.json()).then(r => r.status == "completed")`)
		for name, path := range pages {
			var picture []byte
			do(t, ctx, chromedp.Navigate(s.url(path)), chromedp.WaitVisible("main"), chromedp.FullScreenshot(&picture, 100))
			if err := os.WriteFile(filepath.Join(*shots, name+"-"+kind+".png"), picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
