package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// A text that Events has not returned is refused, or is the position after some event. A list may begin
// below any ID.
func FuzzCursor(f *testing.F) {
	s := openAt(f, pgtest.ServerURL(f), Schema(pgtest.Schema(f)))
	b := new(store.Batch)
	ids := make([]uuid.UUID, 10)
	at := time.Now()
	for i := range ids {
		run := running(uuid.New(), at)
		ids[i] = run.UUID
		b.Starts = append(b.Starts, &store.StartWrite{Run: run})
		b.OwnershipEnds = append(b.OwnershipEnds, finish(run.UUID, at))
	}
	commit(f, s, b)
	for _, seed := range []string{
		"", "1-" + ids[0].String() + "-5", "18446744073709551615-" + ids[0].String() + "-32767", "18446744073709551616-" + ids[0].String() + "-5",
		"0--0", "1-" + ids[0].String() + "--5", "01-" + ids[0].String() + "-5", "\x00", "é", "1-{" + ids[0].String() + "}-5", strings.Repeat("1", 1000),
	} {
		f.Add(seed, ids[3][:], 3, "a")
	}
	f.Add("1", []byte{}, 1<<31, "\U0010ffff")
	f.Fuzz(func(t *testing.T, after string, before []byte, limit int, prefix string) {
		events, err := s.Events(t.Context(), after, limit)
		switch {
		case err != nil && (!errors.Is(err, store.ErrBadData) || len(events) != 0):
			t.Errorf("events after %q: %d, %v", after, len(events), err)
		case len(events) > max(limit, 0):
			t.Errorf("%d events after %q, limit %d", len(events), after, limit)
		}
		if c, err := parseEventCursor(after); err == nil && after != "" && c.String() != after {
			t.Errorf("the cursor %q is read as %q", after, c)
		}
		var id uuid.UUID
		copy(id[:], before)
		runs, err := s.ListRuns(t.Context(), store.Filter{NamePrefix: prefix}, id, limit)
		text := utf8.ValidString(prefix) && !strings.Contains(prefix, "\x00")
		if len(runs) > max(limit, 0) || err != nil && (text || !errors.Is(err, store.ErrBadData)) {
			t.Errorf("runs below %s: %d, %v", id, len(runs), err)
		}
		for _, r := range runs {
			if (id != uuid.UUID{}) && string(r.UUID[:]) >= string(id[:]) {
				t.Errorf("%s is listed below %s", r.UUID, id)
			}
			if !strings.HasPrefix(r.Name, prefix) {
				t.Errorf("%q is listed for the prefix %q", r.Name, prefix)
			}
		}
	})
}
