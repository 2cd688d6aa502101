package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLedger checks that requests with the same key have one effect, and that a request with
// another key has another effect, which the ledger shows.
func TestLedger(t *testing.T) {
	l := newLedger()
	apply := func(path, key, want string, wrong error) {
		t.Helper()
		if got, err := l.apply(path, "o", key); got != want || !errors.Is(err, wrong) {
			t.Errorf("%s under %q: %q, %v: want %q, %v", path, key, got, err, want, wrong)
		}
	}
	apply(pathCharge, "k1", "charge-1", nil)
	apply(pathCharge, "k1", "charge-1", nil)
	apply(pathRefund, "k1", "", errReused)
	apply(pathCharge, "k2", "charge-2", nil)
	apply(pathRefund, "k3", "refund-3", nil)
	apply(pathRefund, "k3", "refund-3", nil)
	apply(pathCharge, "k1", "charge-1", nil) // the repeated request gets the first response
	apply(pathCharge, "k4", "", errVoid)
	apply(pathRelease, "k5", "", nil) // there is nothing to release
	apply(pathReserve, "k6", "", errVoid)
	a := l.account("o")
	for path, want := range map[string]int{pathCharge: 2, pathRefund: 1, pathReserve: 0, pathRelease: 0, pathShip: 0} {
		if len(a[path]) != want {
			t.Errorf("%d of %s, want %d", len(a[path]), path, want)
		}
	}
}

// serveStub serves a stub without workers. The function that it returns repeats a request until it
// succeeds.
func serveStub(t *testing.T) (*stub, func(ctx context.Context, worker, path, key string) error) {
	t.Helper()
	s := newStub(newLedger(), 1, func(string, string) {}, func(err error) { t.Error(err) })
	mux := http.NewServeMux()
	s.routes(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return s, func(ctx context.Context, worker, path, key string) error {
		for {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader(`{"Order":"o"}`))
			if err != nil {
				return err
			}
			r.Header.Set(keyHeader, key)
			r.Header.Set(workerHeader, worker)
			response, err := server.Client().Do(r)
			if err != nil {
				return err
			}
			response.Body.Close()
			if response.StatusCode < 300 {
				return nil
			}
		}
	}
}

// TestTrapHoldsARequest checks that the trap holds a request before or after its effect, and reports which
// worker sends the next request.
func TestTrapHoldsARequest(t *testing.T) {
	for name, lost := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			s, post := serveStub(t)
			trap := newTrap(plannedKill{order: "o", at: pathCharge, then: pathCharge, lost: lost})
			s.set(trap)
			ctx, kill := context.WithCancel(t.Context())
			answer := make(chan error, 1)
			go func() { answer <- post(ctx, "w1", pathCharge, "k") }()
			if v := <-trap.caught; v != (visit{"w1", "k"}) {
				t.Errorf("caught %+v", v)
			}
			if took := len(s.ledger.account("o")[pathCharge]) == 1; took != lost {
				t.Errorf("while it is held it took effect: %t", took)
			}
			kill()
			if err := <-answer; !errors.Is(err, context.Canceled) {
				t.Errorf("the held request was answered: %v", err)
			}
			if err := post(t.Context(), "w2", pathCharge, "k"); err != nil {
				t.Error(err)
			}
			if v := <-trap.back; v != (visit{"w2", "k"}) {
				t.Errorf("back came %+v", v)
			}
			if n := len(s.ledger.account("o")[pathCharge]); n != 1 {
				t.Errorf("charged %d times", n)
			}
		})
	}
}

// TestStubFailsAndRepeats checks that the shop sometimes fails, also after an effect, and that
// requests with one key have one effect.
func TestStubFailsAndRepeats(t *testing.T) {
	s, post := serveStub(t)
	const times = 40
	for range times {
		if err := post(t.Context(), "w", pathShip, "k"); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.ledger.account("o")[pathShip]); n != 1 {
		t.Errorf("shipped %d times", n)
	}
	if n := s.total(); n == times {
		t.Error("nothing failed")
	}
}
