package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	pathApprove = "/approve"
	quickest    = 10 * time.Millisecond // the shortest time in which a human decides
	longest     = 200 * time.Millisecond
)

// desk is where humans decide on orders. A question arrives by POST /ask with the token of the
// run's wait. Some time later, the decision is sent by POST /approve.
type desk struct {
	ctx      context.Context // ends the goroutines of the humans
	engine   *durable.Engine // a client
	operator *operator
	orders   map[string]*order
	seed     uint64
	url      string // URL of the server that has the desk's routes
	fail     func(error)
	absent   chan string // the token of an order on which no human decides

	mu     sync.Mutex
	tokens map[string]string // by order
	humans sync.WaitGroup
}

func newDesk(ctx context.Context, engine *durable.Engine, orders []*order, seed uint64, url string, fail func(error)) *desk {
	d := &desk{
		ctx: ctx, engine: engine, orders: make(map[string]*order), seed: seed, url: url, fail: fail,
		absent: make(chan string, 1), tokens: make(map[string]string),
	}
	for _, o := range orders {
		d.orders[o.ID] = o
	}
	return d
}

// ask accepts a question. A question can arrive several times, always with the same token.
func (d *desk) ask(id, token string) {
	d.mu.Lock()
	before, again := d.tokens[id]
	d.tokens[id] = token
	d.mu.Unlock()
	o := d.orders[id]
	switch {
	case o == nil || again && before != token:
		d.fail(fmt.Errorf("the token of %q was %q, and now it is %q", id, before, token))
	case again:
	case o.absent:
		d.absent <- token
	default:
		d.humans.Go(func() {
			if err := d.decide(o, token); err != nil {
				d.fail(fmt.Errorf("decide on %s: %w", id, err))
			}
		})
	}
}

// decide is the goroutine of one human, who decides on an order or cancels it for the customer.
func (d *desk) decide(o *order, token string) error {
	chance := rand.New(rand.NewPCG(d.seed, uint64(o.Cents)))
	if !pause(d.ctx, quickest+time.Duration(chance.Int64N(int64(longest-quickest)))) {
		return nil
	}
	if o.fate == withdrawn && !o.regret {
		return d.operator.withdraw(d.ctx, o.ID)
	}
	answer := func() error { return d.answer(token, Decision{Approved: o.fate != refused, By: "alice"}) }
	var err error
	if o.held {
		err = d.operator.hold(d.ctx, o.ID, answer)
	} else {
		err = answer()
	}
	if err != nil || !o.contrary {
		return err
	}
	var refusal *refusal
	err = d.answer(token, Decision{Approved: o.fate == refused, By: "bob"})
	if !errors.As(err, &refusal) || refusal.status != http.StatusConflict {
		return fmt.Errorf("a second answer, and another one, is not refused: %w", err)
	}
	return nil
}

// answer posts a decision to /approve.
func (d *desk) answer(token string, decision Decision) error {
	b, err := json.Marshal(struct {
		Token string
		Decision
	}{token, decision})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(d.ctx, http.MethodPost, d.url+pathApprove, bytes.NewReader(b))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = &refusal{response.StatusCode, string(text)}
	}
	return err
}

// approve is the handler of POST /approve. Whoever has the token may decide.
func (d *desk) approve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Token string
		Decision
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch err := d.engine.Complete(r.Context(), q.Token, q.Decision); {
	case errors.Is(err, durable.ErrIDConflict), errors.Is(err, durable.ErrState):
		http.Error(w, err.Error(), http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// pause waits for d, and reports false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
