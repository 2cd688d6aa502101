package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	slowest   = 12 * time.Millisecond // longest response time of the shop
	oneFailed = 8                     // one of so many requests fails with status 500
)

// stub is the shop as an HTTP server. It is slow, fails sometimes, and is idempotent by the header
// Idempotency-Key.
type stub struct {
	ledger *ledger
	seed   uint64
	ask    func(order, token string) // passes a question to the desk
	fail   func(error)               // called when a worker sends a request that no worker may send

	mu       sync.Mutex
	trap     *trap
	requests map[string]int // number of requests, by order
	tries    map[string]int // number of requests, by path and order
}

func newStub(l *ledger, seed uint64, ask func(order, token string), fail func(error)) *stub {
	return &stub{ledger: l, seed: seed, ask: ask, fail: fail, requests: make(map[string]int), tries: make(map[string]int)}
}

// routes adds the handlers of the shop's requests to a server.
func (s *stub) routes(mux *http.ServeMux) {
	for _, path := range []string{pathCharge, pathRefund, pathReserve, pathRelease, pathShip} {
		mux.HandleFunc("POST "+path, s.serve(func(q request, key string) (string, error) {
			return s.ledger.apply(path, q.Order, key)
		}))
	}
	mux.HandleFunc("POST "+pathAsk, s.serve(func(q request, _ string) (string, error) {
		s.ask(q.Order, q.Token)
		return "", nil
	}))
}

// serve returns the handler of a request. effect executes the request, and returns the number of
// the receipt.
func (s *stub) serve(effect func(q request, key string) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q request
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &q)
		}
		v := visit{r.Header.Get(workerHeader), r.Header.Get(keyHeader)}
		if err != nil || v.key == "" {
			s.fail(fmt.Errorf("a request to %s has key %q and body %q: %v", r.URL.Path, v.key, body, err))
			http.Error(w, "a request needs a key and a body", http.StatusBadRequest)
			return
		}
		trap, chance := s.enter(r.URL.Path, q.Order, v)
		if trap != nil && !trap.lost {
			trap.hold(r.Context())
			return
		}
		time.Sleep(time.Duration(chance.Int64N(int64(slowest))))
		fails, late := chance.IntN(oneFailed) == 0, chance.IntN(2) == 0
		if fails && !late && trap == nil {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return
		}
		number, err := effect(q, v.key)
		switch {
		case errors.Is(err, errReused):
			s.fail(fmt.Errorf("%s of %s under key %q: %w", r.URL.Path, q.Order, v.key, err))
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		case err != nil:
			http.Error(w, err.Error(), http.StatusConflict)
		case trap != nil:
			trap.hold(r.Context())
		case fails:
			http.Error(w, "out of order, after it was done", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, number) // a worker that was killed does not get the response, and another repeats the request
		}
	}
}

// enter counts a request. It returns the trap if that holds the request, and a random source that
// depends only on the seed, the path, the order and the number of tries.
func (s *stub) enter(path, order string, v visit) (*trap, *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[order]++
	s.tries[path+order]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s %d", path, order, s.tries[path+order])
	chance := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	if s.trap != nil && s.trap.holdsRequest(path, order, v) {
		return s.trap, chance
	}
	return nil, chance
}

// set replaces the trap; nil removes it.
func (s *stub) set(t *trap) {
	s.mu.Lock()
	s.trap = t
	s.mu.Unlock()
}

// counts returns the number of requests for each order.
func (s *stub) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests)
}

// total returns the number of all requests.
func (s *stub) total() (n int) {
	for _, of := range s.counts() {
		n += of
	}
	return n
}
