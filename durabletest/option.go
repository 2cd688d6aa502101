package durabletest

import (
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Option changes NewWith, CrashEverywhere or Replay.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	store     store.Store
	start     time.Time
	real      bool
	changes   []func(*durable.Config)
	workflows []durable.Definition
	replacers []*Replacement
	signals   []signal
	varies    []string
}

type signal struct {
	after   time.Duration
	name    string
	payload any
}

func newSettings(opts []Option) *settings {
	s := &settings{start: time.Now()}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// On uses this database, such as Postgres(t), in place of a temporary file. NewWith only.
func On(s durable.Store) Option { return option(func(set *settings) { set.store = s }) }

// RealTime leaves the engine the database's clock. NewWith only.
func RealTime() Option { return option(func(set *settings) { set.real = true }) }

// At has the clock begin at t, in place of the present.
func At(t time.Time) Option { return option(func(set *settings) { set.start = t }) }

// Configure changes the engine's configuration. Leave Lease alone, unless in RealTime.
func Configure(change func(*durable.Config)) Option {
	return option(func(set *settings) { set.changes = append(set.changes, change) })
}

// With has the engine execute further workflows, such as those of children.
func With(workflows ...durable.Definition) Option {
	return option(func(set *settings) { set.workflows = append(set.workflows, workflows...) })
}

// SignalAfter sends a signal to the run when d has passed since its start, as seen by its
// clock, and nothing else is to be done at that time. CrashEverywhere only.
func SignalAfter(d time.Duration, name string, payload any) Option {
	return option(func(set *settings) { set.signals = append(set.signals, signal{d, name, payload}) })
}

// Varies names steps whose functions rightly answer something else each time, such as a
// new ID or the time. CrashEverywhere then goes on, everywhere, with what they answered the first
// time. Names are those of Stub.
func Varies(names ...string) Option {
	return option(func(set *settings) { set.varies = append(set.varies, names...) })
}
