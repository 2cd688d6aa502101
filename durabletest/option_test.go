package durabletest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/durabletest"
)

// If an option was given twice, one of the two would silently win.
func TestOptionsGivenTwice(t *testing.T) {
	at := durabletest.StartClockAt(time.Now())
	for want, opts := range map[string][]durabletest.Option{
		"the option StartClockAt is given twice":                       {at, at},
		"the option OnStore is given twice":                            {durabletest.OnStore(nil), durabletest.OnStore(nil)},
		"the option StartClockAt has no effect together with RealTime": {at, durabletest.RealTime()},
	} {
		s := &spy{TB: t}
		done := make(chan struct{})
		go func() { // Fatalf ends the goroutine
			defer close(done)
			durabletest.NewWithOptions(s, nil, opts...)
		}()
		<-done
		if len(s.errors) != 1 || !strings.Contains(s.errors[0], want) {
			t.Errorf("the test was told %q, want %q", s.errors, want)
		}
	}
}
