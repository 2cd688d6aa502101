package durabletest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// seam stands before a store, for one engine: it knows whether the engine works with the
// database, what it found due there, and ends its access as the death of its process
// would. Methods that are not here go straight to the store.
type seam struct {
	store.Store
	fault *fault // nil: there is none

	flying atomic.Int64  // calls under way
	writes atomic.Uint64 // calls that may have changed something

	mu     sync.Mutex
	begun  uint64 // claims
	ended  uint64 // the latest claim that has ended
	next   time.Time
	opened chan struct{} // closed by the first claim
}

func newSeam(s store.Store, f *fault) *seam {
	return &seam{Store: s, fault: f, opened: make(chan struct{})}
}

// Beneath implements engine.Probed.
func (s *seam) Beneath() store.Store { return s.Store }

// call lets one call through, unless the process is dead.
func (s *seam) call(do func() error) error {
	s.flying.Add(1)
	defer s.flying.Add(-1)
	if s.fault.dead() {
		return errCrashed
	}
	return do()
}

// change is call for what is a durable write, so a place for a crash.
func (s *seam) change(what string, do func() error) error {
	return s.call(func() error {
		defer s.writes.Add(1)
		return s.fault.write(what, do)
	})
}

// Commit implements store.Store.
func (s *seam) Commit(ctx context.Context, b *store.Batch) error {
	return s.change(describe(b), func() error {
		err := s.Store.Commit(ctx, b)
		if err == nil {
			s.fault.committed(b)
		}
		return err
	})
}

// Tag implements store.Store.
func (s *seam) Tag(ctx context.Context, run store.ID, tags []store.Tag, epoch store.Epoch) (found bool, err error) {
	err = s.change("tags", func() error {
		found, err = s.Store.Tag(ctx, run, tags, epoch)
		return err
	})
	return found, err
}

// Order implements store.Store.
func (s *seam) Control(ctx context.Context, o *store.Order) error {
	return s.change("an order", func() error { return s.Store.Control(ctx, o) })
}

// Claim implements store.Store.
func (s *seam) Claim(ctx context.Context, q store.ClaimQuery) (claims store.Claims, err error) {
	s.mu.Lock()
	s.begun++
	number := s.begun
	if number == 1 {
		close(s.opened)
	}
	s.mu.Unlock()
	err = s.call(func() error {
		claims, err = s.Store.Claim(ctx, q)
		if len(claims.Runs) > 0 || err != nil {
			s.writes.Add(1)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && number > s.ended {
			s.ended, s.next = number, claims.Next
		}
		return err
	})
	return claims, err
}

// Renew implements store.Store.
func (s *seam) Renew(ctx context.Context, h store.Heartbeat) (pulse store.RenewResult, err error) {
	err = s.call(func() error {
		pulse, err = s.Store.Renew(ctx, h)
		return err
	})
	return pulse, err
}

// Expire implements store.Store.
func (s *seam) Expire(ctx context.Context, workers []store.ID, q store.ClaimQuery) (n int, err error) {
	err = s.call(func() error {
		s.writes.Add(1)
		n, err = s.Store.Expire(ctx, workers, q)
		return err
	})
	return n, err
}

// Notifications implements store.Store.
func (s *seam) Notifications(ctx context.Context, worker store.ID, held []store.Lease) (news store.Notifications, err error) {
	err = s.call(func() error {
		news, err = s.Store.Notifications(ctx, worker, held)
		return err
	})
	return news, err
}

// Get implements store.Store.
func (s *seam) Get(ctx context.Context, refs []store.Ref) (runs []*store.Run, err error) {
	err = s.call(func() error {
		runs, err = s.Store.Get(ctx, refs)
		return err
	})
	return runs, err
}

// Find implements store.Store.
func (s *seam) Find(ctx context.Context, refs []store.Ref, with store.Payloads) (runs []*store.Run, err error) {
	err = s.call(func() error {
		runs, err = s.Store.Find(ctx, refs, with)
		return err
	})
	return runs, err
}

// Statuses implements store.Store.
func (s *seam) Statuses(ctx context.Context, runs []store.ID) (statuses []store.Status, err error) {
	err = s.call(func() error {
		statuses, err = s.Store.Statuses(ctx, runs)
		return err
	})
	return statuses, err
}

// History implements store.Store.
func (s *seam) History(ctx context.Context, run store.ID) (steps []store.Step, err error) {
	err = s.call(func() error {
		steps, err = s.Store.History(ctx, run)
		return err
	})
	return steps, err
}

// Dead implements store.Store. Looking for the dead is nothing to wait for.
func (s *seam) Dead(ctx context.Context, self store.ID) ([]store.ID, error) {
	if s.fault.dead() {
		return nil, errCrashed
	}
	return s.Store.Dead(ctx, self)
}

// Attend implements store.Store. It lasts as long as the engine works.
func (s *seam) Listen(ctx context.Context, worker store.ID, hear func(store.Hint)) error {
	if s.fault.dead() {
		return errCrashed
	}
	return s.Store.Listen(ctx, worker, hear)
}

// claims answers the number of the latest claim that has begun and of the latest that has
// ended, and when, by that, the next run is due.
func (s *seam) claims() (begun, ended uint64, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun, s.ended, s.next
}
