package browsertest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
	"github.com/seed8ec063be/durable/ui"
)

var approval = durable.Define("approval", func(c *durable.Ctx, in string) (string, error) {
	if _, err := c.Step("ask", func(context.Context) (string, error) { return in, nil }); err != nil {
		return "", err
	}
	approved, err := c.Receive[string]("approve")
	if err == nil && approved == "no" {
		err = errors.New("declined: " + in)
	}
	return approved, err
})

// working returns an engine on a new file that executes approval until the test ends.
func working(t *testing.T) *durable.Engine {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "ui.db"), sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		t.Fatal(err)
	}
	e, err := durable.New(store, durable.Config{Workflows: []durable.Definition{approval}, Name: "worker-1", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// serve serves the dashboard at an address until stop is called. Stop returns when all requests, also streams, have ended.
func serve(t *testing.T, e *durable.Engine, address string) (at string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	permit := ui.Authorize(func(*http.Request, ui.Action) (string, error) { return "ann", nil })
	server := &http.Server{Handler: ui.Handler(e, permit)}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	return listener.Addr().String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("the server does not stop: %v", err)
		}
		<-done
	}
}

// at returns what browser opens: a page of the dashboard that serve serves.
func at(address, path, query string) *shop {
	return &shop{address: &url.URL{Scheme: "http", Host: address, Path: path, RawQuery: query}}
}

// startWaiting starts a run that waits for its signal.
func startWaiting(t *testing.T, e *durable.Engine, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := approval.Start(ctx, e, "in", durable.ID(id)); err != nil {
		t.Fatal(err)
	}
}

// A page follows its run without a reload, also after the server was restarted, and leaves an open form alone.
func TestLiveInTheBrowser(t *testing.T) {
	t.Parallel()
	e := working(t)
	address, stop := serve(t, e, "127.0.0.1:0")
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := approval.Start(within, e, "in", durable.ID("live")); err != nil {
		t.Fatal(err)
	}
	ctx := browser(t, at(address, "/run", "id=live"), 1280, 800, false)
	do(t, ctx, chromedp.Evaluate(`window.sameDocument = true`, nil))
	until(t, ctx, `document.querySelector("h1 .status").textContent == "waiting"`)
	if _, err := e.Pause(within, "live", durable.Reason("audit")); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `document.querySelector("h1 .status").textContent == "paused" && document.body.textContent.includes("audit")`)

	stop()
	if _, err := e.Resume(within, "live"); err != nil {
		t.Fatal(err)
	}
	_, stop = serve(t, e, address)
	defer func() { stop() }()
	until(t, ctx, `document.querySelector("h1 .status").textContent == "waiting"`)

	do(t, ctx, chromedp.Evaluate(`document.querySelector("details.act:not(.impossible) summary").click()`, nil),
		chromedp.Evaluate(`document.querySelector("details.act[open] input[name=reason]").value = "typed"`, nil))
	if err := e.Signal(within, "live", "approve", "yes"); err != nil {
		t.Fatal(err)
	}
	until(t, ctx, `fetch("api/v1/run?id=live").then(r => r.json()).then(r => r.status == "completed")`)
	until(t, ctx, `new Promise(r => setTimeout(() => r(document.querySelector("details.act[open] input[name=reason]").value == "typed"), 3000))`)
	do(t, ctx, chromedp.Evaluate(`document.querySelector("details.act[open]").open = false; document.activeElement.blur()`, nil))
	until(t, ctx, `document.querySelector("h1 .status").textContent == "completed"`)
	if !eval[bool](t, ctx, `window.sameDocument === true`) {
		t.Error("the browser loaded another document")
	}
}

// Hostile text in IDs, tags, payloads and errors is shown as text: no script of it is executed, and no element of it exists.
func TestHostileTextInTheBrowser(t *testing.T) {
	t.Parallel()
	const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'>` + "\u202e"
	e := working(t)
	address, stop := serve(t, e, "127.0.0.1:0")
	defer stop()
	within, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id := `<script>window.hacked=1</script>"'><img src=x onerror=window.hacked=1>`
	if _, err := approval.Start(within, e, hostile, durable.ID(id), durable.Tag("team.owner", "<script>window.hacked=1</script>")); err != nil {
		t.Fatal(err)
	}
	if err := e.Signal(within, id, "approve", "no"); err != nil {
		t.Fatal(err)
	}
	run := "/run?id=" + url.QueryEscape(id)
	ctx := browser(t, &shop{address: &url.URL{Scheme: "http", Host: address, Path: "/"}}, 1280, 800, false)
	until(t, ctx, `fetch("api/v1`+"/run?id=\" + encodeURIComponent("+"`"+id+"`"+`)).then(r => r.json()).then(r => r.status == "failed")`)
	for _, path := range []string{run, "/", "/runs", "/events"} {
		do(t, ctx, chromedp.Navigate("http://"+address+path), chromedp.WaitVisible("main"))
		until(t, ctx, `document.body.textContent.includes("onerror=")`)
		if eval[bool](t, ctx, `window.hacked !== undefined || document.querySelector("img, main script") !== null`) {
			t.Errorf("%s makes markup of hostile text", path)
		}
	}
}
