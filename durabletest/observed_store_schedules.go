package durabletest

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// queryProgress tells what the engine's queries for due schedules have returned.
type queryProgress struct {
	latestBegun uint64 // number of the latest query that has begun
	latestEnded uint64 // number of the latest query that has ended
	nextDue     time.Time
}

// DueSchedules implements store.Store.
func (s *observedStore) DueSchedules(ctx context.Context, now time.Time, limit int) (due []string, next time.Time, err error) {
	s.mu.Lock()
	s.scheduleQueries.latestBegun++
	number := s.scheduleQueries.latestBegun
	s.mu.Unlock()
	err = s.callUnlessDead(func() error {
		due, next, err = s.Store.DueSchedules(ctx, now, limit)
		if len(due) > 0 || err != nil {
			s.writeCalls.Add(1) // the engine fires them next
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && number > s.scheduleQueries.latestEnded {
			s.scheduleQueries.latestEnded, s.scheduleQueries.nextDue = number, next
		}
		return err
	})
	return due, next, err
}

// ChangeSchedule implements store.Store.
func (s *observedStore) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	return s.executeWrite("a change of schedule "+u.Name, func() error { return s.Store.ChangeSchedule(ctx, u) })
}

// scheduleQueryProgress returns the same as claimProgress, but for the queries for due schedules.
func (s *observedStore) scheduleQueryProgress() (begun, ended uint64, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scheduleQueries.latestBegun, s.scheduleQueries.latestEnded, s.scheduleQueries.nextDue
}

// dueTimes returns when, according to the latest queries, the next run, schedule and key of a start are due.
func (s *observedStore) dueTimes() (due []time.Time) {
	_, _, run := s.claimProgress()
	_, _, schedule := s.scheduleQueryProgress()
	_, _, fold := s.startKeyQueryProgress()
	for _, at := range []time.Time{run, schedule, fold} {
		if !at.IsZero() {
			due = append(due, at)
		}
	}
	return due
}
