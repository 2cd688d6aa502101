package browsertest

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Eight visible windows of one browser all load, and all follow their run: over HTTP/1.1 a browser has six connections to a host, and a stream takes one.
func TestManyWindowsFollow(t *testing.T) {
	t.Parallel()
	e := working(t)
	address, stop := serve(t, e, "127.0.0.1:0")
	defer stop()
	startWaiting(t, e, "live")
	page := at(address, "/run", "id=live")
	windows := []context.Context{browser(t, page, 1280, 800, false)}
	for range 7 {
		ctx, cancel := chromedp.NewContext(windows[0])
		defer cancel()
		windows = append(windows, ctx)
		do(t, ctx, emulation.SetFocusEmulationEnabled(true), chromedp.Navigate(page.address.String()), chromedp.WaitVisible("main"))
		if eval[bool](t, ctx, `document.hidden`) {
			t.Fatal("the window is hidden")
		}
	}
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.Signal(within, "live", "approve", "yes"); err != nil {
		t.Fatal(err)
	}
	for _, ctx := range windows {
		until(t, ctx, `document.querySelector("h1 .status").textContent == "completed"`)
	}
}
