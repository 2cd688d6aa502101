package durabletest

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// DueFolds implements store.Store.
func (s *observedStore) DueFolds(ctx context.Context, now time.Time, limit int) (due []store.FoldKey, next time.Time, err error) {
	s.mu.Lock()
	s.startKeyQueries.latestBegun++
	number := s.startKeyQueries.latestBegun
	s.mu.Unlock()
	err = s.callUnlessDead(func() error {
		due, next, err = s.Store.DueFolds(ctx, now, limit)
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

// ChangeFold implements store.Store.
func (s *observedStore) ChangeFold(ctx context.Context, c *store.FoldChangeRequest) error {
	what := "a start with key " + c.Key.Key
	if c.SkipLocked {
		what = "a look at key " + c.Key.Key
	}
	return s.executeWrite(what, func() error { return s.Store.ChangeFold(ctx, c) })
}

// foldState returns what claimState returns, of the queries for due keys.
func (s *observedStore) foldState() (begun, ended uint64, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startKeyQueries.latestBegun, s.startKeyQueries.latestEnded, s.startKeyQueries.nextDue
}
