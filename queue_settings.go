package durable

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// QueueSettings are the bounds of a queue, over all workers. A field that is zero sets no bound. See [Engine.SetQueue].
type QueueSettings struct {
	// MaxExecuting is the largest number of runs that execute at once. A run that waits in [Ctx.Sleep], [Ctx.Receive] or
	// [Ctx.Child] does not count towards MaxExecuting once it is unloaded from memory.
	MaxExecuting int
	// MaxExecutingPerWorker is the largest number of runs that execute at once in one worker. A cancelled or expired run that
	// executes only in order to end does not count towards MaxExecutingPerWorker.
	MaxExecutingPerWorker int
	// MaxInProgress is the largest number of root runs that have begun and not ended, including runs that wait, are paused or
	// are held. Children and their descendants do not count towards MaxInProgress. If a queue that has runs gets a MaxInProgress
	// or a MaxInProgressPerKey, no root run of the queue begins until the runs that have begun before are counted.
	MaxInProgress int
	// MaxExecutingPerKey and MaxInProgressPerKey bound the runs of each [GroupKey] as MaxExecuting and MaxInProgress bound the
	// runs of the queue. With a MaxInProgressPerKey of 1, the runs of a key are executed one after the other: runs with a
	// higher priority first, and runs of one priority in the order in which they became due.
	MaxExecutingPerKey  int
	MaxInProgressPerKey int
	// Rate bounds how many runs begin in a period. RatePerKey bounds how many runs of each GroupKey begin in a period. Rate and
	// RatePerKey do not bound runs that have begun and continue after a wait.
	Rate       QueueRate
	RatePerKey QueueRate
	// Depth is how many runs may wait in the queue. Runs that have not begun count towards Depth, including runs that are
	// delayed, debounced or wait for their [Singleton] key. Runs that have begun and wait for their turn to continue count
	// towards Depth, too. Runs that sleep, or wait for a signal or a child, do not count towards Depth. Depth counts the runs
	// of all priorities and group keys together. A start of a root run that would exceed the Depth returns [ErrQueueFull].
	// Depth considers only committed starts, so that concurrent starts may exceed the Depth. Children and the runs of schedules
	// count towards Depth, but are never refused.
	Depth int
	// Closed makes starts of root runs in the queue return [ErrQueueClosed]. A closed queue does not refuse children and the
	// runs of schedules, and its waiting runs are executed.
	Closed bool
}

// QueueRate bounds how many runs begin: in any half-open window of length w at most Count*w/Period, plus Burst. The rate counts
// a run at the time, by the database's clock, from which workers may claim the run. While no worker has a free slot, the queue
// saves up no starts, so that no more runs than usual begin when a slot becomes free. A worker may claim a run up to a second
// later, so that in a window of length w at most Count*(w+1s)/Period, plus Burst, runs are claimed. After a failover or a
// restore of the database, no run begins for the longest of Config.Lease, Period, and Burst*Period/Count.
type QueueRate struct {
	Count  int
	Period time.Duration // the period of Count, rounded down to whole microseconds
	Burst  int           // the largest number of runs that begin at one moment; zero means 1
}

// check returns ErrInvalidConfig with the name of the field and the fix.
func (s QueueSettings) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"MaxExecuting", s.MaxExecuting}, {"MaxExecutingPerWorker", s.MaxExecutingPerWorker}, {"MaxInProgress", s.MaxInProgress}, {"MaxExecutingPerKey", s.MaxExecutingPerKey}, {"MaxInProgressPerKey", s.MaxInProgressPerKey}, {"Depth", s.Depth},
	} {
		if f.value < 0 || f.value > math.MaxInt32 {
			return fmt.Errorf("%w: %s is %d: it must be from 1 to %d, or zero for no bound", ErrInvalidConfig, f.name, f.value, math.MaxInt32)
		}
	}
	if err := s.Rate.check("Rate"); err != nil {
		return err
	}
	return s.RatePerKey.check("RatePerKey")
}

func (r QueueRate) check(name string) error {
	for field, value := range map[string]int{"Count": r.Count, "Burst": r.Burst} {
		if value < 0 || value > math.MaxInt32 {
			return fmt.Errorf("%w: %s.%s is %d: it must be from 0 to %d", ErrInvalidConfig, name, field, value, math.MaxInt32)
		}
	}
	switch {
	case r.Count > 0 && r.Period < time.Microsecond:
		return fmt.Errorf("%w: %s.Period is %v: a rate needs a period of at least a microsecond", ErrInvalidConfig, name, r.Period)
	case r.Count == 0 && (r.Period != 0 || r.Burst != 0):
		return fmt.Errorf("%w: %s has the Period %v and the Burst %d without a Count: set Count, or leave them out", ErrInvalidConfig, name, r.Period, r.Burst)
	case r.Count > 0 && float64(r.Period)/float64(r.Count)*float64(max(1, r.Burst)) > float64(maxBurstTime):
		return fmt.Errorf("%w: a %s of %d per %v takes more than a year to let a Burst of %d begin: lower the Burst or raise the Count", ErrInvalidConfig, name, r.Count, r.Period, max(1, r.Burst))
	}
	return nil
}

func (r QueueRate) toStore() store.Rate {
	s := store.Rate{Count: r.Count, Period: r.Period.Truncate(time.Microsecond), Burst: r.Burst}
	if s.Count > 0 {
		s.Burst = max(1, s.Burst)
	}
	return s
}

func (s QueueSettings) toStore() store.QueueSettings {
	return store.QueueSettings{
		MaxExecuting: s.MaxExecuting, MaxExecutingPerWorker: s.MaxExecutingPerWorker, MaxInProgress: s.MaxInProgress, MaxExecutingPerKey: s.MaxExecutingPerKey, MaxInProgressPerKey: s.MaxInProgressPerKey,
		Rate: s.Rate.toStore(), RatePerKey: s.RatePerKey.toStore(), Depth: s.Depth, Closed: s.Closed,
	}
}

func newQueueSettings(s store.QueueSettings) QueueSettings {
	return QueueSettings{
		MaxExecuting: s.MaxExecuting, MaxExecutingPerWorker: s.MaxExecutingPerWorker, MaxInProgress: s.MaxInProgress, MaxExecutingPerKey: s.MaxExecutingPerKey, MaxInProgressPerKey: s.MaxInProgressPerKey,
		Rate: QueueRate(s.Rate), RatePerKey: QueueRate(s.RatePerKey), Depth: s.Depth, Closed: s.Closed,
	}
}

// declaredQueues checks Config.QueueSettings.
func declaredQueues(cfg *Config) ([]engine.DeclaredQueue, error) {
	var all []engine.DeclaredQueue
	for _, name := range slices.Sorted(maps.Keys(cfg.QueueSettings)) {
		settings := cfg.QueueSettings[name]
		err := naming.Check("queue", name)
		if err == nil {
			err = settings.check()
		}
		if err != nil {
			return nil, fmt.Errorf("Config.QueueSettings[%q]: %w", name, err)
		}
		all = append(all, engine.DeclaredQueue{Name: name, Settings: settings.toStore()})
	}
	return all, nil
}
