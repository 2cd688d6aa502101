package durabletest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Option is an option of [NewWithOptions], [CrashEverywhere] or [Replay]. An Option fails the test if it is passed to a
// function on which the Option has no effect.
type Option interface{ applyToSettings(*testSettings) }

type optionFunc func(*testSettings)

func (o optionFunc) applyToSettings(s *testSettings) { o(s) }

type testSettings struct {
	store             store.Store
	openStore         func(testing.TB) durable.Store // nil: temporary SQLite files
	startTime         time.Time
	usesRealTime      bool
	configFuncs       []func(*durable.Config)
	workflows         []durable.Definition
	replacements      []*Replacement
	signals           []delayedSignal
	varyingSteps      []string
	restrictedOptions []restrictedOption // the given options that only some functions accept
	onceOptions       []string           // the given options that may be given only once
}

// restrictedOption is an option that only some functions accept.
type restrictedOption struct {
	option    string
	allowedIn []string
}

type delayedSignal struct {
	after   time.Duration
	name    string
	payload any
}

// newSettings applies the options of the function with the given name. It fails the test if the function does not
// accept an option, or if an option is given twice.
func newSettings(t testing.TB, of string, opts []Option) *testSettings {
	t.Helper()
	s := &testSettings{startTime: time.Now()}
	for _, o := range opts {
		o.applyToSettings(s)
	}
	for _, l := range s.restrictedOptions {
		if !slices.Contains(l.allowedIn, of) {
			t.Fatalf("durabletest: %s is an option of %s and has no effect on %s: leave it out", l.option, strings.Join(l.allowedIn, " and "), of)
		}
	}
	slices.Sort(s.onceOptions)
	for i, option := range s.onceOptions {
		if i > 0 && s.onceOptions[i-1] == option {
			t.Fatalf("durabletest: the option %s is given twice: leave one of them out", option)
		}
	}
	if s.usesRealTime && slices.Contains(s.onceOptions, "StartClockAt") {
		t.Fatalf("durabletest: the option StartClockAt has no effect together with RealTime: leave one of them out")
	}
	return s
}

// restrictOption records that only the given functions accept the option.
func (s *testSettings) restrictOption(option string, to ...string) {
	s.restrictedOptions = append(s.restrictedOptions, restrictedOption{option, to})
}

// OnStore makes the engine use the given store, such as [PostgresStore], instead of a temporary SQLite file. OnStore is an
// option of [NewWithOptions].
func OnStore(s durable.Store) Option {
	return optionFunc(func(set *testSettings) {
		set.store = s
		set.onceOptions = append(set.onceOptions, "OnStore")
		set.restrictOption("OnStore", "NewWithOptions")
	})
}

// OnNewStores makes CrashEverywhere call open for a new database each time it executes the workflow, instead of
// creating a temporary SQLite file. The new database must hold no runs. The new database may hold other tables, such as tables
// to which Tx steps write. The functions that open registers with t.Cleanup are called after each execution. OnNewStores is an
// option of [CrashEverywhere].
//
//	durabletest.CrashEverywhere(t, w, in, durabletest.OnNewStores(durabletest.PostgresStore))
func OnNewStores(open func(t testing.TB) durable.Store) Option {
	return optionFunc(func(set *testSettings) {
		set.openStore = open
		set.onceOptions = append(set.onceOptions, "OnNewStores")
		set.restrictOption("OnNewStores", "CrashEverywhere")
	})
}

// RealTime makes the engine use the database's clock, so that time passes as in production and leases expire. RealTime is an
// option of [NewWithOptions].
func RealTime() Option {
	return optionFunc(func(set *testSettings) {
		set.usesRealTime = true
		set.restrictOption("RealTime", "NewWithOptions")
	})
}

// StartClockAt makes the clock begin at t instead of the present time.
func StartClockAt(t time.Time) Option {
	return optionFunc(func(set *testSettings) {
		set.startTime = t
		set.onceOptions = append(set.onceOptions, "StartClockAt")
	})
}

// Configure changes the engine's configuration. Change Config.Lease only together with [RealTime]. If the test or the workflow
// starts runs with durable.GroupKey, declare their queue, because a start with GroupKey in a queue without settings returns
// durable.ErrInvalidConfig:
//
//	durabletest.Configure(func(c *durable.Config) {
//		c.QueueSettings = map[string]durable.QueueSettings{"orders": {MaxInProgressPerKey: 1}}
//	})
func Configure(change func(*durable.Config)) Option {
	return optionFunc(func(set *testSettings) { set.configFuncs = append(set.configFuncs, change) })
}

// Workflows registers further workflows with the engine, such as the workflows of children.
func Workflows(workflows ...durable.Definition) Option {
	return optionFunc(func(set *testSettings) { set.workflows = append(set.workflows, workflows...) })
}

// SignalAfter sends a signal to the run when d has passed on the clock since the run was created, and everything else that is
// due at that time is done. SignalAfter is an option of [CrashEverywhere].
func SignalAfter(d time.Duration, name string, payload any) Option {
	return optionFunc(func(set *testSettings) {
		set.signals = append(set.signals, delayedSignal{d, name, payload})
		set.restrictOption("SignalAfter", "CrashEverywhere")
	})
}

// VaryingSteps names steps whose functions may return a different result each time, such as a new ID or the time. After every
// crash, a varying step returns the result that it returned without a crash. The rules for names are those of [Stub].
// A name that no call has fails the test. VaryingSteps is an option of [CrashEverywhere].
func VaryingSteps(names ...string) Option {
	return optionFunc(func(set *testSettings) {
		set.varyingSteps = append(set.varyingSteps, names...)
		set.restrictOption("VaryingSteps", "CrashEverywhere")
	})
}
