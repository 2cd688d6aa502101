package main

import (
	"context"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// watch wraps a store, and measures how long the claims that return runs take.
type watch struct {
	durable.Store

	mu    sync.Mutex
	began time.Time // when the latest such claim began
	took  []time.Duration
}

// Claim implements store.Store.
func (w *watch) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	began := time.Now()
	claims, err := w.Store.Claim(ctx, q)
	if len(claims.Runs) > 0 {
		w.mu.Lock()
		w.began, w.took = began, append(w.took, time.Since(began))
		w.mu.Unlock()
	}
	return claims, err
}

// latest returns when the latest claim that returned runs began, and how long it took.
func (w *watch) latest() (began time.Time, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.took) == 0 {
		return w.began, 0
	}
	return w.began, w.took[len(w.took)-1]
}

// all returns the durations of the claims since the last call.
func (w *watch) all() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := w.took
	w.took = nil
	return took
}
