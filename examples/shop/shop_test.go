package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/sqlite"
)

// newEngine starts an engine with the configuration of the service, and with a clock that the test moves.
func newEngine(t *testing.T) *durabletest.Engine {
	return durabletest.NewWithOptions(t, config().Workflows, durabletest.Configure(func(c *durable.Config) {
		c.QueueSettings = config().QueueSettings
	}))
}

func TestAnOrderIsChargedWhenItIsApproved(t *testing.T) {
	e := newEngine(t)
	api := handler(e.Engine)
	send := func(method, path, body string) (int, string) {
		reply := httptest.NewRecorder()
		api.ServeHTTP(reply, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
		return reply.Code, strings.TrimSpace(reply.Body.String())
	}
	const order = `{"customer": "ann", "cents": 12000}`
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"POST", "/orders/42", `{}`, http.StatusBadRequest, "send an order with a customer"},
		{"GET", "/orders/42", "", http.StatusNotFound, "there is no such order"},
		{"POST", "/orders/42", order, http.StatusAccepted, "accepted"},
		{"POST", "/orders/42", order, http.StatusAccepted, "accepted"}, // the same start
		{"POST", "/orders/42", `{"customer": "bob", "cents": 1}`, http.StatusConflict, "the order exists with other contents"},
		{"GET", "/orders/42", "", http.StatusOK, "in progress"},
		{"POST", "/orders/42/approval", "", http.StatusAccepted, "approved"},
		{"GET", "/orders/42", "", http.StatusOK, "charged ann 120.00"},
		{"GET", "/readyz", "", http.StatusOK, "ready"},
	} {
		if status, text := send(c.method, c.path, c.body); status != c.status || text != c.text {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, status, text, c.status, c.text)
		}
		e.Advance(0) // until all runs wait
	}
	e.AssertStepsCompleted("42", "reserve stock", "charge")
}

func TestAnOrderThatNobodyApproves(t *testing.T) {
	e := newEngine(t)
	got, err := checkout.Call(t.Context(), e.Engine, Order{"ann", 120_00}, durable.ID("42"), durable.GroupKey("ann"))
	if got != "not approved" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	e.AssertNotCalled("42", "charge")
}

func TestTheStockIsReleasedIfTheChargeFails(t *testing.T) {
	e := newEngine(t)
	charge := durabletest.FailFirst("charge", 5, errors.New("the bank is closed"))
	release := durabletest.Stub("release stock", func(context.Context) (any, error) { return nil, nil })
	e.Use(charge, release)
	_, err := checkout.Call(t.Context(), e.Engine, Order{"ann", 1}, durable.ID("42"))
	if failed := new(durable.RunError); !errors.As(err, &failed) || failed.Step != "charge" || release.CallCount() != 1 {
		t.Errorf("got %v, and released %d times", err, release.CallCount())
	}
}

func TestCheckoutSurvivesCrashes(t *testing.T) {
	durabletest.CrashEverywhere(t, checkout, Order{"ann", 120_00}, durabletest.SignalAfter(time.Hour, "approval", true))
}

// The embedded command knows the workflows: preflight replays the live runs with them.
func TestTheCommand(t *testing.T) {
	store, err := sqlite.Open(t.TempDir() + "/shop.db")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	engine, err := durable.New(store, config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkout.Start(t.Context(), engine, Order{"ann", 120_00}, durable.ID("42")); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := durablecli.Command(engine)
	cmd.SetArgs([]string{"preflight"})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	if code := durablecli.Execute(t.Context(), cmd); code != durablecli.ExitDone {
		t.Errorf("preflight exits with %d: %s", code, &out)
	}
}

// The service stops without an error when its context ends, and returns the error of an address at which it cannot listen.
func TestServe(t *testing.T) {
	for address, works := range map[string]bool{"localhost:0": true, "localhost:-1": false} {
		store, err := sqlite.Open(t.TempDir() + "/shop.db")
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		engine, err := durable.New(store, config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if works {
			stop()
		}
		if err := serve(ctx, engine, address); (err == nil) != works {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The page shows the code as it is.
func TestThePageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/service.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range []string{"config.go", "server.go", "main.go", "shop_test.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(b)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 4 {
		t.Errorf("the page has %d blocks", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(code.String(), block[1]) {
			t.Errorf("the example has no such code:\n%s", block[1])
		}
	}
}
