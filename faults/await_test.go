package faults

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// patience bounds every wait of a test: much longer than anything takes, so that a
// loaded machine fails nothing.
const patience = 2 * time.Minute

// await waits until ready returns true, and fails the test if that takes longer than patience. Tests wait for a state of the
// world only here.
func await(t testing.TB, what string, ready func() bool) {
	t.Helper()
	if !within(patience, ready) {
		t.Fatalf("waited %v for: %s", patience, what)
	}
}

func within(d time.Duration, ready func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ready()
		}
	}
	return true
}

// filePatience bounds the wait of a process for a file that the test makes. The test may wait several times before it makes the file, so a
// process waits longer than the test: it is the test that says what did not come.
const filePatience = 10 * patience

// awaitFile waits until the file is there.
func awaitFile(file string) error {
	if !within(filePatience, func() bool { _, err := os.Stat(file); return err == nil }) {
		return fmt.Errorf("nobody has made the file %s", file)
	}
	return nil
}

// closed reports whether the channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// receive waits until something comes out of the channel.
func receive[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v for: %s", patience, what)
	}
	return v
}
