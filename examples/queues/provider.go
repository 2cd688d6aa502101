package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

const (
	pathPay    = "/pay"
	pathTick   = "/tick"
	pathCounts = "/counts"

	fastest = 20 * time.Millisecond // shortest time that the provider takes for a payment
	slowest = 80 * time.Millisecond
	soon    = 5 * time.Second
)

// counts is what the provider has counted.
type counts struct {
	Requests      int
	MaxConcurrent int
	MaxPerSecond  int           // requests that arrived in any second
	MaxSent       int           // requests that workers sent in any second
	Jitter        time.Duration // the longest time from sending to arrival
	KeyOverlaps   int           // requests that began while another of the same customer was in progress
	ChargedTwice  int           // orders that were charged under two keys
	Charged       int
	Fires         int // scheduled times
	Doubled       int // of which two runs have told
	Missed        int // between the first and the last
	FirstTick     time.Time
	LastTick      time.Time
}

// ledger counts the requests to the provider.
type ledger struct {
	mu        sync.Mutex
	active    int
	customers map[string]int      // requests in progress
	charges   map[string][]string // keys under which each order was charged
	arrived   []time.Time         // one for each request
	sent      []time.Time
	ticks     map[time.Time][]string
	counts    counts
}

func newLedger() *ledger {
	return &ledger{customers: make(map[string]int), charges: make(map[string][]string), ticks: make(map[time.Time][]string)}
}

// begin counts a request of a customer. end is called when it has ended.
func (l *ledger) begin(customer string, sent, arrived time.Time) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active++
	l.counts.Requests++
	l.counts.MaxConcurrent = max(l.counts.MaxConcurrent, l.active)
	if l.customers[customer] > 0 {
		l.counts.KeyOverlaps++
	}
	l.customers[customer]++
	l.sent, l.arrived = append(l.sent, sent), append(l.arrived, arrived)
	l.counts.Jitter = max(l.counts.Jitter, arrived.Sub(sent))
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.active--
		l.customers[customer]--
	}
}

// charge charges an order under a key, at most once.
func (l *ledger) charge(order, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.charges[order], key) {
		l.charges[order] = append(l.charges[order], key)
	}
}

func (l *ledger) tick(at time.Time, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = at.UTC()
	if !slices.Contains(l.ticks[at], run) {
		l.ticks[at] = append(l.ticks[at], run)
	}
}

// count returns what was counted.
func (l *ledger) count() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.Charged = len(l.charges)
	for _, keys := range l.charges {
		if len(keys) > 1 {
			c.ChargedTwice++
		}
	}
	c.MaxPerSecond, c.MaxSent = mostInASecond(l.arrived), mostInASecond(l.sent)
	c.Fires = len(l.ticks)
	var at []time.Time
	for t, runs := range l.ticks {
		if at = append(at, t); len(runs) > 1 {
			c.Doubled++
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	if len(at) > 0 {
		c.FirstTick, c.LastTick = at[0], at[len(at)-1]
	}
	for i := 1; i < len(at); i++ {
		c.Missed += int(at[i].Sub(at[i-1])/time.Second) - 1
	}
	return c
}

// mostInASecond returns how many of the times are in one second at most. It sorts them.
func mostInASecond(times []time.Time) (most int) {
	slices.SortFunc(times, time.Time.Compare)
	for first, last := 0, 0; last < len(times); last++ {
		for times[last].Sub(times[first]) >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// routes adds the handlers of the provider to a server.
func (l *ledger) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST "+pathPay, func(w http.ResponseWriter, r *http.Request) {
		var p payment
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer l.begin(p.Customer, p.Sent, time.Now())()
		select {
		case <-time.After(fastest + rand.N(slowest-fastest)):
		case <-r.Context().Done(): // the worker was killed
			return
		}
		l.charge(p.Order, p.Key)
		fmt.Fprintf(w, "receipt for %s", p.Order)
	})
	mux.HandleFunc("POST "+pathTick, func(w http.ResponseWriter, r *http.Request) {
		var t tick
		if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.tick(t.At, t.Run)
	})
	mux.HandleFunc("GET "+pathCounts, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(l.count()) // the parent sees an incomplete response
	})
}

// provide is the main function of the provider's process. It prints its URL.
func provide(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	newLedger().routes(mux)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: soon}
	ctx, stop := fleet.UntilParentEnds(ctx)
	defer stop()
	closed := make(chan error, 1)
	go func() {
		<-ctx.Done()
		closed <- server.Close()
	}()
	fmt.Printf("http://%s\n", listener.Addr())
	err = server.Serve(listener)
	stop()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, <-closed)
}
