package durabletest

import (
	"slices"
	"strings"
	"testing"
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
	each      func(testing.TB) durable.Store // nil: temporary files
	start     time.Time
	real      bool
	changes   []func(*durable.Config)
	workflows []durable.Definition
	replacers []*Replacement
	signals   []signal
	varies    []string
	limited   []limited // options that were given
	once      []string  // those of them that may be given once
}

// limited is an option that only some functions know.
type limited struct {
	option string
	to     []string
}

type signal struct {
	after   time.Duration
	name    string
	payload any
}

// newSettings takes the options of the function called of. One that is another's fails the test:
// it would do nothing.
func newSettings(t testing.TB, of string, opts []Option) *settings {
	t.Helper()
	s := &settings{start: time.Now()}
	for _, o := range opts {
		o.apply(s)
	}
	for _, l := range s.limited {
		if !slices.Contains(l.to, of) {
			t.Fatalf("durabletest: %s is an option of %s, and %s does nothing with it: leave it out", l.option, strings.Join(l.to, " and "), of)
		}
	}
	slices.Sort(s.once)
	for i, option := range s.once {
		if i > 0 && s.once[i-1] == option {
			t.Fatalf("durabletest: the option %s is given twice: leave one of them out", option)
		}
	}
	if s.real && slices.Contains(s.once, "At") {
		t.Fatalf("durabletest: the option At does nothing beside RealTime: leave one of them out")
	}
	return s
}

func (s *settings) limit(option string, to ...string) {
	s.limited = append(s.limited, limited{option, to})
}

// On uses this database, such as Postgres(t), in place of a temporary file. NewWith only.
func On(s durable.Store) Option {
	return option(func(set *settings) {
		set.store = s
		set.once = append(set.once, "On")
		set.limit("On", "NewWith")
	})
}

// OnEach has CrashEverywhere open a database for each execution of the workflow, in place of a temporary
// file. It is empty but for what open puts there, such as the tables that a Tx step writes to. What
// open registers with Cleanup is called when the execution has ended.
//
//	durabletest.CrashEverywhere(t, w, in, durabletest.OnEach(durabletest.Postgres))
func OnEach(open func(t testing.TB) durable.Store) Option {
	return option(func(set *settings) {
		set.each = open
		set.once = append(set.once, "OnEach")
		set.limit("OnEach", "CrashEverywhere")
	})
}

// RealTime leaves the engine the database's clock. NewWith only.
func RealTime() Option {
	return option(func(set *settings) {
		set.real = true
		set.limit("RealTime", "NewWith")
	})
}

// At has the clock begin at t, in place of the present.
func At(t time.Time) Option {
	return option(func(set *settings) {
		set.start = t
		set.once = append(set.once, "At")
	})
}

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
	return option(func(set *settings) {
		set.signals = append(set.signals, signal{d, name, payload})
		set.limit("SignalAfter", "CrashEverywhere")
	})
}

// Varies names steps whose functions rightly answer something else each time, such as a
// new ID or the time. CrashEverywhere then goes on, everywhere, with what they answered the first
// time. Names are those of Stub.
func Varies(names ...string) Option {
	return option(func(set *settings) {
		set.varies = append(set.varies, names...)
		set.limit("Varies", "CrashEverywhere")
	})
}
