package ui_test

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

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

// A page in a round shows what it shows outside of one, and those who load it in the same round share what is read.
func TestTurnIsShared(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in", durable.Tag("team.owner", "ann"))
		h := ui.Handler(e, ui.Authorize(anyone), ui.Redact(func(f ui.Field) string { return f.Value + "!" }))
		fresh := send(h, runPage("waits"), nil).Body.String()
		round := ui.StartRound(h)
		first := send(h, runPage("waits"), nil, "Durable-Round", round).Body.String()
		send(h, runPage("waits"), nil, "Durable-Round", "1")
		send(h, runPage("waits"), nil, "Durable-Round", ui.StartRound(ui.Handler(e)))
		if withoutTimes(first) != withoutTimes(fresh) || !strings.Contains(first, "ann!") || strings.Contains(first, "ann!!") {
			t.Errorf("in a round the page is\n%s\nand otherwise\n%s", first, fresh)
		}
		if _, err := e.Cancel(within(t), "waits"); err != nil {
			t.Fatal(err)
		}
		if again := send(h, runPage("waits"), nil, "Durable-Round", round).Body.String(); withoutTimes(again) != withoutTimes(first) {
			t.Errorf("the same round reads twice: %s", again)
		}
		for _, round := range []string{ui.StartRound(h), "", "1", ui.StartRound(ui.Handler(e))} { // one that nobody gave, and one that another process gave, are ignored
			if body := send(h, runPage("waits"), nil, "Durable-Round", round).Body.String(); !strings.Contains(body, "cancel") || withoutTimes(body) == withoutTimes(first) {
				t.Errorf("round %q shows what was before: %s", round, body)
			}
		}
	})
}

// withoutTimes returns a page without what changes from one moment to the next.
func withoutTimes(body string) string {
	return regexp.MustCompile(`(?s)<svg.*?</svg>|<time.*?</time>|<span class="ticks">.*?</td>|<dd>.*?</dd>|\d+(\.\d+)? ?m?s…?`).ReplaceAllString(body, "")
}

// A change between the load of a page and the first reading of its stream is told before the page is due to be loaded again, and the page that
// is loaded then shows it.
func TestAChangeBeforeTheStreamIsTold(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, approval, "waits", "in")
		h := ui.Handler(e, ui.Authorize(anyone))
		server := httptest.NewServer(h)
		defer server.Close()
		for _, page := range []struct{ path, stream, after string }{
			{runPage("waits"), "/live?" + url.Values{"run": {"waits"}, "page": {runPage("waits")}}.Encode(), "<span class=\"status paused\">"},
			{"/", "/live?" + url.Values{"run": {""}, "page": {"/"}}.Encode(), "?status=paused"},
		} {
			if body := send(h, page.path, nil).Body.String(); strings.Contains(body, page.after) {
				t.Errorf("%s shows the change before it: %s", page.path, body)
			}
			if _, err := e.Pause(within(t), "waits"); err != nil {
				t.Fatal(err)
			}
			// It takes a second. A list is loaded again after five seconds in any case, and a loaded machine may stand still.
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			defer cancel()
			_, next := stream(t, ctx, server.URL, page.stream)
			for line := next(); ; line = next() {
				round, told := strings.CutPrefix(line, "data: ")
				if line == "" {
					t.Errorf("four seconds after it was opened, the stream of %s has not told the change before it", page.path)
				}
				if line == "" || told && strings.Contains(send(h, page.path, nil, "Durable-Round", round).Body.String(), page.after) {
					break
				}
			}
			if _, err := e.Resume(within(t), "waits"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A page names its whole address to its stream, so that only those who look at the same page share rounds.
func TestStreamsNameTheirPages(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		const path = "/runs?status=live&workflow=order%26page%3D1"
		_, rest, _ := strings.Cut(send(ui.Handler(e), path, nil).Body.String(), `data-live="`)
		address, _, _ := strings.Cut(rest, `"`)
		u, err := url.Parse(html.UnescapeString(address))
		if err != nil || u.Query().Get("page") != path {
			t.Errorf("the stream at %q is of the page %q, %v", address, u.Query().Get("page"), err)
		}
	})
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
		if line := next(); !strings.HasPrefix(line, "data: ") {
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
