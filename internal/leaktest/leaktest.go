// Package leaktest fails tests that leave goroutines behind: whatever an engine, a store
// or a journal starts, it ends (I12).
//
//	func TestMain(m *testing.M) { os.Exit(leaktest.Main(pgtest.Main(m))) }
//
// That looks once, after all tests. Where tests do not run in parallel, Test says which one
// it was. Goroutines have no owner that could be asked, so beside other tests nothing can be
// said about one of them.
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

// Main takes the exit code of tests that have run, and answers one that is not zero if
// they have left goroutines behind.
func Main(code int) int {
	if fuzzing() {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Test fails the test if, when all that is cleaned up after it is cleaned up, there are
// goroutines that were not there when Test was called. So call it first. The server that
// a package's tests share may stay.
func Test(t testing.TB) {
	t.Helper()
	if fuzzing() {
		return
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if t.Failed() { // it may have given up before it stopped what it had started
			return
		}
		if err := goleak.Find(before, goleak.IgnoreAnyFunction(pgtest.Goroutine)); err != nil {
			t.Error(err)
		}
	})
}

// fuzzing reports whether this process mutates inputs, in goroutines and processes of
// package testing's own.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" && f.Value.String() != "false" {
			return true
		}
	}
	return false
}
