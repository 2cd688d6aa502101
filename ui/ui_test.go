package ui_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
	"github.com/seed8ec063be/durable/ui"
)

func TestMain(m *testing.M) { os.Exit(pgtest.InMemory(func() int { return pgtest.Main(m) })) }

// hostile is a text that would be a script, an attribute, a template, another line or another direction.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>{{.}}` + "\u202e"

var (
	order = durable.Define("order", func(c *durable.Ctx, in string) (string, error) {
		return c.Step("charge", func(context.Context) (string, error) {
			if strings.HasPrefix(in, "declined") {
				return "", errors.New("declined: " + in)
			}
			return "paid " + in, nil
		})
	})
	approval = durable.Define("approval", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("approve") })
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// onStores runs a test with a working engine on each store.
func onStores(t *testing.T, test func(t *testing.T, e *durable.Engine)) {
	t.Parallel()
	with := func(t *testing.T, s durable.Store, err error) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{order, approval, family, strangers, repairPreview, leaf, large, flaky, wordy, busy, bulky, renewed}, Name: "worker-1", Version: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := errors.Join(<-done, s.Close()); err != nil {
				t.Error(err)
			}
		})
		test(t, e)
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "ui.db"), sqlite.Synchronous(sqlite.Normal))
		with(t, s, err)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, err := postgres.Open(within(t), pgtest.ServerURL(t), postgres.Schema(pgtest.LendSchema(t, "migration", "secret")))
		with(t, s, err)
	})
}

// start starts a run, and waits until it has ended or waits for its signal.
func start(t *testing.T, e *durable.Engine, w *durable.Workflow[string, string], id, in string, opts ...durable.StartOption) {
	t.Helper()
	run, err := w.Start(within(t), e, in, append(opts, durable.ID(id))...)
	if err != nil {
		t.Fatal(err)
	}
	for ctx := within(t); w == approval; {
		info, err := e.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if info.Status == durable.StatusWaiting {
			return
		}
		runtime.Gosched()
	}
	if failed := new(durable.RunError); w == order {
		if _, err := run.Result(within(t)); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
	}
}

// anyone permits everything to ann.
func anyone(*http.Request, ui.Action) (string, error) { return "ann", nil }

// send sends a request to the handler. A form makes it a POST.
func send(h http.Handler, path string, f url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	if f != nil {
		r = httptest.NewRequest("POST", path, strings.NewReader(f.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func runPage(id string) string { return "/run?id=" + url.QueryEscape(id) }

// Hostile text in IDs, tags, inputs, outputs, errors and reasons is shown as text on every page.
func TestHostileTextIsText(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone))
		id := "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>/../{{.}}"
		start(t, e, order, id, hostile, durable.Tag("team.owner", "<script>alert(1)</script>"))
		start(t, e, order, "failed", "declined"+hostile)
		start(t, e, approval, "waits", hostile)
		if _, err := e.Pause(within(t), "waits", durable.Reason(hostile[:len(hostile)-3]), durable.Actor("<script>alert(1)</script>")); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/", "/runs", "/failures", "/events", "/audit", "/health", "/workers", "/queues", "/limits", "/schedules", runPage(id), runPage("failed"), runPage("waits"), "/run?id=" + url.QueryEscape(hostile), "/runs?" + url.Values{"workflow": {hostile}, "status": {hostile}}.Encode()} {
			got := send(h, path, nil)
			body := got.Body.String()
			if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") || strings.Contains(body, "\u202e") {
				t.Errorf("%s shows hostile text as markup:\n%s", path, body)
			}
			if !strings.Contains(body, "</html>") || got.Code >= 500 {
				t.Errorf("%s ends with %d:\n%s", path, got.Code, body)
			}
		}
		if body := send(h, runPage(id), nil).Body.String(); !strings.Contains(body, "&lt;script&gt;alert(1)") {
			t.Errorf("the ID is not shown:\n%s", body)
		}
	})
}

// Without Authorize nothing can be changed and no payload is seen, in pages and in JSON.
func TestSafeByDefault(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "order-1", "secret")
		start(t, e, approval, "waits", "secret")
		for name, h := range map[string]http.Handler{"without Authorize": ui.Handler(e), "ReadOnly": ui.Handler(e, ui.Authorize(anyone), ui.ReadOnly())} {
			for _, path := range []string{"/act", "/api/v1/act"} {
				f, body := url.Values{"verb": {"terminate"}, "run": {"waits"}}, `{"verb": "terminate", "run": "waits"}`
				got := send(h, path, f)
				if path != "/act" {
					r := httptest.NewRequest("POST", path, strings.NewReader(body))
					got = httptest.NewRecorder()
					h.ServeHTTP(got, r)
				}
				if got.Code != http.StatusForbidden {
					t.Errorf("%s: an act at %s gives %d: %s", name, path, got.Code, got.Body)
				}
			}
			if body := send(h, runPage("waits"), nil).Body.String(); strings.Contains(body, "<form method=\"post\"") || !strings.Contains(body, "read-only") {
				t.Errorf("%s: the page offers acts", name)
			}
		}
		h := ui.Handler(e)
		for _, path := range []string{runPage("order-1"), "/api/v1/run?id=order-1", "/api/v1/history?id=order-1", "/api/v1/generations?id=order-1", "/runs", "/api/v1/runs"} {
			if got := send(h, path, nil); strings.Contains(got.Body.String(), "secret") || got.Code != http.StatusOK {
				t.Errorf("%s: %d, and shows a payload: %s", path, got.Code, got.Body)
			}
		}
		if run, err := e.Get(within(t), "waits"); err != nil || !run.EndedAt.IsZero() {
			t.Errorf("the run is %+v, %v", run, err)
		}
		headers := send(h, "/", nil).Header()
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Content-Security-Policy": "frame-ancestors 'none'"} {
			if !strings.Contains(headers.Get(name), want) {
				t.Errorf("%s is %q", name, headers.Get(name))
			}
		}
		if policy := headers.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") {
			t.Errorf("the policy permits inline scripts or styles: %s", policy)
		}
	})
}

// Acts reach the run with their actor and reason; requests of other sites do not.
func TestActs(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		h := ui.Handler(e, ui.Authorize(anyone), ui.Prefix("/durable/"))
		act := func(code int, pairs ...string) *httptest.ResponseRecorder {
			t.Helper()
			f := make(url.Values)
			for i := 0; i < len(pairs); i += 2 {
				f.Set(pairs[i], pairs[i+1])
			}
			got := send(h, "/durable/act", f, "Sec-Fetch-Site", "same-origin")
			if got.Code != code {
				t.Fatalf("%q gives %d, not %d: %s", pairs, got.Code, code, got.Body)
			}
			return got
		}
		start(t, e, approval, "waits", "in")
		cross := send(h, "/durable/act", url.Values{"verb": {"terminate"}, "run": {"waits"}}, "Sec-Fetch-Site", "cross-site")
		if cross.Code != http.StatusForbidden {
			t.Errorf("an act of another site gives %d", cross.Code)
		}
		if to := act(http.StatusSeeOther, "verb", "pause", "run", "waits", "reason", "audit").Header().Get("Location"); to != "/durable/run?id=waits&did=pause" {
			t.Errorf("the act leads to %q", to)
		}
		run, err := e.Get(within(t), "waits")
		if err != nil || run.Reason != "audit" || run.PausedBy != "ann" {
			t.Errorf("the paused run is %+v, %v", run, err)
		}
		if body := send(h, "/durable/run?id=waits", nil).Body.String(); !strings.Contains(body, "audit (by ann)") || !strings.Contains(body, "The run is live: cancel or terminate it first.") || !strings.Contains(body, `href="/durable/runs"`) {
			t.Errorf("the page is %s", body)
		}
		act(http.StatusSeeOther, "verb", "resume", "run", "waits")
		act(http.StatusConflict, "verb", "resume", "run", "waits")
		act(http.StatusBadRequest, "verb", "signal", "run", "waits", "name", "approve", "payload", "{")
		act(http.StatusBadRequest, "verb", "explode", "run", "waits")
		act(http.StatusNotFound, "verb", "pause", "run", "missing")
		act(http.StatusSeeOther, "verb", "signal", "run", "waits", "name", "approve", "payload", `"yes"`)
		handle, err := approval.Handle(within(t), e, "waits")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := handle.Result(within(t)); got != "yes" || err != nil {
			t.Errorf("the signalled run returns %q, %v", got, err)
		}
		start(t, e, order, "bad", "declined")
		if body := act(http.StatusOK, "verb", "retry", "run", "bad", "dry_run", "yes").Body.String(); !strings.Contains(body, "Generation 2") || !strings.Contains(body, "charge") {
			t.Errorf("the preview is %s", body)
		}
		if run, err := e.Get(within(t), "bad"); err != nil || run.Status != durable.StatusFailed {
			t.Errorf("after a preview the run is %+v, %v", run, err)
		}
		act(http.StatusSeeOther, "verb", "retry", "run", "bad", "reason", "the bank is back")
		if all, err := e.Generations(within(t), "bad"); err != nil || len(all) != 2 || all[1].Actor != "ann" || all[1].Reason != "the bank is back" {
			t.Errorf("the generations are %+v, %v", all, err)
		}
		act(http.StatusSeeOther, "verb", "set", "queue_name", "mail", "max_executing", "3", "rate", "10/s")
		act(http.StatusSeeOther, "verb", "pause", "queue_name", "mail", "reason", "bounces")
		if queues, err := e.Queues(within(t)); err != nil || len(queues) != 1 || queues[0].Settings.MaxExecuting != 3 || queues[0].PausedBy != "ann" || queues[0].PauseReason != "bounces" {
			t.Errorf("the queues are %+v, %v", queues, err)
		}
		act(http.StatusBadRequest, "verb", "set", "queue_name", "mail", "rate", "often")
	})
}

// Authorize decides by workflow and tags, Visible bounds lists, and Redact replaces what is shown.
func TestAuthorizeVisibleAndRedact(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		start(t, e, order, "order-1", "card 4711", durable.Tag("team.owner", "pay"))
		start(t, e, order, "order-2", "declined 4711")
		start(t, e, approval, "waits", "in")
		if _, err := e.Pause(within(t), "waits"); err != nil { // an event of a run that is not visible
			t.Fatal(err)
		}
		h := ui.Handler(e, ui.Authorize(func(_ *http.Request, a ui.Action) (string, error) {
			if a.Run != "" && a.Workflow != "order" || a.Verb == ui.VerbReadPayloads && a.Tags["team.owner"] != "pay" {
				return "", errors.New("not yours")
			}
			return "ann", nil
		}), ui.Visible(func(*http.Request) durable.Filter { return durable.Filter{Workflow: "order"} }),
			ui.Redact(func(f ui.Field) string { return strings.ReplaceAll(f.Value, "4711", "****") }))
		if got := send(h, runPage("waits"), nil); got.Code != http.StatusNotFound {
			t.Errorf("a run of another workflow gives %d", got.Code)
		}
		for _, path := range []string{"/", "/runs", "/api/v1/runs", "/runs?workflow=approval", "/events", "/api/v1/events", "/api/v1/counts", runPage("order-1"), runPage("order-2"), "/api/v1/history?id=order-1"} {
			got := send(h, path, nil)
			if body := got.Body.String(); got.Code != http.StatusOK || strings.Contains(body, "waits</a>") || strings.Contains(body, `"waits"`) || strings.Contains(body, "4711") {
				t.Errorf("%s gives %d, and shows what is hidden: %s", path, got.Code, body)
			}
		}
		until(t, func() bool { // events are shown when all earlier transactions on the server have ended
			return strings.Contains(send(h, "/api/v1/events", nil).Body.String(), "order-2")
		})
		if body := send(h, "/api/v1/run?id=order-1", nil).Body.String(); !strings.Contains(body, "card ****") {
			t.Errorf("the permitted payload is not shown: %s", body)
		}
		if body := send(h, "/api/v1/run?id=order-2", nil).Body.String(); !strings.Contains(body, "(hidden)") || !strings.Contains(body, "declined ****") {
			t.Errorf("the refused payload is shown, or the error is not: %s", body)
		}
	})
}

// What a browser loads for the page of a run with 100 calls stays small: the page, the script, the styles and the icon.
func TestPageOfARunIsSmall(t *testing.T) {
	onStores(t, func(t *testing.T, e *durable.Engine) {
		if _, err := large.Call(within(t), e, [2]int{0, 120}, durable.ID("large")); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(ui.Handler(e, ui.Authorize(anyone)))
		defer server.Close()
		sum := 0
		for _, path := range []string{runPage("large"), "/assets/style.css", "/assets/ui.js", "/assets/icon.svg", "/api/v1/history?id=large"} {
			request, err := http.NewRequestWithContext(within(t), "GET", server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept-Encoding", "gzip")
			reply, err := http.DefaultClient.Do(request) // it does not decompress what it was told to accept
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(reply.Body)
			if reply.Body.Close(); err != nil || reply.StatusCode != http.StatusOK || reply.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("%s gives %d %v, %v", path, reply.StatusCode, reply.Header, err)
			}
			sum += len(body)
			t.Logf("%s has %d bytes", path, len(body))
		}
		if sum > 80_000 {
			t.Errorf("a page with its assets has %d bytes", sum)
		}
	})
}

// The assets are compressed, and there are no others.
func TestAssetsAreSmall(t *testing.T) {
	e := new(durable.Engine)
	sum := 0
	for _, name := range []string{"style.css", "ui.js", "icon.svg"} {
		got := send(ui.Handler(e), "/assets/"+name, nil, "Accept-Encoding", "gzip")
		if got.Code != http.StatusOK || got.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s gives %d", name, got.Code)
		}
		sum += got.Body.Len()
	}
	if sum > 80_000 {
		t.Errorf("the assets have %d bytes", sum)
	}
	if got := send(ui.Handler(e), "/assets/missing.js", nil); got.Code != http.StatusNotFound {
		t.Errorf("a missing asset gives %d", got.Code)
	}
}
