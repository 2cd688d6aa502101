package storetest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var outcomeWords = map[store.WriteOutcome]string{
	0: "no outcome", store.Written: "written", store.AlreadyRecorded: "adopted", store.Fenced: "fenced", store.Locked: "locked",
}

func wantOutcome(t testing.TB, what string, got, want store.WriteOutcome) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, outcomeWords[got], outcomeWords[want])
	}
}

func wantRun(t testing.TB, what string, got, want store.Run) {
	t.Helper()
	wantFields(t, what, got, want)
}

func wantState(t testing.TB, what string, got, want store.RunState) {
	t.Helper()
	wantFields(t, what+": state", got, want)
}

// wantSteps compares two histories bytewise. Both are ordered by name.
func wantSteps(t testing.TB, what string, got []store.Step, want ...store.Step) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		wantFields(t, fmt.Sprintf("%s: checkpoint %d, %s", what, i, quoteName(want[i].Name)), got[i], want[i])
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %d checkpoints, want %d", what, len(got), len(want))
	}
}

// wantRecorded compares the recorded row that an adopted write returned.
func wantRecorded(t testing.TB, what string, got *store.Step, want store.Step) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: no row is attached, want %s", what, show(want.Output))
		return
	}
	wantFields(t, what+": the recorded row", *got, want)
}

// wantFields compares two rows of one type field by field: times as instants, payloads bytewise. A
// NULL payload differs from an empty one.
func wantFields[R any](t testing.TB, what string, got, want R) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		have, need := g.Field(i).Interface(), w.Field(i).Interface()
		var same bool
		switch need := need.(type) {
		case time.Time:
			same = need.Equal(have.(time.Time))
		case []byte:
			same = (need == nil) == (have.([]byte) == nil) && bytes.Equal(need, have.([]byte))
		case []string:
			same = slices.Equal(need, have.([]string))
		default:
			same = have == need
		}
		if !same {
			t.Errorf("%s: %s: got %s, want %s", what, g.Type().Field(i).Name, show(have), show(need))
		}
	}
}

// show formats a value for a message, and shortens long values.
func show(v any) string {
	switch v := v.(type) {
	case []byte:
		if v == nil {
			return "NULL"
		}
		return fmt.Sprintf("%d bytes %.80q", len(v), v)
	case string:
		return quoteName(v)
	case time.Time:
		if v.IsZero() {
			return "no time"
		}
		return v.UTC().Format(time.RFC3339Nano)
	case uuid.NullUUID:
		if !v.Valid {
			return "NULL"
		}
		return v.UUID.String()
	}
	return fmt.Sprint(v)
}

// quoteName quotes a name. It cuts a name of more than 80 bytes after its first 40.
func quoteName(name string) string {
	if len(name) > 80 {
		return fmt.Sprintf("%q... (%d bytes)", name[:40], len(name))
	}
	return fmt.Sprintf("%q", name)
}

func describeClaims(claimed []store.ClaimedRun) []string {
	all := make([]string, len(claimed))
	for i, c := range claimed {
		all[i] = fmt.Sprintf("%s (%s)", c.Run.Name, c.Run.Status)
	}
	return all
}
