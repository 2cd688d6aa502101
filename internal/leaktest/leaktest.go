// Package leaktest fails tests that leak goroutines. An engine, a store and a journal must stop every
// goroutine that they start.
//
//	func TestMain(m *testing.M) { os.Exit(leaktest.Main(pgtest.Main(m))) }
//
// Main checks once, after all tests. Test checks a single test; use it only in tests that do not run
// in parallel, because the goroutines of parallel tests cannot be distinguished.
//
// This package is for this module's tests; the library never imports it.
package leaktest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

// Main takes the exit code of the tests, and returns it, or 1 if it is zero and the tests have leaked
// goroutines. If a test has failed, Main does not look for leaks: the test may have ended before it stopped its
// goroutines, and their stacks would bury what failed.
func Main(code int) int {
	if fuzzing() || code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Test fails t if, after its cleanup functions, there are goroutines that did not exist when Test was
// called. Call it at the beginning of the test. The goroutine of a shared pgtest server is allowed.
func Test(t testing.TB) {
	t.Helper()
	if fuzzing() {
		return
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if t.Failed() { // the test may have ended before it stopped its goroutines
			return
		}
		if err := goleak.Find(before, goleak.IgnoreAnyFunction(pgtest.Goroutine)); err != nil {
			t.Error(err)
		}
	})
}

// fuzzing reports whether this process runs a fuzz test, for which package testing starts goroutines
// and processes of its own.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "false" {
			return true
		}
	}
	return false
}
