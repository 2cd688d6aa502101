package queues

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
)

// passRecorder is a store that records the passes over queues, and sets their results.
type passRecorder struct {
	mu     sync.Mutex // a pass may begin by a timer, which synctest.Wait does not order after the test's last reading
	passes []store.AdmissionRequest
	result func(a *store.AdmissionRequest)
}

func (s *passRecorder) AdmitRuns(_ context.Context, a *store.AdmissionRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes = append(s.passes, *a)
	s.result(a)
	return nil
}

// A queue gets a pass when a run has left it, more passes while there is work, and another one when its lock may be free. A queue without
// settings gets none.
func TestQueuesGetAPassWhenARunHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		estimate := new(clock.Estimate)
		estimate.AddReading(time.Now(), time.Now())
		s := &passRecorder{result: func(*store.AdmissionRequest) {}}
		hints := 0
		a := NewAdmitter(AdmitterConfig{
			Rows: NewRowCache(new(oneQueue)), Store: s, Clock: estimate, LogFailure: func(string, error, ...any) {}, Lease: time.Minute,
			PollInterval: func(d time.Duration) time.Duration { return d },
			HintClaim:    func() {}, HintClaimOfAdmitted: func() { hints++ }, StopIfFatal: func(error) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.Loop(ctx)
		expect := func(when string, passes int, certain bool) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.passes) != passes {
				t.Fatalf("%s: %d passes, want %d", when, len(s.passes), passes)
			}
			if last := s.passes[passes-1]; last.Queue != "q" || last.WorkIsCertain != certain {
				t.Errorf("%s: the last pass is %+v", when, last)
			}
		}
		expect("the loop begins", 1, false)
		a.NoteRunLeftQueue("other")
		expect("a run has left a queue without settings", 1, false)
		s.result = func(p *store.AdmissionRequest) { p.AdmittedCount, p.HasMoreWork = 1, len(s.passes) == 2 }
		a.NoteRunLeftQueue("q")
		expect("a run has left the queue, and there is more work", 3, true)
		if hints != 2 {
			t.Errorf("%d hints that runs were admitted, want one for each pass", hints)
		}
		s.result = func(p *store.AdmissionRequest) { p.QueueLocked = len(s.passes) == 4 }
		a.NoteRunLeftQueue("q")
		expect("another process has locked the queue", 4, true)
		time.Sleep(lockedQueueRecheckDelay + time.Millisecond)
		expect("the lock may be free", 5, false)
	})
}
