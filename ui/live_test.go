package ui_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/ui"
)

// stream opens the stream of a page, and returns a function that returns its next line with content; empty: it has ended.
func stream(t *testing.T, ctx context.Context, base, path string) (status int, next func() string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reply.Body.Close() })
	lines := bufio.NewScanner(reply.Body)
	return reply.StatusCode, func() string {
		for lines.Scan() {
			if line := lines.Text(); line != "" && !strings.HasPrefix(line, ":") {
				return line
			}
		}
		return ""
	}
}

// A stream tells of changes of its run, ends when its server shuts down, and shows nothing to those who may not read.
func TestLive(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in")
		server := httptest.NewServer(ui.Handler(e, ui.Authorize(anyone)))
		defer server.Close()
		ctx := within(t)
		info, err := e.Get(ctx, "waits")
		if err != nil {
			t.Fatal(err)
		}
		if body := send(ui.Handler(e), runPage("waits"), nil).Body.String(); !strings.Contains(body, `data-live="/live?run=`+info.RunID) {
			t.Errorf("the page of a live run names no stream: %s", body)
		}
		if status, _ := stream(t, ctx, server.URL, "/live?run=missing"); status != http.StatusNotFound {
			t.Errorf("the stream of a missing run gives %d", status)
		}
		status, next := stream(t, ctx, server.URL, "/live?"+url.Values{"run": {"waits"}}.Encode())
		if line := next(); status != http.StatusOK || line != "retry: 2000" {
			t.Fatalf("the stream begins with %d, %q", status, line)
		}
		if _, err := e.Pause(ctx, "waits"); err != nil {
			t.Fatal(err)
		}
		if line := next(); line != "data: changed" {
			t.Errorf("after a change the stream says %q", line)
		}
		done := make(chan error, 1)
		go func() { done <- server.Config.Shutdown(ctx) }()
		for line := "-"; line != ""; line = next() { // it may tell of changes before
		}
		if err := <-done; err != nil {
			t.Errorf("Shutdown: %v", err)
		}

		refusing := ui.Handler(e, ui.Authorize(func(*http.Request, ui.Action) (string, error) { return "", http.ErrNoCookie }))
		for _, path := range []string{"/live", "/live?run=waits", "/live?run=missing"} {
			if got := send(refusing, path, nil); got.Code != http.StatusForbidden {
				t.Errorf("%s gives %d to somebody who may not read", path, got.Code)
			}
		}
	})
}
