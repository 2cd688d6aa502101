package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

// visitor is a browser on the dashboard of the example.
type visitor struct {
	t      *testing.T
	client *http.Client
	base   *url.URL
}

func (v *visitor) read(reply *http.Response, err error) string {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		v.t.Fatalf("%s gives %d, %v:\n%s", reply.Request.URL, reply.StatusCode, err, body)
	}
	return string(body)
}

// address returns the address of a page of the dashboard.
func (v *visitor) address(path string) string {
	return v.base.Scheme + "://" + v.base.Host + strings.TrimSuffix(v.base.Path, "/") + path
}

func (v *visitor) get(path string) string {
	v.t.Helper()
	return v.read(v.client.Get(v.address(path)))
}

// await reads a run until it has the status.
func (v *visitor) await(ctx context.Context, id, status string) {
	v.t.Helper()
	for {
		var run struct{ Status string }
		reply, err := v.client.Get(v.address("/api/v1/run?id=" + url.QueryEscape(id))) // 404 until it is started
		if err != nil {
			v.t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err := errors.Join(err, json.Unmarshal(body, &run)); err != nil {
			v.t.Fatal(err)
		}
		if run.Status == status {
			return
		}
		if ctx.Err() != nil {
			v.t.Fatalf("run %s never becomes %s: %s", id, status, body)
		}
	}
}

// The example begins, shows each page with what it promises, retries a failed run through its page, and ends.
func TestOperations(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		err := operate(working, in, "127.0.0.1:0")
		in.CloseWithError(err)
		if err != nil {
			t.Error(err)
		}
		close(done)
	}()
	t.Cleanup(func() { stop(); <-done })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, client: &http.Client{Jar: jar, Transport: new(http.Transport)}}
	if v.base, err = url.Parse(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	v.read(v.client.Get(v.base.String()))

	v.await(ctx, "order-declined", "failed")
	v.await(ctx, "refund-7", "waiting")
	v.await(ctx, "refund-5", "paused")
	v.await(ctx, "refund-6", "cancelled")
	v.await(ctx, "booking-lisbon", "failed")
	v.await(ctx, "renewal-3", "paused")
	v.await(ctx, "catalogue", "completed")
	v.await(ctx, "report-now", "completed")
	for path, want := range map[string]string{
		"/": "the bank declined the card", "/runs?status=failed": "order-declined", "/queues": "the printer is out of paper", "/limits": "bank",
		"/schedules": "newsletter", "/workers": "worker-1", "/events": "refund-6", "/run?id=renewal-3": "v2", "/run?id=refund-7": "approve", "/run?id=catalogue": "page",
	} {
		if body := v.get(path); !strings.Contains(body, want) {
			t.Errorf("%s does not show %q:\n%s", path, want, body)
		}
	}

	retry := url.Values{"verb": {"retry"}, "run": {"order-declined"}, "reason": {"the bank has changed its mind"}}
	v.read(v.client.PostForm(v.address("/act"), retry))
	v.await(ctx, "order-declined", "completed")
	if body := v.get("/run?id=order-declined"); !strings.Contains(body, "the bank has changed its mind") {
		t.Errorf("the page of the retried run is %s", body)
	}
	stop()
	<-done
	v.client.CloseIdleConnections()
}
