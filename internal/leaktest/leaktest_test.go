package leaktest

import (
	"testing"
)

// recorder is a test whose errors are counted, and whose cleanup is called when it suits.
type recorder struct {
	testing.TB
	errors  int
	cleanup func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Failed() bool     { return false }
func (r *recorder) Error(...any)     { r.errors++ }
func (r *recorder) Cleanup(f func()) { r.cleanup = f }

// A goroutine that stays is found, one that ends or was there before is not.
func TestFindsWhatStays(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	stay := func() { <-end }
	go stay()
	calm := &recorder{TB: t}
	Test(calm)
	done := make(chan struct{})
	go close(done)
	<-done
	calm.cleanup()
	leaky := &recorder{TB: t}
	Test(leaky)
	go stay()
	leaky.cleanup()
	if calm.errors != 0 || leaky.errors != 1 {
		t.Errorf("%d leaks where there is none, %d where there is one", calm.errors, leaky.errors)
	}
	if Main(0) != 1 || Main(2) != 2 {
		t.Error("Main does not find the goroutines that stay")
	}
}
