//go:build linux

package sqlite

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// Watching an idle file costs next to nothing.
func TestIdleWatchIsCheap(t *testing.T) {
	s := openTest(t)
	attend(t, s, uuid.New(), store.HintOwnedRunChange)
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	realtime.Pass(500*time.Millisecond, "what an idle store costs is measured over this time")
	share := float64(used()-before) / float64(500*time.Millisecond)
	t.Logf("%.2f %% of one core", 100*share)
	if share > 0.1 {
		t.Error("too much")
	}
}
