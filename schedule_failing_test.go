package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// faultySchedules is a store that cannot fire schedules whose names begin with "bad".
type faultySchedules struct {
	durable.Store
	tries atomic.Int64
}

func (s *faultySchedules) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	if u.SkipLocked && strings.HasPrefix(u.Name, "bad") {
		s.tries.Add(1)
		return errors.New("the row is damaged")
	}
	return s.Store.ChangeSchedule(ctx, u)
}

// Schedules that cannot be fired hold up no others, however many they are, and are not tried without a pause.
func TestFaultySchedulesHoldUpNoOthers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const bad = 110 // more than one query returns
		faulty := &faultySchedules{Store: s}
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })
		client := engineOn(t, s)
		for i := range bad + 1 {
			name := fmt.Sprint("bad-", i)
			if i == bad {
				name = "good"
			}
			if err := client.SetSchedule(within(t), w.Schedule(1, durable.Schedule{Name: name, Every: time.Second, Overlap: durable.OverlapAllow})); err != nil {
				t.Fatal(err)
			}
		}
		e := engineWith(t, faulty, durable.Config{Workflows: []durable.Definition{w}, Poll: 20 * time.Millisecond})
		running(t, e)
		began := time.Now()
		waitFor(t, func() bool {
			fires, err := client.ScheduleFires(within(t), "good", durable.Page{Limit: 10})
			return err == nil && len(fires) >= 4
		})
		// Each is tried after 50, 100, 200 ms and so on: eight times in 6.4 s.
		if n, most := faulty.tries.Load(), bad*int64(8+time.Since(began)/time.Second*2); n > most {
			t.Errorf("%d schedules that cannot be fired were tried %d times, want at most %d", bad, n, most)
		}
	})
}
