package postgres

import (
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
)

// TestALockedScheduleIsSkipped: a worker that finds a due schedule locked does not wait for the other worker, and changes nothing.
// Another schedule, whose run waits for nothing, is not held up.
func TestALockedScheduleIsSkipped(t *testing.T) {
	s := open(t, "exec")
	row := store.Schedule{Name: "s", State: []byte("{}")}
	set := func(skip bool, plan func(store.ScheduleSnapshot) *store.ScheduleWrite) *store.ScheduleChangeRequest {
		t.Helper()
		u := &store.ScheduleChangeRequest{Name: "s", SkipLocked: skip, Plan: plan}
		if err := s.ChangeSchedule(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	write := func(store.ScheduleSnapshot) *store.ScheduleWrite {
		return &store.ScheduleWrite{Row: row, LastRunFireIndex: -1}
	}
	set(false, write)
	met := false
	set(true, func(state store.ScheduleSnapshot) *store.ScheduleWrite {
		u := set(true, func(store.ScheduleSnapshot) *store.ScheduleWrite {
			t.Error("a locked schedule was planned")
			return nil
		})
		met = !u.Found && u.AppliedWrite == nil
		return write(state)
	})
	if !met {
		t.Error("the locked schedule was not skipped")
	}
}
