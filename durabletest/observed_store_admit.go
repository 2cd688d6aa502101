package durabletest

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// AdmitRuns implements store.Store. If another engine of the test has locked the queue, AdmitRuns waits for the lock. Otherwise the engine
// would try again at a later time, and the clock would move to that time.
func (s *observedStore) AdmitRuns(ctx context.Context, a *store.AdmissionRequest) error {
	return s.callUnlessDead(func() error {
		for {
			err := s.Store.AdmitRuns(ctx, a)
			if err == nil && a.QueueLocked && ctx.Err() == nil {
				time.Sleep(minPollInterval)
				continue
			}
			if err != nil || a.AdmittedCount > 0 {
				s.writeCalls.Add(1)
			}
			return err
		}
	})
}
