package durabletest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Option changes NewWithOptions, CrashEverywhere or Replay.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

type settings struct {
	store        store.Store
	openStore    func(testing.TB) durable.Store // nil: temporary files
	startTime    time.Time
	realTime     bool
	configure    []func(*durable.Config)
	workflows    []durable.Definition
	replacements []*Replacement
	signals      []delayedSignal
	varyingSteps []string
	restricted   []restrictedOption // options that were given
	givenOnce    []string           // those of them that may be given once
}

// restrictedOption is an option that only some functions know.
type restrictedOption struct {
	option    string
	allowedIn []string
}

type delayedSignal struct {
	after   time.Duration
	name    string
	payload any
}

// newSettings takes the options of the function called of. One that is another's fails the test:
// it would do nothing.
func newSettings(t testing.TB, of string, opts []Option) *settings {
	t.Helper()
	s := &settings{startTime: time.Now()}
	for _, o := range opts {
		o.apply(s)
	}
	for _, l := range s.restricted {
		if !slices.Contains(l.allowedIn, of) {
			t.Fatalf("durabletest: %s is an option of %s, and %s does nothing with it: leave it out", l.option, strings.Join(l.allowedIn, " and "), of)
		}
	}
	slices.Sort(s.givenOnce)
	for i, option := range s.givenOnce {
		if i > 0 && s.givenOnce[i-1] == option {
			t.Fatalf("durabletest: the option %s is given twice: leave one of them out", option)
		}
	}
	if s.realTime && slices.Contains(s.givenOnce, "StartClockAt") {
		t.Fatalf("durabletest: the option StartClockAt does nothing beside RealTime: leave one of them out")
	}
	return s
}

func (s *settings) restrict(option string, to ...string) {
	s.restricted = append(s.restricted, restrictedOption{option, to})
}

// OnStore uses this database, such as Postgres(t), in place of a temporary file. NewWithOptions only.
func OnStore(s durable.Store) Option {
	return option(func(set *settings) {
		set.store = s
		set.givenOnce = append(set.givenOnce, "OnStore")
		set.restrict("OnStore", "NewWithOptions")
	})
}

// OnNewStores has CrashEverywhere open a database for each execution of the workflow, in place of a temporary
// file. It is empty but for what open puts there, such as the tables that a Tx step writes to. What
// open registers with Cleanup is called when the execution has ended.
//
//	durabletest.CrashEverywhere(t, w, in, durabletest.OnNewStores(durabletest.Postgres))
func OnNewStores(open func(t testing.TB) durable.Store) Option {
	return option(func(set *settings) {
		set.openStore = open
		set.givenOnce = append(set.givenOnce, "OnNewStores")
		set.restrict("OnNewStores", "CrashEverywhere")
	})
}

// RealTime leaves the engine the database's clock. NewWithOptions only.
func RealTime() Option {
	return option(func(set *settings) {
		set.realTime = true
		set.restrict("RealTime", "NewWithOptions")
	})
}

// StartClockAt has the clock begin at t, in place of the present.
func StartClockAt(t time.Time) Option {
	return option(func(set *settings) {
		set.startTime = t
		set.givenOnce = append(set.givenOnce, "StartClockAt")
	})
}

// Configure changes the engine's configuration. Leave Lease alone, unless in RealTime.
func Configure(change func(*durable.Config)) Option {
	return option(func(set *settings) { set.configure = append(set.configure, change) })
}

// Workflows has the engine execute further workflows, such as those of children.
func Workflows(workflows ...durable.Definition) Option {
	return option(func(set *settings) { set.workflows = append(set.workflows, workflows...) })
}

// SignalAfter sends a signal to the run when d has passed since its start, as seen by its
// clock, and nothing else is to be done at that time. CrashEverywhere only.
func SignalAfter(d time.Duration, name string, payload any) Option {
	return option(func(set *settings) {
		set.signals = append(set.signals, delayedSignal{d, name, payload})
		set.restrict("SignalAfter", "CrashEverywhere")
	})
}

// VaryingSteps names steps whose functions rightly answer something else each time, such as a
// new ID or the time. CrashEverywhere then goes on, everywhere, with what they answered the first
// time. Names are those of Stub.
func VaryingSteps(names ...string) Option {
	return option(func(set *settings) {
		set.varyingSteps = append(set.varyingSteps, names...)
		set.restrict("VaryingSteps", "CrashEverywhere")
	})
}
