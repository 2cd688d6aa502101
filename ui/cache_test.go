package ui

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable"
)

// While one caller reads an expired value again, the others get the value before, unless it is too old: then they wait.
func TestExpiredValuesAreServedWhileOneReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const period = time.Second
		c, reads := newCache(), 0
		release := make(chan error)
		read := func(context.Context) (int, error) {
			reads++
			n := reads
			return n, <-release
		}
		got := func(ctx context.Context) chan int {
			out := make(chan int, 1)
			go func() {
				n, _, err := cachedRead(ctx, c, "key", period, read)
				if err != nil {
					n = -1
				}
				out <- n
			}()
			synctest.Wait()
			return out
		}
		first, second := got(t.Context()), got(t.Context())
		if len(first) != 0 || len(second) != 0 || reads != 1 {
			t.Fatalf("without a value, callers do not wait for one read: %d reads", reads)
		}
		release <- nil
		if a, b := <-first, <-second; a != 1 || b != 1 {
			t.Errorf("the callers get %d and %d", a, b)
		}
		time.Sleep(2 * period) // of the bubble: it takes no time
		refreshing := got(t.Context())
		for range 20 {
			select {
			case n := <-got(t.Context()):
				if n != 1 {
					t.Errorf("while one reads, another gets %d", n)
				}
			default:
				t.Fatal("a caller waits although there is a value")
			}
		}
		release <- nil
		if n := <-refreshing; n != 2 || reads != 2 {
			t.Errorf("the one who reads gets %d after %d reads", n, reads)
		}

		time.Sleep(maxStaleAge)
		ctx, leave := context.WithCancel(t.Context())
		refreshing, waiting, impatient := got(t.Context()), got(t.Context()), got(ctx)
		if len(waiting) != 0 {
			t.Error("a value that is too old is served")
		}
		leave()
		if n := <-impatient; n != -1 {
			t.Errorf("who has left gets %d", n)
		}
		release <- errors.New("the reader was cancelled")
		if n := <-refreshing; n != -1 {
			t.Errorf("a failed read returns %d", n)
		}
		synctest.Wait()
		release <- nil
		if n := <-waiting; n != 4 {
			t.Errorf("after a failed read, the next caller gets %d", n)
		}

		time.Sleep(2 * period)
		before := got(t.Context())
		c.clear() // an act
		after := got(t.Context())
		release <- nil
		release <- nil
		<-before
		<-after
		if n := <-got(t.Context()); n != 6 {
			t.Errorf("after an act, a read from before it is served: %d", n)
		}
	})
}

// The cache keeps no payloads for longer than it serves them, also if nobody uses it, and never more of them than its bound.
func TestCachedPayloadsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		size := func() (size int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, e := range c.entries {
				size += len(e.value.(*durable.RunInfo).Input)
			}
			return size
		}
		payload := make([]byte, 4<<20)
		for i := range 200 {
			_, _, err := cachedRead(t.Context(), c, fmt.Sprint("run ", i), roundPeriod, func(context.Context) (*durable.RunInfo, error) { return &durable.RunInfo{Input: payload}, nil })
			if n := size(); err != nil || n > mostCachedBytes || n == 0 {
				t.Fatalf("after %d reads the cache has %d bytes, %v", i+1, n, err)
			}
		}
		time.Sleep(2 * maxStaleAge) // of the bubble: it takes no time
		synctest.Wait()
		if n := size(); n != 0 || len(c.entries) != 0 || c.sweeping {
			t.Errorf("when nobody uses it any more, the cache has %d bytes in %d entries", n, len(c.entries))
		}
	})
}
