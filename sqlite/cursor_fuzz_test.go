package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A cursor that Events never returned is refused, or leads to what comes after some event;
// a list begins below any ID.
func FuzzCursor(f *testing.F) {
	s, err := openDatabase(filepath.Join(f.TempDir(), "durable.db"), Synchronous(Normal))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error("close:", err)
		}
	})
	ids := startTestRuns(f, s, 10)
	b := new(store.Batch)
	for _, id := range ids {
		at := time.Now()
		b.OwnershipEnds = append(b.OwnershipEnds, &store.OwnershipEnd{UUID: id, Epoch: epochAt(1), Now: at, EndedAt: at, Status: store.Completed})
	}
	if err := s.Commit(f.Context(), b); err != nil {
		f.Fatal(err)
	}
	all, err := s.Events(f.Context(), "", 100)
	if err != nil || len(all) != len(ids) {
		f.Fatal(len(all), err)
	}
	for _, seed := range []string{"", "0", "1", "-1", "+1", "01", " 1", "9223372036854775807", "9223372036854775808", "1e3", "\x00", "é"} {
		f.Add(seed, ids[3][:], 3, "a")
	}
	f.Fuzz(func(t *testing.T, after string, before []byte, limit int, prefix string) {
		events, err := s.Events(t.Context(), after, limit)
		switch {
		case err != nil && (!errors.Is(err, store.ErrBadData) || len(events) != 0):
			t.Errorf("events after %q: %d, %v", after, len(events), err)
		case len(events) > max(limit, 0):
			t.Errorf("%d events after %q, limit %d", len(events), after, limit)
		}
		for i, e := range events { // those at the end of all
			if want := all[len(all)-len(events)+i]; limit >= len(all) && e.Cursor != want.Cursor {
				t.Errorf("event %d after %q is %s, want %s", i, after, e.Cursor, want.Cursor)
			}
		}
		var id uuid.UUID
		copy(id[:], before)
		runs, err := s.ListRuns(t.Context(), store.Filter{NamePrefix: prefix}, id, limit)
		if err != nil || len(runs) > max(limit, 0) {
			t.Errorf("runs below %s: %d, %v", id, len(runs), err)
		}
		for _, r := range runs {
			if (id != uuid.UUID{}) && string(r.UUID[:]) >= string(id[:]) {
				t.Errorf("%s is listed below %s", r.UUID, id)
			}
			if len(r.Name) < len(prefix) || r.Name[:len(prefix)] != prefix {
				t.Errorf("%q is listed for the prefix %q", r.Name, prefix)
			}
		}
	})
}
