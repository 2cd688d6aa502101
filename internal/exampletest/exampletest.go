// Package exampletest has a testing.TB for examples of functions that need the t of a test.
package exampletest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
)

// T is a testing.TB for one example. A failure becomes part of the example's output, so that the example
// fails. T implements only the methods below.
type T struct {
	testing.TB
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	failed   bool
	cleanups []func()
}

// New returns the T of an example. The example calls End at its end.
func New() *T {
	ctx, cancel := context.WithCancel(context.Background())
	return &T{ctx: ctx, cancel: cancel}
}

// End ends the context, and calls the functions that were given to Cleanup, the last one first.
func (t *T) End() {
	t.cancel()
	for {
		t.mu.Lock()
		last := len(t.cleanups) - 1
		if last < 0 {
			t.mu.Unlock()
			return
		}
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		t.mu.Unlock()
		f()
	}
}

// Cleanup registers a function that End calls.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Context returns a context that ends before the functions that were given to Cleanup are called.
func (t *T) Context() context.Context { return t.ctx }

// TempDir returns a new folder, which End removes.
func (t *T) TempDir() string {
	dir, err := os.MkdirTemp("", "durable-example")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Name returns a name for messages.
func (t *T) Name() string { return "Example" }

// Helper does nothing.
func (t *T) Helper() {}

// Log does nothing, because the output of an example is compared.
func (t *T) Log(...any) {}

// Logf does nothing, because the output of an example is compared.
func (t *T) Logf(string, ...any) {}

// Failed reports whether the example has failed.
func (t *T) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// Skipped returns false.
func (t *T) Skipped() bool { return false }

// Error prints the failure.
func (t *T) Error(args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = true
	fmt.Fprintln(os.Stderr, append([]any{"FAIL:"}, args...)...) // even if Quiet discards the output
	fmt.Println(append([]any{"FAIL:"}, args...)...)
}

// Errorf prints the failure.
func (t *T) Errorf(format string, args ...any) { t.Error(fmt.Sprintf(format, args...)) }

// FailNow ends the goroutine, as that of a test does. Deferred functions, such as End, are called.
func (t *T) FailNow() {
	t.Error("the example cannot continue")
	runtime.Goexit()
}

// Fatal prints the failure and ends the goroutine.
func (t *T) Fatal(args ...any) {
	t.Error(args...)
	runtime.Goexit()
}

// Fatalf prints the failure and ends the goroutine.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Quiet calls f, and discards what f writes to the standard output.
func (t *T) Quiet(f func()) {
	none, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = none
	defer func() {
		os.Stdout = stdout
		if err := none.Close(); err != nil {
			t.Error(err)
		}
	}()
	f()
}
