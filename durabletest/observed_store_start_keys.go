package durabletest

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// DueStartKeys implements store.Store.
func (s *observedStore) DueStartKeys(ctx context.Context, now time.Time, limit int) (due []store.StartKey, next time.Time, err error) {
	s.mu.Lock()
	s.startKeyQueries.latestBegun++
	number := s.startKeyQueries.latestBegun
	s.mu.Unlock()
	err = s.callUnlessDead(func() error {
		due, next, err = s.Store.DueStartKeys(ctx, now, limit)
		if len(due) > 0 || err != nil {
			s.writeCalls.Add(1) // the engine looks at them next
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && number > s.startKeyQueries.latestEnded {
			s.startKeyQueries.latestEnded, s.startKeyQueries.nextDue = number, next
		}
		return err
	})
	return due, next, err
}

// UpdateStartKeyRow implements store.Store.
func (s *observedStore) UpdateStartKeyRow(ctx context.Context, c *store.StartKeyChangeRequest) error {
	what := "a start with key " + c.Key.Key
	if c.SkipLocked {
		what = "a look at key " + c.Key.Key
	}
	return s.executeWrite(what, func() error { return s.Store.UpdateStartKeyRow(ctx, c) })
}

// startKeyQueryProgress returns the same as claimProgress, but for the queries for due start keys.
func (s *observedStore) startKeyQueryProgress() (begun, ended uint64, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startKeyQueries.latestBegun, s.startKeyQueries.latestEnded, s.startKeyQueries.nextDue
}
