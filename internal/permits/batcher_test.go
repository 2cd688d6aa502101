package permits

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
)

// An ask whose caller is gone is not sent: it would be granted after the caller has given its permit back.
func TestAskOfALostCallerIsDropped(t *testing.T) {
	p := NewBatcher(Config{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	a := &store.PermitRequest{Limit: "l", Step: "s", Attempt: 1}
	if err := p.Request(ctx, new(WaitingStep), a); err == nil {
		t.Fatal("the ask ends with its caller")
	}
	p.Return(t.Context(), a)
	requests, returns, _ := p.takePending()
	if len(requests) != 0 || len(returns) != 1 {
		t.Errorf("%d requests and %d returns, want only the return", len(requests), len(returns))
	}
}

// failingGrants is a store whose first calls of Permits fail.
type failingGrants struct {
	Store
	failures []error
}

func (f *failingGrants) GrantAndReturnPermits(context.Context, *store.PermitBatch) error {
	if len(f.failures) == 0 {
		return nil
	}
	err := f.failures[0]
	f.failures = f.failures[1:]
	return err
}

// A line that is due is looked at again if the call that should have looked at it fails.
func TestLinesOfAFailedCallAreLookedAtAgain(t *testing.T) {
	many := make([]store.LimitKey, maxLimitKeysPerCall+1)
	for i := range many {
		many[i].Key = string(rune('a' + i))
	}
	for what, c := range map[string]struct {
		due      []store.LimitKey
		failures []error
		left     int
	}{
		"the database is away":           {many[:2], []error{store.ErrUnavailable}, 2},
		"the database rejects the call":  {many[:2], []error{store.ErrRejected}, 2},
		"the first of two calls fails":   {many, []error{store.ErrUnavailable}, len(many)},
		"the second of two calls fails":  {many, []error{nil, store.ErrUnavailable}, 1},
		"both calls look at their lines": {many, nil, 0},
	} {
		s := &failingGrants{failures: c.failures}
		estimate := new(clock.Estimate)
		estimate.AddReading(time.Now(), time.Now())
		p := NewBatcher(Config{
			Store: s, Clock: estimate,
			OrderedVersion: func() string { return "" },
			WorkerStarted:  func(now time.Time) time.Time { return now },
		})
		now := estimate.Now()
		p.scheduleLimitKeyChecksNow(c.due, now)
		if _, err := p.sendBatch(t.Context(), p.takeDueLimitKeys(now)); (err == nil) != (c.left == 0) {
			t.Errorf("%s: the error is %v", what, err)
		}
		if left := p.takeDueLimitKeys(now.Add(time.Hour)); len(left) != c.left {
			t.Errorf("%s: %d lines are to be looked at again, want %d", what, len(left), c.left)
		}
	}
}
