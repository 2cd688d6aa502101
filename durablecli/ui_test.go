package durablecli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
)

// dashboard is an execution of durable ui.
type dashboard struct {
	address *url.URL // what it wrote
	stop    func() int
}

// serveUI executes durable ui until the test ends, or until stop is called.
func serveUI(t *testing.T, e *durable.Engine, args ...string) *dashboard {
	t.Helper()
	ctx, interrupt := context.WithCancel(within(t))
	out, writer := io.Pipe()
	var errs bytes.Buffer
	cmd := durablecli.Command(e)
	cmd.SetArgs(append([]string{"ui"}, args...))
	cmd.SetOut(writer)
	cmd.SetErr(&errs)
	done := make(chan int, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		writer.CloseWithError(err)
		done <- durablecli.ExitCode(err)
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("durable ui %q wrote no address: %v\n%s", args, err, &errs)
	}
	address, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	d := &dashboard{address: address, stop: func() int { interrupt(); return <-done }}
	t.Cleanup(func() {
		interrupt()
		out.Close()
	})
	return d
}

// browser returns a client that keeps cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// ask sends a request to a path of the dashboard. A form makes it a POST.
func (d *dashboard) ask(t *testing.T, client *http.Client, path string, form url.Values, change func(*http.Request)) (status int, body string) {
	t.Helper()
	if strings.HasPrefix(path, "/") {
		path = strings.TrimSuffix(d.address.Path, "/") + path
	}
	address, err := d.address.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(within(t), http.MethodGet, address.String(), nil)
	if form != nil && err == nil {
		r, err = http.NewRequestWithContext(within(t), http.MethodPost, address.String(), strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	reply, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// The dashboard on the user's machine permits acts to those who have its address, in the user's name, and ends when it is interrupted.
func TestUI(t *testing.T) {
	onStores(t, func(t *testing.T, p *place) {
		e, _ := p.engine(t)
		start(t, e, approval, "waits", "book")
		for name, d := range map[string]*dashboard{
			"standalone": serveUI(t, nil, append([]string{"--actor", "ann"}, p.flags...)...),
			"embedded":   serveUI(t, e, "--actor", "ann"),
		} {
			client := browser(t)
			if status, body := d.ask(t, client, d.address.String(), nil, nil); status != http.StatusOK || !strings.Contains(body, "<h1>Overview</h1>") {
				t.Errorf("%s: the address gives %d:\n%s", name, status, body)
			}
			status, body := d.ask(t, client, "/act", url.Values{"verb": {"pause"}, "run": {"waits"}, "reason": {"audit"}}, nil)
			if run, err := e.Get(within(t), "waits"); err != nil || status != http.StatusOK || run.PausedBy != "ann" || run.Reason != "audit" {
				t.Errorf("%s: the act gives %d, and the run is %+v, %v\n%s", name, status, run, err, body)
			}
			if _, err := e.Resume(within(t), "waits"); err != nil {
				t.Fatal(err)
			}
			if code := d.stop(); code != durablecli.ExitDone {
				t.Errorf("%s: the interrupted command exits with %d", name, code)
			}
			if _, err := client.Get(d.address.String()); err == nil {
				t.Errorf("%s: the dashboard is served after the command ended", name)
			}
		}
	})
}

// Nobody reaches the dashboard without its token, under another name, or from a page of another site.
func TestUIRefusesStrangers(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	e, _ := p.engine(t)
	start(t, e, approval, "waits", "book")
	d := serveUI(t, e, "--allow-host", "Ops.Test")
	act := url.Values{"verb": {"terminate"}, "run": {"waits"}}

	for _, path := range []string{"/", "/runs", "/api/v1/runs", "/assets/ui.js", "/?token=", "/?token=wrong", "/runs?token=" + d.address.Query().Get("token")} {
		if status, body := d.ask(t, browser(t), path, nil, nil); status != http.StatusUnauthorized || strings.Contains(body, "waits") {
			t.Errorf("%s without the token gives %d: %s", path, status, body)
		}
	}
	if status, _ := d.ask(t, browser(t), "/act", act, nil); status != http.StatusUnauthorized {
		t.Errorf("an act without the token gives %d", status)
	}

	client := browser(t)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	reply, err := client.Get(d.address.String())
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if cookies := reply.Cookies(); len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(d.address.RawQuery, cookies[0].Value) {
		t.Errorf("the cookies are %v", cookies)
	}
	if to := reply.Header.Get("Location"); to != d.address.Path {
		t.Errorf("the token leads to %q", to)
	}
	client.Jar = nil // it keeps the cookies of each Host apart
	cookie := reply.Cookies()[0]

	for host, want := range map[string]int{
		"localhost:8080": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:8080": http.StatusOK, "ops.test:8080": http.StatusOK,
		"evil.test": http.StatusForbidden, "evil.test:8080": http.StatusForbidden, "127.0.0.1.evil.test": http.StatusForbidden, "localhost.evil.test": http.StatusForbidden,
	} {
		status, body := d.ask(t, client, "/runs", nil, func(r *http.Request) { r.Host = host; r.AddCookie(cookie) })
		if status != want || status != http.StatusOK && strings.Contains(body, "waits") {
			t.Errorf("the Host %q gives %d, not %d", host, status, want)
		}
	}
	if status, _ := d.ask(t, client, d.address.String(), nil, func(r *http.Request) { r.Host = "evil.test"; r.AddCookie(cookie) }); status != http.StatusForbidden {
		t.Errorf("the token under another name gives %d", status)
	}
	for _, origin := range []string{"https://evil.test", "null"} {
		if status, _ := d.ask(t, client, "/act", act, func(r *http.Request) { r.Header.Set("Origin", origin); r.AddCookie(cookie) }); status != http.StatusForbidden {
			t.Errorf("an act from %s gives %d", origin, status)
		}
	}
	if run, err := e.Get(within(t), "waits"); err != nil || !run.EndedAt.IsZero() {
		t.Errorf("the run is %+v, %v", run, err)
	}
}

// A browser that has opened the dashboard sends its cookie to no other server of the machine: cookies of a host are sent to all its ports.
func TestTheCookieOfUIIsSentToNoOtherPort(t *testing.T) {
	t.Parallel()
	d := serveUI(t, onFile(t).client(t))
	client := browser(t)
	if status, body := d.ask(t, client, d.address.String(), nil, nil); status != http.StatusOK {
		t.Fatalf("the address gives %d: %s", status, body)
	}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if cookies := r.Cookies(); len(cookies) > 0 {
			t.Errorf("another server gets %v at %s", cookies, r.URL)
		}
	}))
	defer other.Close()
	for _, path := range []string{"/", "/runs", "/api/v1/runs"} {
		reply, err := client.Get(other.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
	}
	if status, _ := d.ask(t, client, "/runs", nil, nil); status != http.StatusOK {
		t.Errorf("the list gives %d", status)
	}
}

// An address that other machines reach is refused, and acts with --read-only.
func TestUIUsage(t *testing.T) {
	t.Parallel()
	p := onFile(t)
	for _, listen := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.test:0", "8080"} {
		p.fails(t, durablecli.ExitUsage, []string{"--listen"}, "ui", "--listen", listen)
	}
	d := serveUI(t, p.client(t), "--read-only")
	client := browser(t)
	d.ask(t, client, d.address.String(), nil, nil)
	if status, _ := d.ask(t, client, "/act", url.Values{"verb": {"pause"}, "run": {"x"}}, nil); status != http.StatusForbidden {
		t.Errorf("an act with --read-only gives %d", status)
	}
	busy := p.try(t, "ui", "--listen", d.address.Host)
	if busy.code != durablecli.ExitError || !strings.Contains(busy.err, "--listen") {
		t.Errorf("a port in use gives %d: %s", busy.code, busy.err)
	}
}
